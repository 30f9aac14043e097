import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BitwiseOr;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionId;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.WindowFrame;
import org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.Metadata$;
import scala.Function1;
import scala.Option;
import scala.Product;
import scala.Some;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Functions that find, by Catalyst's canonical form, what queries share, and build their plans. */
public class SharedPlans {
  private static final String MASK = "__hg_mask";
  private static final String MEMBER = "__hg_member";
  static final String ARRIVED = "_arrived_at_s";

  private static final Set NEVER_FAIL =
      words(
          "AttributeReference Literal Alias And Or Not IsNull IsNotNull EqualTo EqualNullSafe"
              + " LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In InSet Coalesce If"
              + " CaseWhen IsNaN Lower Upper Length StartsWith EndsWith Contains StringTrim"
              + " StringTrimLeft StringTrimRight Substring Concat Reverse Year Month DayOfMonth"
              + " Md5 Sha2 Crc32 Levenshtein SoundEx StringInstr StringTranslate InitCap"
              + " Murmur3Hash Exp Sqrt Cbrt Log Log2 Log10 Log1p Pow Sin Cos Tan Signum XxHash64"
              + " Between With CommonExpressionDef CommonExpressionRef GetStructField");
  private static final Set OF_DOUBLES = words("Add Subtract Multiply UnaryMinus Abs");
  private static final Set OF_LITERALS = words("Like RLike");
  private static final Set COMMUTATIVE =
      words(
          "Add Multiply And Or BitwiseAnd BitwiseOr BitwiseXor Greatest Least EqualTo"
              + " EqualNullSafe");
  private static final Set CHEAP =
      words(
          "AttributeReference Literal Alias And Or Not IsNull IsNotNull EqualTo EqualNullSafe"
              + " LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In InSet Coalesce If"
              + " CaseWhen Cast Add Subtract Multiply Divide Remainder Pmod IntegralDivide"
              + " UnaryMinus UnaryPositive Between With CommonExpressionDef CommonExpressionRef"
              + " GetStructField Like BitwiseAnd BitwiseOr BitwiseXor BitwiseNot IsNaN"
              + " TimestampAddInterval TimeAdd SubtractTimestamps");
  private static final Set COMPARISONS =
      words("EqualTo LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual");
  private static final List WIDER =
      Arrays.asList(new Object[] {"tinyint", "smallint", "int", "bigint", "float", "double"});
  private static final Set CONSTANTS =
      words("tinyint smallint int bigint float double date timestamp timestamp_ntz string");

  private final Map kinByHash = new HashMap();
  private long next = 0;
  private final Map placeholders = new HashMap();

  private static Set words(String text) {
    return new HashSet(Arrays.asList(text.split(" ")));
  }

  static String kind(Object node) {
    String name = node.getClass().getSimpleName();
    return name.endsWith("$") ? name.substring(0, name.length() - 1) : name;
  }

  // ---- The same sub-plan over the same rows ----

  /** Plans with the same output rows, whose names may differ, and the number that they share. */
  private static class Kin {
    final long id;
    final List members = new ArrayList();

    Kin(long id) {
      this.id = id;
    }

    /** Return a member that is still in use, or null; drop members that are not. */
    Object any() {
      for (java.util.Iterator references = members.iterator(); references.hasNext(); ) {
        Object member = ((WeakReference) references.next()).get();
        if (member != null) {
          return member;
        }
        references.remove();
      }
      return null;
    }
  }

  /**
   * Return a number that plans with the same output rows share; names of columns may differ.
   *
   * The number is valid as long as one of these plans is in use.
   */
  public synchronized long id(QueryPlan plan) {
    Integer hash = Integer.valueOf(plan.semanticHash());
    List candidates = (List) kinByHash.get(hash);
    if (candidates == null) {
      candidates = new ArrayList();
      kinByHash.put(hash, candidates);
    }
    for (java.util.Iterator items = candidates.iterator(); items.hasNext(); ) {
      Kin kin = (Kin) items.next();
      QueryPlan member = (QueryPlan) kin.any();
      if (member == null) {
        items.remove();
      } else if (member == plan || samePlan(member, plan)) {
        kin.members.add(new WeakReference(plan));
        return kin.id;
      }
    }
    Kin kin = new Kin(++next);
    kin.members.add(new WeakReference(plan));
    candidates.add(kin);
    return kin.id;
  }

  /** Return true if two plans give the same rows, and any difference in order cannot matter. */
  static boolean samePlan(QueryPlan a, QueryPlan b) {
    return a.sameResult(b) && (writtenAlike(a, b, new HashMap()) || !orderMatters(a));
  }

  static boolean sameExpression(Expression a, Expression b) {
    return a.canonicalized().equals(b.canonicalized())
        && (writtenAlike(a, b, new HashMap()) || !orderMatters(a));
  }

  /** Return true if the canonical form may have reordered operations that are inexact or fail. */
  private static boolean orderMatters(QueryPlan plan) {
    for (Iterator expressions = plan.expressions().iterator(); expressions.hasNext(); ) {
      if (orderMatters((Expression) expressions.next())) {
        return true;
      }
    }
    for (Iterator children = plan.children().iterator(); children.hasNext(); ) {
      if (orderMatters((QueryPlan) children.next())) {
        return true;
      }
    }
    return false;
  }

  private static boolean orderMatters(Expression node) {
    if (node instanceof SubqueryExpression) {
      return true;
    }
    boolean commutes = COMMUTATIVE.contains(kind(node));
    for (Iterator children = node.children().iterator(); children.hasNext(); ) {
      Expression child = (Expression) children.next();
      if (commutes && (isFloating(child.dataType()) || !neverFails(node))) {
        return true;
      }
      if (orderMatters(child)) {
        return true;
      }
    }
    return false;
  }

  private static boolean isFloating(DataType type) {
    String name = type.catalogString();
    return name.indexOf("float") >= 0 || name.indexOf("double") >= 0;
  }

  private static boolean writtenAlike(QueryPlan a, QueryPlan b, Map ids) {
    if (!kind(a).equals(kind(b)) || a.children().size() != b.children().size()) {
      return false;
    }
    List ours = QueryPlans.list(a.expressions());
    List theirs = QueryPlans.list(b.expressions());
    if (ours.size() != theirs.size()) {
      return false;
    }
    List left = QueryPlans.list(a.children());
    List right = QueryPlans.list(b.children());
    for (int n = 0; n < left.size(); n++) {
      QueryPlan one = (QueryPlan) left.get(n);
      QueryPlan two = (QueryPlan) right.get(n);
      if (!writtenAlike(one, two, ids)) {
        return false;
      }
      if (one.output().size() != two.output().size()) {
        return false;
      }
      for (int m = 0; m < one.output().size(); m++) {
        ids.put(
            ((Attribute) one.output().apply(m)).exprId(),
            ((Attribute) two.output().apply(m)).exprId());
      }
    }
    for (int n = 0; n < ours.size(); n++) {
      if (!writtenAlike((Expression) ours.get(n), (Expression) theirs.get(n), ids)) {
        return false;
      }
    }
    return true;
  }

  /** Return true if two expressions are written in the same order; ids of columns may differ. */
  private static boolean writtenAlike(Expression a, Expression b, Map ids) {
    if (!a.getClass().equals(b.getClass()) || a.children().size() != b.children().size()
        || !sameType(a, b)) {
      return false;
    }
    if (a instanceof Attribute || kind(a).equals("NamedLambdaVariable")) {
      ExprId ours = ((NamedExpression) a).exprId();
      ExprId theirs = ((NamedExpression) b).exprId();
      Object mapped = ids.get(ours);
      if (mapped == null && kind(a).equals("NamedLambdaVariable")) {
        ids.put(ours, theirs);
        return true;
      }
      return mapped == null ? ours.equals(theirs) : mapped.equals(theirs);
    }
    List left = QueryPlans.list(a.children());
    List right = QueryPlans.list(b.children());
    if (kind(a).equals("LambdaFunction")) {
      // Compare its variables first, which follow its body.
      for (int n = 1; n < left.size(); n++) {
        if (!writtenAlike((Expression) left.get(n), (Expression) right.get(n), ids)) {
          return false;
        }
      }
    }
    for (int n = 0; n < left.size(); n++) {
      if (!writtenAlike((Expression) left.get(n), (Expression) right.get(n), ids)) {
        return false;
      }
    }
    if (a instanceof SubqueryExpression) {
      return samePlan(
          (LogicalPlan) ((SubqueryExpression) a).plan(),
          (LogicalPlan) ((SubqueryExpression) b).plan());
    }
    if (a instanceof Alias) {
      return true;
    }
    Iterator ours = ((Product) a).productIterator();
    Iterator theirs = ((Product) b).productIterator();
    while (ours.hasNext() && theirs.hasNext()) {
      Object one = ours.next();
      Object two = theirs.next();
      if (one instanceof CommonExpressionId) {
        // A number that is new in every plan, as in BETWEEN, which uses its operand twice.
        Object mapped = ids.putIfAbsent(one, two);
        if (mapped != null && !mapped.equals(two)) {
          return false;
        }
        continue;
      }
      boolean nested = one instanceof Expression || one instanceof Seq || one instanceof Option
          || one instanceof ExprId || one instanceof scala.Function1;
      if (!nested && (one == null ? two != null : !one.equals(two))) {
        return false;
      }
    }
    return true;
  }

  /** Return true if two expressions have the same type; the definition of a window has none. */
  private static boolean sameType(Expression a, Expression b) {
    return a instanceof WindowSpecDefinition || a instanceof WindowFrame
        || a.dataType().equals(b.dataType());
  }

  /** Return true if Spark can compute a value, possibly NULL, for every row. */
  static boolean neverFails(Expression node) {
    String kind = kind(node);
    List children = QueryPlans.list(node.children());
    boolean safe;
    if (node.foldable() && !children.isEmpty()) {
      try {
        node.eval(null);
        return true;
      } catch (Exception error) {
        return false;
      }
    }
    if (kind.equals("Cast")) {
      String narrow = ((Expression) children.get(0)).dataType().catalogString();
      String wide = node.dataType().catalogString();
      safe =
          narrow.equals(wide)
              || (WIDER.contains(narrow) && WIDER.contains(wide)
                  && WIDER.indexOf(narrow) <= WIDER.indexOf(wide));
    } else if (OF_LITERALS.contains(kind)) {
      safe = ((Expression) children.get(1)).foldable();
    } else if (OF_DOUBLES.contains(kind)) {
      safe = isFloating(node.dataType());
    } else {
      safe = NEVER_FAIL.contains(kind);
    }
    for (int n = 0; safe && n < children.size(); n++) {
      safe = neverFails((Expression) children.get(n));
    }
    return safe;
  }

  /** Return true if an expression calls a function; comparisons, arithmetic and casts are cheap. */
  static boolean calls(Expression node) {
    if (!CHEAP.contains(kind(node))) {
      return true;
    }
    for (Iterator children = node.children().iterator(); children.hasNext(); ) {
      if (calls((Expression) children.next())) {
        return true;
      }
    }
    return false;
  }

  // ---- The parts of a query over one leaf ----

  /** Conditions and outputs of a query that needs only one tuple of one leaf at a time. */
  public static class Parts {
    final List conditions;
    final List outputs;
    final LogicalPlan leaf;
    LogicalPlan longest;

    Parts(List conditions, List outputs, LogicalPlan leaf) {
      this.conditions = conditions;
      this.outputs = outputs;
      this.leaf = leaf;
    }

    /** Return the conditions and outputs, one per line; the SQL is for people, not for Spark. */
    public String describe() {
      StringBuilder text = new StringBuilder();
      for (int n = 0; n < conditions.size(); n++) {
        Expression condition = (Expression) conditions.get(n);
        text.append("C\t").append(neverFails(condition)).append('\t').append(calls(condition));
        text.append('\t').append(written(condition)).append('\n');
      }
      for (int n = 0; n < outputs.size(); n++) {
        NamedExpression output = (NamedExpression) outputs.get(n);
        Expression value = value(output);
        boolean column = value instanceof Attribute;
        text.append("O\t").append(column ? plain(columnName(value, leaf)) : "").append('\t');
        text.append(calls(value)).append('\t').append(plain(output.name())).append('\t');
        text.append(written(value)).append('\n');
      }
      return text.toString();
    }

    /** Return the same parts with the conditions in another order. */
    public Parts ordered(String places) {
      List other = new ArrayList();
      String[] words = places.split(" ");
      for (int n = 0; n < words.length; n++) {
        other.add(conditions.get(Integer.parseInt(words[n])));
      }
      return new Parts(other, outputs, leaf);
    }

    /** Return a plan that applies the first conditions and keeps columns of the leaf. */
    public LogicalPlan first(int count, String columns) {
      return new Project(columnsOf(leaf, columns), filter(conditions.subList(0, count), leaf));
    }

    /** Return a plan for what follows the first conditions, over another relation. */
    public LogicalPlan rest(int count, LogicalPlan relation) {
      LogicalPlan rows = QueryPlans.renamed(leaf, relation);
      return new Project(
          QueryPlans.seq(outputs), filter(conditions.subList(count, conditions.size()), rows));
    }

    /** Return a plan with the value of one condition as a column; TRUE for a negative place. */
    public LogicalPlan condition(int place) {
      List only = new ArrayList();
      Expression value =
          place < 0
              ? (Expression) literal(Boolean.TRUE)
              : (Expression) conditions.get(place);
      only.add(named(value, "holds"));
      return new Project(QueryPlans.seq(only), leaf);
    }

    /** Return the condition under which the query selects a tuple; null if it selects all. */
    Expression predicate() {
      for (int n = 1; n < conditions.size(); n++) {
        if (!neverFails((Expression) conditions.get(n))) {
          return inOrder(conditions);
        }
      }
      return and(conditions);
    }
  }

  /** Return the SQL of an expression for people: columns have no names of relations. */
  private static String written(Expression expression) {
    Expression bare =
        (Expression)
            expression.transformUp(
                new scala.runtime.AbstractPartialFunction() {
                  public boolean isDefinedAt(Object node) {
                    return node instanceof AttributeReference;
                  }

                  public Object applyOrElse(Object node, scala.Function1 otherwise) {
                    return node instanceof AttributeReference
                        ? ((AttributeReference) node).withQualifier((Seq) Nil$.MODULE$)
                        : otherwise.apply(node);
                  }
                });
    String text = plain(bare.sql());
    int depth = 0;
    for (int n = 0; n < text.length() - 1; n++) {
      depth += text.charAt(n) == '(' ? 1 : text.charAt(n) == ')' ? -1 : 0;
      if (depth == 0) {
        return text;
      }
    }
    return text.startsWith("(") ? text.substring(1, text.length() - 1) : text;
  }

  private static String plain(String text) {
    return text.replace('\t', ' ').replace('\n', ' ').replace('\r', ' ');
  }

  static Expression value(NamedExpression output) {
    return output instanceof Alias ? ((Alias) output).child() : (Expression) output;
  }

  /** Return the name of a column as the leaf spells it; queries may use another case. */
  static String columnName(Expression column, LogicalPlan leaf) {
    ExprId id = ((Attribute) column).exprId();
    for (Iterator columns = leaf.output().iterator(); columns.hasNext(); ) {
      Attribute leafColumn = (Attribute) columns.next();
      if (leafColumn.exprId().equals(id)) {
        return leafColumn.name();
      }
    }
    return ((Attribute) column).name();
  }

  private static Seq columnsOf(LogicalPlan leaf, String names) {
    Set wanted = new HashSet(Arrays.asList(names.split("\t")));
    List columns = new ArrayList();
    for (Iterator items = leaf.output().iterator(); items.hasNext(); ) {
      Attribute column = (Attribute) items.next();
      if (wanted.contains(column.name())) {
        columns.add(column);
      }
    }
    return QueryPlans.seq(columns);
  }

  private static Expression and(List conditions) {
    Expression all = null;
    for (int n = 0; n < conditions.size(); n++) {
      Expression condition = (Expression) conditions.get(n);
      all = all == null ? condition : new And(all, condition);
    }
    return all;
  }

  /**
   * Return conditions joined by AND, each of which is computed only if those before it are true.
   *
   * The generated code of a filter does the same, while `And` computes its right side for NULL, too.
   */
  private static Expression inOrder(List conditions) {
    Expression all = (Expression) conditions.get(conditions.size() - 1);
    for (int n = conditions.size() - 2; n >= 0; n--) {
      all = new If((Expression) conditions.get(n), all, literal(Boolean.FALSE));
    }
    return all;
  }

  private static LogicalPlan filter(List conditions, LogicalPlan leaf) {
    return conditions.isEmpty() ? leaf : new Filter(and(conditions), leaf);
  }

  private static Literal literal(Object value) {
    return org.apache.spark.sql.catalyst.expressions.Literal$.MODULE$.apply(value);
  }

  private static Alias named(Expression value, String name) {
    return new Alias(
        value, name, NamedExpression$.MODULE$.newExprId(), (Seq) Nil$.MODULE$, Option.empty(),
        (Seq) Nil$.MODULE$);
  }

  /** Return the parts of a query; null if it does more than filter and project one leaf. */
  public Parts parts(LogicalPlan plan) {
    List conditions = new ArrayList();
    List outputs = new ArrayList();
    LogicalPlan leaf = collapsed(plan, conditions, outputs);
    if (leaf == null) {
      return null;
    }
    List all = new ArrayList(conditions);
    all.addAll(outputs);
    for (int n = 0; n < all.size(); n++) {
      if (hasSubquery((Expression) all.get(n)) || hasPython((Expression) all.get(n))) {
        return null;
      }
    }
    return new Parts(conditions, outputs, leaf);
  }

  /** Collect conditions, innermost first, and outputs; return the leaf, or null for other plans. */
  private static LogicalPlan collapsed(LogicalPlan plan, List conditions, List outputs) {
    if (QueryPlans.leafName(plan) != null) {
      outputs.addAll(QueryPlans.list(plan.output()));
      return plan;
    }
    if (!(plan instanceof Project) && !(plan instanceof Filter)) {
      return null;
    }
    List below = new ArrayList();
    LogicalPlan child = (LogicalPlan) plan.children().head();
    LogicalPlan leaf = collapsed(child, conditions, below);
    if (leaf == null) {
      return null;
    }
    Map values = new HashMap();
    for (int n = 0; n < below.size(); n++) {
      NamedExpression column = (NamedExpression) below.get(n);
      values.put(column.exprId(), value(column));
    }
    if (plan instanceof Filter) {
      conjuncts(inlined(((Filter) plan).condition(), values), conditions);
      outputs.addAll(below);
      return leaf;
    }
    for (Iterator columns = ((Project) plan).projectList().iterator(); columns.hasNext(); ) {
      NamedExpression column = (NamedExpression) columns.next();
      Expression value = inlined(value(column), values);
      outputs.add(
          value instanceof AttributeReference
                  && ((AttributeReference) value).exprId().equals(column.exprId())
                  && ((AttributeReference) value).name().equals(column.name())
              ? (Object) value
              : new Alias(
                  value, column.name(), column.exprId(), (Seq) Nil$.MODULE$,
                  new Some(column.metadata()), (Seq) Nil$.MODULE$));
    }
    return leaf;
  }

  private static void conjuncts(Expression condition, List conditions) {
    if (condition instanceof And) {
      conjuncts(((And) condition).left(), conditions);
      conjuncts(((And) condition).right(), conditions);
    } else {
      addComparisons(condition, conditions);
    }
  }

  /** Return an expression in which columns are replaced by the expressions they stand for. */
  private static Expression inlined(Expression expression, final Map values) {
    return (Expression)
        expression.transformUp(
            new scala.runtime.AbstractPartialFunction() {
              public boolean isDefinedAt(Object node) {
                return node instanceof AttributeReference
                    && values.containsKey(((AttributeReference) node).exprId());
              }

              public Object applyOrElse(Object node, scala.Function1 otherwise) {
                return isDefinedAt(node)
                    ? values.get(((AttributeReference) node).exprId())
                    : otherwise.apply(node);
              }
            });
  }

  /** Add a condition; a BETWEEN over a cheap expression is added as its two comparisons. */
  private static void addComparisons(Expression condition, List conditions) {
    Expression with = kind(condition).equals("Between") ? only(condition) : null;
    if (with != null && kind(with).equals("With") && with.children().size() == 2) {
      final Expression input = only((Expression) with.children().apply(1));
      Expression both = (Expression) with.children().apply(0);
      if (both instanceof And && input != null && input.deterministic() && !calls(input)) {
        for (int n = 0; n < 2; n++) {
          conditions.add(withInput((Expression) both.children().apply(n), input));
        }
        return;
      }
    }
    conditions.add(condition);
  }

  private static Expression only(Expression node) {
    return node.children().size() == 1 ? (Expression) node.children().head() : null;
  }

  private static Object withInput(Expression comparison, final Expression input) {
    return comparison.transformUp(
        new AbstractPartialFunction() {
          public boolean isDefinedAt(Object node) {
            return kind(node).equals("CommonExpressionRef");
          }

          public Object applyOrElse(Object node, Function1 otherwise) {
            return kind(node).equals("CommonExpressionRef") ? input : otherwise.apply(node);
          }
        });
  }

  private static boolean hasSubquery(Expression node) {
    return has(node, "Subquery");
  }

  private static boolean hasPython(Expression node) {
    return has(node, "Python");
  }

  private static boolean has(Expression node, String word) {
    if (node.getClass().getName().indexOf(word) >= 0) {
      return true;
    }
    for (Iterator children = node.children().iterator(); children.hasNext(); ) {
      if (has((Expression) children.next(), word)) {
        return true;
      }
    }
    return false;
  }

  /** Return a number for the longest function call, the same for equal calls; 0 if none. */
  public long longestCall(Parts parts) {
    Expression[] longest = {null};
    int[] size = {0};
    List all = new ArrayList(parts.conditions);
    all.addAll(parts.outputs);
    for (int n = 0; n < all.size(); n++) {
      findLongest((Expression) all.get(n), longest, size);
    }
    if (longest[0] == null) {
      return 0;
    }
    List only = new ArrayList();
    only.add(named(longest[0], "call"));
    parts.longest = new Project(QueryPlans.seq(only), parts.leaf);
    return id(parts.longest);
  }

  private static void findLongest(Expression node, Expression[] longest, int[] size) {
    if (!CHEAP.contains(kind(node)) && node.resolved()) {
      int length = node.sql().length();
      if (length > size[0]) {
        size[0] = length;
        longest[0] = node;
      }
      return;
    }
    for (Iterator children = node.children().iterator(); children.hasNext(); ) {
      findLongest((Expression) children.next(), longest, size);
    }
  }

  // ---- Queries over the same tuples as one plan, with a bit for each query ----

  /** A plan for several queries, and the rows and columns of each. */
  public static class Group {
    public LogicalPlan driver;
    public LogicalPlan job;
    final StringBuilder members = new StringBuilder();

    /** Return one line per member: its bit or its line in the table, then the names of columns. */
    public String describe() {
      return members.toString();
    }
  }

  /**
   * Return a plan that computes, for every tuple, which members select it and what they output.
   *
   * An output is computed only if a member that outputs it selects the tuple. Otherwise `1 / x`
   * with `WHERE x <> 0` would fail on rows that its query never sees. Equal outputs of several
   * members share a column, and equal predicates share a bit.
   */
  public Group group(List members) {
    LogicalPlan leaf = ((Parts) members.get(0)).leaf;
    List predicates = new ArrayList();
    List values = new ArrayList();
    List askers = new ArrayList();
    Group group = new Group();
    Set plain = new HashSet();
    boolean all = false;
    for (int n = 0; n < members.size(); n++) {
      Parts parts = (Parts) members.get(n);
      Expression predicate = parts.predicate();
      int bit = -1;
      if (predicate == null) {
        all = true;
      } else {
        bit = place(predicates, predicate);
      }
      group.members.append(bit);
      for (int m = 0; m < parts.outputs.size(); m++) {
        Expression value = value((NamedExpression) parts.outputs.get(m));
        if (value instanceof Attribute) {
          String name = columnName(value, leaf);
          plain.add(name);
          group.members.append("\t=").append(name);
          continue;
        }
        int place = place(values, value);
        if (place == askers.size()) {
          askers.add(new ArrayList());
        }
        ((List) askers.get(place)).add(predicate);
        group.members.append("\t__hg_c").append(place);
      }
      group.members.append('\n');
    }
    List items = new ArrayList();
    if (!predicates.isEmpty()) {
      items.add(named(mask(predicates, 0, predicates.size()), MASK));
    }
    for (int n = 0; n < values.size(); n++) {
      Expression value = (Expression) values.get(n);
      items.add(named(guarded(value, (List) askers.get(n)), "__hg_c" + n));
    }
    List columns = new ArrayList();
    for (Iterator attributes = leaf.output().iterator(); attributes.hasNext(); ) {
      Attribute column = (Attribute) attributes.next();
      if (plain.contains(column.name()) || column.name().equals(ARRIVED)) {
        columns.add(column);
      }
    }
    columns.addAll(items);
    group.driver = items.isEmpty() ? null : new Project(QueryPlans.seq(items), leaf);
    LogicalPlan wanted = all ? leaf : new Filter(or(predicates), leaf);
    group.job = new Project(QueryPlans.seq(columns), wanted);
    return group;
  }

  private static int place(List expressions, Expression expression) {
    for (int n = 0; n < expressions.size(); n++) {
      if (sameExpression((Expression) expressions.get(n), expression)) {
        return n;
      }
    }
    expressions.add(expression);
    return expressions.size() - 1;
  }

  /** Return an expression for the bits of conditions as one number, as a balanced tree. */
  private static Expression mask(List conditions, int first, int end) {
    if (end - first == 1) {
      return choice((Expression) conditions.get(first), literal(Long.valueOf(1L << first)),
          literal(Long.valueOf(0L)));
    }
    int middle = (first + end) / 2;
    return new BitwiseOr(mask(conditions, first, middle), mask(conditions, middle, end));
  }

  private static Expression choice(Expression condition, Expression value, Expression otherwise) {
    List branches = new ArrayList();
    branches.add(new Tuple2(condition, value));
    return new CaseWhen(
        QueryPlans.seq(branches), otherwise == null ? Option.empty() : new Some(otherwise));
  }

  private static Expression guarded(Expression value, List askers) {
    if (askers.contains(null)) {
      return value;
    }
    List different = new ArrayList();
    for (int n = 0; n < askers.size(); n++) {
      place(different, (Expression) askers.get(n));
    }
    return choice(or(different), value, null);
  }

  private static Expression or(List conditions) {
    return or(conditions, 0, conditions.size());
  }

  private static Expression or(List conditions, int first, int end) {
    if (end - first == 1) {
      return (Expression) conditions.get(first);
    }
    int middle = (first + end) / 2;
    return new Or(or(conditions, first, middle), or(conditions, middle, end));
  }

  // ---- Queries that differ only in constants, as a join with a table of constants ----

  /** A query with placeholders for its constants, and these constants. */
  public static class Form {
    final List conditions = new ArrayList();
    final List constants = new ArrayList();
    final List keys = new ArrayList();
    final List outputs;
    final LogicalPlan leaf;
    LogicalPlan plan;
    public long id;
    public boolean equality;

    Form(List outputs, LogicalPlan leaf) {
      this.outputs = outputs;
      this.leaf = leaf;
    }
  }

  /**
   * Return the form of a query; null if no condition compares something with a constant.
   *
   * Constants stay in all conditions up to the last one that may fail, except in the query's last
   * condition. A join tries conditions in its own order, and a query that shares a plan must fail
   * on the same rows as alone.
   */
  public synchronized Form form(Parts parts) {
    Form form = new Form(parts.outputs, parts.leaf);
    int count = parts.conditions.size();
    int failing = -1;
    for (int n = 0; n < count; n++) {
      failing = neverFails((Expression) parts.conditions.get(n)) ? failing : n;
    }
    for (int n = 0; n < count; n++) {
      Expression condition = (Expression) parts.conditions.get(n);
      boolean free = n > failing || n == count - 1;
      form.conditions.add(free ? withoutConstant(condition, form) : condition);
    }
    if (form.keys.isEmpty()) {
      return null;
    }
    // The names of outputs may differ between queries, but a table has one list of columns.
    form.plan = new Project(QueryPlans.seq(form.outputs), filter(form.conditions, form.leaf));
    form.id = id(form.plan);
    return form;
  }

  private Expression withoutConstant(Expression condition, Form form) {
    if (!COMPARISONS.contains(kind(condition))) {
      return condition;
    }
    List sides = QueryPlans.list(condition.children());
    for (int n = 0; n < 2; n++) {
      Expression constant = (Expression) sides.get(n);
      Expression other = (Expression) sides.get(1 - n);
      if (!constant.foldable() || other.foldable() || !isConstant(constant)) {
        continue;
      }
      boolean equal = kind(condition).equals("EqualTo");
      if (constant.dataType().catalogString().equals("string") && !equal) {
        continue;
      }
      Object value;
      try {
        value = constant.eval(null);
      } catch (Exception error) {
        continue;
      }
      if (value == null) {
        continue;
      }
      Attribute key = placeholder(form.keys.size(), constant.dataType());
      form.keys.add(key);
      form.constants.add(value);
      form.equality = form.equality || equal;
      List changed = new ArrayList(sides);
      changed.set(n, key);
      return (Expression) condition.withNewChildren(QueryPlans.seq(changed));
    }
    return condition;
  }

  private static boolean isConstant(Expression constant) {
    return constant.deterministic() && CONSTANTS.contains(constant.dataType().catalogString());
  }

  /** Return the column of the table of constants at a place, the same for all forms. */
  private Attribute placeholder(int place, DataType type) {
    String name = "__hg_k" + place + "_" + type.catalogString();
    Attribute column = (Attribute) placeholders.get(name);
    if (column == null) {
      column =
          new AttributeReference(
              name, type, false, Metadata$.MODULE$.empty(),
              NamedExpression$.MODULE$.newExprId(), (Seq) Nil$.MODULE$);
      placeholders.put(name, column);
    }
    return column;
  }

  /**
   * Return a plan with one row for every tuple and every member that selects it.
   *
   * Equal queries share a line of the table. On the driver lane, a row is identified by its number.
   */
  public Group constants(List members, String rowColumn) {
    Form first = (Form) members.get(0);
    Group group = new Group();
    List lines = new ArrayList();
    List rows = new ArrayList();
    for (int n = 0; n < members.size(); n++) {
      Form form = (Form) members.get(n);
      int line = lines.indexOf(form.constants);
      if (line < 0) {
        line = lines.size();
        lines.add(form.constants);
        Object[] values = new Object[form.constants.size() + 1];
        for (int m = 0; m < form.constants.size(); m++) {
          values[m] = form.constants.get(m);
        }
        values[form.constants.size()] = Integer.valueOf(line);
        rows.add(new GenericInternalRow(values));
      }
      group.members.append(line);
      int computed = 0;
      for (int m = 0; m < first.outputs.size(); m++) {
        Expression value = value((NamedExpression) first.outputs.get(m));
        group.members.append(
            value instanceof Attribute
                ? "\t=" + columnName(value, first.leaf)
                : "\t__hg_c" + m);
      }
      group.members.append('\n');
    }
    AttributeReference member =
        new AttributeReference(
            MEMBER, IntegerType$.MODULE$, false, Metadata$.MODULE$.empty(),
            NamedExpression$.MODULE$.newExprId(), (Seq) Nil$.MODULE$);
    List table = new ArrayList(first.keys);
    table.add(member);
    LogicalPlan constants =
        new LocalRelation(QueryPlans.seq(table), QueryPlans.seq(rows), false, Option.empty());
    List early = new ArrayList();
    List tests = new ArrayList();
    for (int n = 0; n < first.conditions.size(); n++) {
      Expression condition = (Expression) first.conditions.get(n);
      (refersTo(condition, first.keys) ? tests : early).add(condition);
    }
    LogicalPlan left = filter(early, first.leaf);
    LogicalPlan joined =
        new Join(left, constants, Inner$.MODULE$, new Some(and(tests)), JoinHint$.MODULE$.NONE());
    List items = new ArrayList();
    List whole = new ArrayList();
    Set plain = new HashSet();
    for (int m = 0; m < first.outputs.size(); m++) {
      Expression value = value((NamedExpression) first.outputs.get(m));
      if (value instanceof Attribute) {
        plain.add(columnName(value, first.leaf));
      } else {
        items.add(named(value, "__hg_c" + m));
      }
    }
    List driver = new ArrayList();
    for (Iterator columns = first.leaf.output().iterator(); columns.hasNext(); ) {
      Attribute column = (Attribute) columns.next();
      if (column.name().equals(rowColumn)) {
        driver.add(column);
      }
      if (plain.contains(column.name()) || column.name().equals(ARRIVED)) {
        whole.add(column);
      }
    }
    driver.add(member);
    driver.addAll(items);
    whole.add(member);
    whole.addAll(items);
    group.driver = new Project(QueryPlans.seq(driver), joined);
    group.job = new Project(QueryPlans.seq(whole), joined);
    return group;
  }

  private static boolean refersTo(Expression condition, List keys) {
    for (int n = 0; n < keys.size(); n++) {
      if (condition.references().contains((NamedExpression) keys.get(n))) {
        return true;
      }
    }
    return false;
  }
}
