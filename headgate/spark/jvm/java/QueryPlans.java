import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedExtractValue;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.PipeOperator;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.optimizer.InlineCTE;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import scala.Function1;
import scala.Option;
import scala.Some;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/**
 * Functions that read, split and rewrite Spark's logical plans, in one call each: py4j is slow.
 *
 * Relations whose rows are supplied at each call are leaves: `LogicalRDD` nodes over a named RDD.
 * Columns of a leaf that begin with HIDDEN are never shown to users. The Janino compiler that ships
 * with Spark compiles this class at start, hence no lambdas and no generics.
 */
public class QueryPlans {
  private static final String HIDDEN = "__hg_";
  private static final String WINDOW = HIDDEN + "window";
  private static final String MARK = HIDDEN + "input";
  private static final String GIVEN = HIDDEN + "given";
  private static final String TIME_WINDOW = "spark.timeWindow";
  private static final String SESSION_WINDOW = "spark.sessionWindow";
  private static final java.util.regex.Pattern TYPED =
      java.util.regex.Pattern.compile("(?is)(?:date|timestamp\\w*)\\s*['\"](.*)");
  private static final java.util.regex.Pattern CLOCK_WORD =
      java.util.regex.Pattern.compile("(?is)\\s*(now|today|tomorrow|yesterday)\\b");

  /** Raised if a plan cannot be rewritten; the message has the operator and its line. */
  public static class NotPossible extends RuntimeException {
    public NotPossible(String message) {
      super(message);
    }
  }

  /** Return a parsed plan in which relations with a window read the view of that window. */
  public LogicalPlan withInputs(LogicalPlan parsed) {
    return rewritten(
        parsed,
        new Rewrite() {
          LogicalPlan apply(LogicalPlan node) {
            String number = mark(node);
            if (number == null) {
              return node;
            }
            Seq names = ((UnresolvedRelation) node).multipartIdentifier();
            LogicalPlan view =
                new UnresolvedRelation(
                    seq(Arrays.asList(new Object[] {MARK + number})),
                    org.apache.spark.sql.util.CaseInsensitiveStringMap.empty(), false);
            return SubqueryAlias$.MODULE$.apply((String) names.last(), view);
          }
        });
  }

  /** A function that rewrites one node of a parsed plan. */
  private abstract static class Rewrite {
    abstract LogicalPlan apply(LogicalPlan node);
  }

  /** Return a parsed plan with every node rewritten, including subqueries and CTEs. */
  private static LogicalPlan rewritten(LogicalPlan parsed, final Rewrite rewrite) {
    return (LogicalPlan)
        parsed.transformDownWithSubqueries(
            new AbstractPartialFunction() {
              public boolean isDefinedAt(Object node) {
                return true;
              }

              public Object applyOrElse(Object node, Function1 otherwise) {
                LogicalPlan rewrittenNode = rewrite.apply((LogicalPlan) node);
                if (!(rewrittenNode instanceof UnresolvedWith)) {
                  return rewrittenNode;
                }
                UnresolvedWith with = (UnresolvedWith) rewrittenNode;
                List tables = new ArrayList();
                for (Iterator relations = with.cteRelations().iterator(); relations.hasNext(); ) {
                  Tuple3 table = (Tuple3) relations.next();
                  LogicalPlan plan = rewritten((LogicalPlan) table._2(), rewrite);
                  tables.add(new Tuple3(table._1(), plan, table._3()));
                }
                return new UnresolvedWith(with.child(), seq(tables), with.allowRecursion());
              }
            });
  }

  /**
   * Return the relations with a window, one per line: number, line, place, whether the name is that
   * of a common table, and name.
   */
  public String inputs(LogicalPlan parsed) {
    final StringBuilder text = new StringBuilder();
    final Set ofTables = new HashSet();
    findTables(parsed, new HashSet(), ofTables);
    visitAll(
        parsed,
        new Visitor() {
          void plan(LogicalPlan plan, int depth) {
            String number = mark(plan);
            if (number != null) {
              Seq names = ((UnresolvedRelation) plan).multipartIdentifier();
              text.append(number.replace('\t', ' ').replace('\n', ' ')).append('\t');
              text.append(line(plan)).append('\t').append(plan.origin().startIndex());
              text.append('\t').append(ofTables.contains(number)).append('\t');
              text.append(names.mkString(".")).append('\n');
            }
          }

          void expression(Expression node, LogicalPlan owner) {}
        });
    return text.toString();
  }

  /**
   * Find the relations with a window whose name is that of a common table.
   *
   * @param tables the names of the common tables that a plan sees, in lower case
   * @param found receives the numbers of these relations
   */
  private static void findTables(LogicalPlan plan, Set tables, Set found) {
    String number = mark(plan);
    if (number != null) {
      Seq names = ((UnresolvedRelation) plan).multipartIdentifier();
      if (names.size() == 1 && tables.contains(((String) names.last()).toLowerCase())) {
        found.add(number);
      }
    }
    Set visible = tables;
    if (plan instanceof UnresolvedWith) {
      visible = new HashSet(tables);
      Iterator relations = ((UnresolvedWith) plan).cteRelations().iterator();
      while (relations.hasNext()) {
        Tuple3 table = (Tuple3) relations.next();
        findTables((LogicalPlan) table._2(), visible, found);
        visible.add(((String) table._1()).toLowerCase());
      }
    }
    for (Iterator children = plan.children().iterator(); children.hasNext(); ) {
      findTables((LogicalPlan) children.next(), visible, found);
    }
    for (Iterator items = plan.expressions().iterator(); items.hasNext(); ) {
      findTablesIn((Expression) items.next(), visible, found);
    }
  }

  private static void findTablesIn(Expression node, Set tables, Set found) {
    if (node instanceof SubqueryExpression) {
      findTables((LogicalPlan) ((SubqueryExpression) node).plan(), tables, found);
    }
    for (Iterator children = node.children().iterator(); children.hasNext(); ) {
      findTablesIn((Expression) children.next(), tables, found);
    }
  }

  /** Return the classes of all nodes of a parsed plan, separated by newlines. */
  public String kinds(LogicalPlan parsed) {
    final StringBuilder text = new StringBuilder();
    visitAll(
        parsed,
        new Visitor() {
          void plan(LogicalPlan plan, int depth) {
            text.append(kind(plan)).append('\n');
          }

          void expression(Expression node, LogicalPlan owner) {}
        });
    return text.toString();
  }

  private static String mark(Object node) {
    return node instanceof UnresolvedRelation
        ? ((UnresolvedRelation) node).options().get(MARK)
        : null;
  }

  /**
   * Return a parsed plan in which `window` is the window of the supplied rows.
   *
   * Within one window it is a constant, so it needs no GROUP BY. It becomes a scalar subquery over
   * a relation of one row, whose name has the number of the input: the first in FROM, if several are
   * of one stream.
   */
  public LogicalPlan withGivenWindow(LogicalPlan parsed) {
    final Map inputs = new LinkedHashMap();
    visitAll(
        parsed,
        new Visitor() {
          void plan(LogicalPlan plan, int depth) {
            String number = mark(plan);
            if (number != null) {
              inputs.putIfAbsent(
                  ((String) ((UnresolvedRelation) plan).multipartIdentifier().last()).toLowerCase(),
                  number);
            }
          }

          void expression(Expression node, LogicalPlan owner) {}
        });
    final int count = inputs.size();
    visitAll(
        parsed,
        new Visitor() {
          void plan(LogicalPlan plan, int depth) {
            if (plan instanceof SubqueryAlias) {
              String number = mark(((SubqueryAlias) plan).child());
              if (number != null) {
                inputs.put(((SubqueryAlias) plan).alias().toLowerCase(), number);
              }
            }
          }

          void expression(Expression node, LogicalPlan owner) {}
        });
    final AbstractPartialFunction replace =
        new AbstractPartialFunction() {
          public boolean isDefinedAt(Object node) {
            return window(node, inputs, count) != null;
          }

          public Object applyOrElse(Object node, Function1 otherwise) {
            Expression value = window(node, inputs, count);
            return value == null ? otherwise.apply(node) : value;
          }
        };
    return rewritten(
        parsed,
        new Rewrite() {
          LogicalPlan apply(LogicalPlan node) {
            LogicalPlan plan = node;
            if (node instanceof Project) {
              Project project = (Project) node;
              plan = new Project(named(project.projectList(), inputs, count), project.child());
            } else if (node instanceof Aggregate) {
              Aggregate grouped = (Aggregate) node;
              plan =
                  new Aggregate(
                      grouped.groupingExpressions(),
                      named(grouped.aggregateExpressions(), inputs, count), grouped.child(),
                      grouped.hint());
            }
            return (LogicalPlan) plan.transformExpressions(replace);
          }
        });
  }

  /** Return outputs with the window replaced and names kept: window.end is named `end`. */
  private static Seq named(Seq outputs, Map inputs, int count) {
    List namedOutputs = new ArrayList();
    for (Iterator items = outputs.iterator(); items.hasNext(); ) {
      Object output = items.next();
      Expression value = window(output, inputs, count);
      namedOutputs.add(
          value == null
              ? output
              : alias(
                  value, (String) ((UnresolvedAttribute) output).nameParts().last(),
                  NamedExpression$.MODULE$.newExprId()));
    }
    return seq(namedOutputs);
  }

  private static Expression window(Object node, Map inputs, int count) {
    if (!(node instanceof UnresolvedAttribute)) {
      return null;
    }
    List parts = list(((UnresolvedAttribute) node).nameParts());
    int place =
        parts.size() > 1 && inputs.containsKey(((String) parts.get(0)).toLowerCase()) ? 1 : 0;
    if (parts.size() <= place || !((String) parts.get(place)).equalsIgnoreCase("window")
        || (place == 0 && count != 1)) {
      return null;
    }
    Object number =
        place == 0 ? inputs.values().iterator().next()
            : inputs.get(((String) parts.get(0)).toLowerCase());
    List column = new ArrayList();
    column.add(new UnresolvedAttribute(seq(Arrays.asList(new Object[] {WINDOW}))));
    LogicalPlan windowRelation =
        new UnresolvedRelation(
            seq(Arrays.asList(new Object[] {GIVEN + number})),
            org.apache.spark.sql.util.CaseInsensitiveStringMap.empty(), false);
    Expression value =
        new ScalarSubquery(
            new Project(seq(column), windowRelation), (Seq) Nil$.MODULE$,
            NamedExpression$.MODULE$.newExprId(), (Seq) Nil$.MODULE$, Option.empty(),
            Option.empty(), Option.empty());
    for (int n = place + 1; n < parts.size(); n++) {
      Expression field =
          org.apache.spark.sql.catalyst.expressions.Literal$.MODULE$.apply(parts.get(n));
      value = new UnresolvedExtractValue(value, field);
    }
    return value;
  }

  /** Return the calls of window functions, one per line: name, line and arguments. */
  public String windowCalls(LogicalPlan parsed) {
    final StringBuilder text = new StringBuilder();
    visitAll(
        parsed,
        new Visitor() {
          void plan(LogicalPlan plan, int depth) {}

          void expression(Expression node, LogicalPlan owner) {
            if (!(node instanceof UnresolvedFunction)) {
              return;
            }
            UnresolvedFunction call = (UnresolvedFunction) node;
            String name = ((String) call.nameParts().last()).toLowerCase();
            if (!name.equals("window") && !name.equals("session_window")) {
              return;
            }
            text.append(name).append('\t').append(line(call));
            for (Iterator arguments = call.arguments().iterator(); arguments.hasNext(); ) {
              Expression argument = (Expression) arguments.next();
              text.append('\t').append(written(argument));
            }
            text.append('\n');
          }
        });
    return text.toString();
  }

  private static String written(Expression argument) {
    if (argument instanceof Literal && ((Literal) argument).value() != null) {
      Literal literal = (Literal) argument;
      return literal.dataType().typeName().equals("string")
          ? literal.value().toString()
          : literal.sql();
    }
    return argument.sql().replace('\t', ' ').replace('\n', ' ');
  }

  static String line(TreeNode node) {
    Option line = node.origin().line();
    return line.isDefined() ? line.get().toString() : "";
  }

  /** A callback for every plan and expression, including subqueries. */
  abstract static class Visitor {
    abstract void plan(LogicalPlan plan, int depth);

    abstract void expression(Expression node, LogicalPlan owner);
  }

  static void visitAll(LogicalPlan root, Visitor visitor) {
    List plans = new ArrayList();
    plans.add(new Object[] {root, Integer.valueOf(0)});
    while (!plans.isEmpty()) {
      Object[] next = (Object[]) plans.remove(plans.size() - 1);
      LogicalPlan plan = (LogicalPlan) next[0];
      int depth = ((Integer) next[1]).intValue();
      visitor.plan(plan, depth);
      List nested = new ArrayList();
      List expressions = new ArrayList();
      for (Iterator items = plan.expressions().iterator(); items.hasNext(); ) {
        expressions.add(items.next());
      }
      while (!expressions.isEmpty()) {
        Expression node = (Expression) expressions.remove(expressions.size() - 1);
        visitor.expression(node, plan);
        if (node instanceof SubqueryExpression) {
          nested.add(((SubqueryExpression) node).plan());
        }
        for (Iterator items = node.children().iterator(); items.hasNext(); ) {
          expressions.add(items.next());
        }
      }
      List children = new ArrayList();
      for (Iterator items = plan.children().iterator(); items.hasNext(); ) {
        children.add(items.next());
      }
      for (Iterator items = plan.innerChildren().iterator(); items.hasNext(); ) {
        Object inner = items.next();
        if (inner instanceof LogicalPlan && !children.contains(inner) && !nested.contains(inner)
            && !(plan instanceof View)) {
          children.add(inner);
        }
      }
      for (int n = nested.size() - 1; n >= 0; n--) {
        plans.add(new Object[] {nested.get(n), Integer.valueOf(-(Math.abs(depth) + 1))});
      }
      for (int n = children.size() - 1; n >= 0; n--) {
        plans.add(new Object[] {children.get(n), Integer.valueOf(Math.abs(depth) + 1)});
      }
    }
  }

  /**
   * Return an analyzed plan as lines, in pre-order.
   *
   * "N depth kind line detail" is a node; a negative depth begins a subquery of the node above. "E
   * class line" is a class of expressions. "R class line" is the first expression that is not
   * deterministic.
   */
  public String describe(LogicalPlan plan) {
    final StringBuilder text = new StringBuilder();
    final Set seen = new HashSet();
    final boolean[] random = {false};
    visitAll(
        plan,
        new Visitor() {
          void plan(LogicalPlan plan, int depth) {
            text.append("N\t").append(depth).append('\t').append(kind(plan)).append('\t');
            text.append(line(plan)).append('\t').append(detail(plan)).append('\n');
          }

          void expression(Expression node, LogicalPlan owner) {
            String name = kind(node);
            if (!node.deterministic() && !random[0] && fixedBelow(node)) {
              random[0] = true;
              text.append("R\t").append(name).append('\t').append(line(node)).append('\n');
            }
            String word = clockWord(node);
            if (word != null && seen.add(word)) {
              text.append("E\t").append(word).append('\t').append(line(node)).append('\n');
            }
            if (seen.add(name)) {
              text.append("E\t").append(name).append('\t').append(line(node)).append('\n');
            }
          }
        });
    return text.toString();
  }

  /** Return the word of a time that depends on the clock, as in CAST('now' AS DATE), or null. */
  private static String clockWord(Expression node) {
    if (node instanceof RuntimeReplaceable) {
      return clockWord(((RuntimeReplaceable) node).replacement()); // to_date('now'), for example
    }
    boolean casts = kind(node).equals("Cast");
    if (!casts && !(node instanceof Literal)) {
      return null;
    }
    String type = node.dataType().typeName();
    if (!type.equals("date") && !type.startsWith("timestamp")) {
      return null;
    }
    Object text = null;
    try {
      Expression value = casts ? (Expression) node.children().head() : null;
      text = !casts ? writtenTime(node) : value.foldable() ? value.eval(null) : null;
    } catch (Exception error) {
      return null; // Spark reports it where it computes the value
    }
    java.util.regex.Matcher word = CLOCK_WORD.matcher(text == null ? "" : text.toString());
    return word.lookingAt() ? "'" + word.group(1).toLowerCase() + "'" : null;
  }

  /** Return the text of a literal such as TIMESTAMP'now', whose value is that of the moment. */
  private static String writtenTime(Expression literal) {
    org.apache.spark.sql.catalyst.trees.Origin origin = literal.origin();
    if (!origin.sqlText().isDefined() || !origin.startIndex().isDefined()) {
      return null;
    }
    String sql = (String) origin.sqlText().get();
    int start = ((Integer) origin.startIndex().get()).intValue();
    java.util.regex.Matcher typed = TYPED.matcher(sql);
    typed.region(sql.offsetByCodePoints(0, start), sql.length());
    return typed.lookingAt() ? typed.group(1) : null;
  }

  private static boolean fixedBelow(Expression node) {
    for (Iterator children = node.children().iterator(); children.hasNext(); ) {
      if (!((Expression) children.next()).deterministic()) {
        return false;
      }
    }
    return true;
  }

  static String kind(Object node) {
    String name = node.getClass().getSimpleName();
    return name.endsWith("$") ? name.substring(0, name.length() - 1) : name;
  }

  static String detail(LogicalPlan plan) {
    if (plan instanceof Join) {
      String type = ((Join) plan).joinType().toString();
      return type.indexOf('(') > 0 ? type.substring(0, type.indexOf('(')) : type;
    }
    String leaf = leafName(plan);
    if (leaf != null) {
      return leaf;
    }
    if (plan instanceof SubqueryAlias) {
      return ((SubqueryAlias) plan).alias();
    }
    return plan instanceof org.apache.spark.sql.catalyst.plans.logical.CTERelationRef
        ? Long.toString(((org.apache.spark.sql.catalyst.plans.logical.CTERelationRef) plan).cteId())
        : plan instanceof org.apache.spark.sql.catalyst.plans.logical.CTERelationDef
            ? Long.toString(
                ((org.apache.spark.sql.catalyst.plans.logical.CTERelationDef) plan).id())
            : "";
  }

  /** Return the leaves of a plan, including subqueries, one per line: name and schema. */
  public String relations(LogicalPlan plan) {
    final StringBuilder text = new StringBuilder();
    visitAll(
        plan,
        new Visitor() {
          void plan(LogicalPlan plan, int depth) {
            String name = leafName(plan);
            if (name != null) {
              text.append(name).append('\t').append(plan.schema().json()).append('\n');
            }
          }

          void expression(Expression node, LogicalPlan owner) {}
        });
    return text.toString();
  }

  /** Return the name of a leaf; null for any other plan. */
  static String leafName(LogicalPlan plan) {
    if (!(plan instanceof LogicalRDD)) {
      return null;
    }
    RDD rdd = ((LogicalRDD) plan).rdd();
    try {
      return (String) rdd.getClass().getField("name").get(rdd);
    } catch (Exception error) {
      return null;
    }
  }

  /** Return a plan without aliases of relations, views, pipes and common table expressions. */
  public LogicalPlan plain(LogicalPlan analyzed) {
    LogicalPlan inlined = new InlineCTE(true, false, false).apply(analyzed);
    LogicalPlan bare = EliminateSubqueryAliases$.MODULE$.apply(inlined);
    return (LogicalPlan)
        bare.transformUpWithSubqueries(
            new AbstractPartialFunction() {
              public boolean isDefinedAt(Object node) {
                return node instanceof View || node instanceof PipeOperator;
              }

              public Object applyOrElse(Object node, Function1 otherwise) {
                return isDefinedAt(node)
                    ? ((LogicalPlan) node).children().head()
                    : otherwise.apply(node);
              }
            });
  }

  public Dataset frame(SparkSession session, LogicalPlan plan) {
    return Dataset$.MODULE$.ofRows(session, plan);
  }

  /** Return a plan whose leaves read the frames of these names, with columns matched by name. */
  public Dataset bound(SparkSession session, LogicalPlan plan, List names, List frames) {
    final Map planByName = new HashMap();
    for (int n = 0; n < names.size(); n++) {
      planByName.put(names.get(n), ((Dataset) frames.get(n)).queryExecution().analyzed());
    }
    LogicalPlan boundPlan =
        (LogicalPlan)
            plan.transformUpWithSubqueries(
                new AbstractPartialFunction() {
                  public boolean isDefinedAt(Object node) {
                    return node instanceof LogicalRDD;
                  }

                  public Object applyOrElse(Object node, Function1 otherwise) {
                    if (!(node instanceof LogicalRDD)) {
                      return otherwise.apply(node);
                    }
                    LogicalPlan leaf = (LogicalPlan) node;
                    LogicalPlan rows = (LogicalPlan) planByName.get(leafName(leaf));
                    return rows == null ? leaf : renamed(leaf, rows);
                  }
                });
    return Dataset$.MODULE$.ofRows(session, boundPlan);
  }

  /** Return rows with the attributes of a leaf; missing columns are NULL. */
  static LogicalPlan renamed(LogicalPlan leaf, LogicalPlan rows) {
    Map columns = new HashMap();
    for (Iterator items = rows.output().iterator(); items.hasNext(); ) {
      Attribute column = (Attribute) items.next();
      columns.put(column.name(), column);
    }
    List list = new ArrayList();
    for (Iterator items = leaf.output().iterator(); items.hasNext(); ) {
      Attribute wanted = (Attribute) items.next();
      Expression value = (Expression) columns.get(wanted.name());
      if (value == null) {
        value = new Literal(null, wanted.dataType());
      }
      list.add(alias(value, wanted.name(), wanted.exprId()));
    }
    return new Project(seq(list), rows);
  }

  private static Alias alias(Expression value, String name, ExprId id) {
    return new Alias(
        value, name, id, (Seq) Nil$.MODULE$, Option.empty(), (Seq) Nil$.MODULE$);
  }

  public static Seq seq(List values) {
    return scala.jdk.javaapi.CollectionConverters.asScala(values).toSeq();
  }

  static List list(Seq values) {
    List elements = new ArrayList();
    for (Iterator items = values.iterator(); items.hasNext(); ) {
      elements.add(items.next());
    }
    return elements;
  }

  // ---- Carrying hidden columns from the leaves to the output ----

  /** A rewritten plan and the hidden columns at the end of its output. */
  public static class Carried {
    public final LogicalPlan plan;
    final List hidden;

    /** Whether a window has a result even if none of its rows passes WHERE, as with count(*). */
    public boolean always;

    Carried(LogicalPlan plan, List hidden) {
      this.plan = plan;
      this.hidden = hidden;
    }

    /** Return the names of the hidden columns, separated by tabs. */
    public String names() {
      StringBuilder text = new StringBuilder();
      for (int n = 0; n < hidden.size(); n++) {
        text.append(n == 0 ? "" : "\t").append(((Attribute) hidden.get(n)).name());
      }
      return text.toString();
    }
  }

  /**
   * Return a plan of joined tuples with the hidden columns of every leaf. Each join requires that
   * tuples lie in each other's windows.
   *
   * @param sizes for each leaf, by number, how far back its window reaches; empty if the conditions
   *     of the query bound the times
   * @param byNumber true for ROWS windows, where hidden columns of a leaf count the tuples of other
   *     leaves that had arrived
   */
  public Carried pairs(LogicalPlan plan, Map sizes, boolean byNumber) {
    return new Carrier("pairs", sizes, byNumber).run(plan);
  }

  /** Return a union with the hidden arrival and time of each tuple. */
  public Carried union(LogicalPlan plan) {
    return new Carrier("union", new HashMap(), false).run(plan);
  }

  /** Return a plan that computes every window of its only leaf separately, with the window. */
  public Carried windows(LogicalPlan plan) {
    return new Carrier("windows", new HashMap(), false).run(plan);
  }

  /** Return a plan that groups by session, with the session as a hidden column. */
  public Carried sessions(LogicalPlan plan) {
    return new Carrier("sessions", new HashMap(), false).run(plan);
  }

  /** Return all sessions of a plan that groups by session, including those that HAVING drops. */
  public Carried allSessions(LogicalPlan plan) {
    LogicalPlan node = plan;
    while (!(node instanceof Aggregate)) {
      node = (LogicalPlan) node.children().head();
    }
    Aggregate grouped = (Aggregate) node;
    Attribute session = marked(grouped.groupingExpressions(), SESSION_WINDOW);
    List only = new ArrayList();
    only.add(session);
    return new Carried(
        new Aggregate(grouped.groupingExpressions(), seq(only), grouped.child(), grouped.hint()),
        only);
  }

  /** Return a plan in which window(...) is the window of the supplied rows. */
  public Carried overGivenWindows(LogicalPlan plan) {
    return new Carrier("given", new HashMap(), false).run(plan);
  }

  private static Attribute marked(Seq expressions, String marker) {
    for (Iterator items = expressions.iterator(); items.hasNext(); ) {
      Object node = items.next();
      if (node instanceof Attribute && ((Attribute) node).metadata().contains(marker)) {
        return (Attribute) node;
      }
      if (node instanceof Alias && ((Alias) node).metadata().contains(marker)) {
        return ((Alias) node).toAttribute();
      }
    }
    return null;
  }

  private static class Carrier {
    private final String mode;
    private final Map sizes;
    private final boolean byNumber;
    private boolean withoutKeys;

    /** Columns that are NULL if an outer join has no tuple for them. */
    private final Set absent = new HashSet();

    Carrier(String mode, Map sizes, boolean byNumber) {
      this.mode = mode;
      this.sizes = sizes;
      this.byNumber = byNumber;
    }

    Carried run(LogicalPlan plan) {
      Carried carried = carry(plan);
      List visible = list(plan.output());
      List columns = new ArrayList(visible);
      if (mode.equals("given")) {
        return new Carried(new Project(seq(columns), carried.plan), new ArrayList());
      }
      if (!mode.equals("union") && readsInSubquery(carried.plan)) {
        throw new NotPossible("a subquery\t" + line(plan));
      }
      columns.addAll(carried.hidden);
      Carried all = new Carried(new Project(seq(columns), carried.plan), carried.hidden);
      all.always = withoutKeys;
      return all;
    }

    /** Return a rewritten node in which the window subquery is the window that its rows carry. */
    private Carried carry(LogicalPlan plan) {
      Carried carried = carryNode(plan);
      if (!mode.equals("windows") || carried.hidden.size() != 1) {
        return carried;
      }
      final Expression window = (Expression) carried.hidden.get(0);
      LogicalPlan changed =
          (LogicalPlan)
              carried.plan.transformExpressions(
                  new AbstractPartialFunction() {
                    public boolean isDefinedAt(Object node) {
                      return isGivenWindow(node);
                    }

                    public Object applyOrElse(Object node, Function1 otherwise) {
                      return isGivenWindow(node) ? window : otherwise.apply(node);
                    }
                  });
      return new Carried(changed, carried.hidden);
    }

    private static boolean isGivenWindow(Object node) {
      if (!(node instanceof ScalarSubquery)) {
        return false;
      }
      LogicalPlan plan = (LogicalPlan) ((ScalarSubquery) node).plan();
      while (plan.children().size() == 1) {
        plan = (LogicalPlan) plan.children().head();
      }
      String leaf = leafName(plan);
      return leaf != null && leaf.startsWith(GIVEN);
    }

    private Carried carryNode(LogicalPlan plan) {
      String leaf = leafName(plan);
      if (leaf != null) {
        return new Carried(plan, hiddenOf(plan));
      }
      Attribute window = windowMadeBy(plan);
      if (window != null) {
        return givenWindow(plan, window);
      }
      if (plan instanceof Project) {
        Project project = (Project) plan;
        Carried below = carry(project.child());
        return new Carried(
            new Project(withHidden(project.projectList(), below.hidden), below.plan),
            below.hidden);
      }
      if (plan instanceof Filter) {
        Carried below = carry(((Filter) plan).child());
        if (withoutKeys) {
          // HAVING cannot be checked for a window in which no row passes WHERE.
          throw new NotPossible("HAVING without GROUP BY\t" + line(plan));
        }
        return new Carried(new Filter(((Filter) plan).condition(), below.plan), below.hidden);
      }
      if (plan instanceof Generate) {
        Generate generate = (Generate) plan;
        Carried below = carry(generate.child());
        return new Carried(
            new Generate(
                generate.generator(), generate.unrequiredChildIndex(), generate.outer(),
                generate.qualifier(), generate.generatorOutput(), below.plan),
            below.hidden);
      }
      if (kind(plan).equals("LateralJoin")) {
        Carried below = carry((LogicalPlan) plan.children().head());
        List children = new ArrayList();
        children.add(below.plan);
        return new Carried((LogicalPlan) plan.withNewChildren(seq(children)), below.hidden);
      }
      if (plan instanceof Aggregate && !mode.equals("pairs") && !mode.equals("union")) {
        return aggregate((Aggregate) plan);
      }
      if (plan instanceof Join) {
        return join((Join) plan);
      }
      if (plan instanceof ResolvedHint) {
        return carry(((ResolvedHint) plan).child());
      }
      if (plan instanceof Union && mode.equals("union")) {
        return union((Union) plan);
      }
      if (plan instanceof Distinct && mode.equals("windows")) {
        Carried below = carry(((Distinct) plan).child());
        List columns = list(plan.output());
        columns.addAll(below.hidden);
        return new Carried(
            new Distinct(new Project(seq(columns), below.plan)), below.hidden);
      }
      if (plan instanceof Window && mode.equals("windows")) {
        Window window_ = (Window) plan;
        Carried below = carry(window_.child());
        List partition = list(window_.partitionSpec());
        partition.addAll(below.hidden);
        return new Carried(
            new Window(
                within(window_.windowExpressions(), below.hidden), seq(partition),
                window_.orderSpec(), below.plan, window_.hint()),
            below.hidden);
      }
      if (mode.equals("given") || !reads(plan)) {
        return asItIs(plan);
      }
      throw new NotPossible(kind(plan) + "\t" + line(plan));
    }

    /** Return any other node with rewritten children, for plans of one window. */
    private Carried asItIs(LogicalPlan plan) {
      if (!reads(plan)) {
        return new Carried(plan, new ArrayList());
      }
      List children = new ArrayList();
      for (Iterator items = plan.children().iterator(); items.hasNext(); ) {
        LogicalPlan child = (LogicalPlan) items.next();
        children.add(new Project(child.output(), carry(child).plan));
      }
      return new Carried((LogicalPlan) plan.withNewChildren(seq(children)), new ArrayList());
    }

    private List hiddenOf(LogicalPlan leaf) {
      List hidden = new ArrayList();
      for (Iterator columns = leaf.output().iterator(); columns.hasNext(); ) {
        Attribute column = (Attribute) columns.next();
        String name = column.name();
        boolean isWindow = name.equals(WINDOW);
        boolean wanted =
            mode.equals("windows") || mode.equals("given")
                ? isWindow
                : mode.equals("union")
                    ? name.equals(HIDDEN + "time") || name.equals(SharedPlans.ARRIVED)
                    : mode.equals("pairs") && name.startsWith(HIDDEN) && !isWindow;
        if (wanted) {
          hidden.add(column);
        }
      }
      return hidden;
    }

    /**
     * Return the column that a node computes for window(...); null for any other node.
     *
     * Returns null for a relation with a window clause, too: window(...) divides the rows of one
     * window there.
     */
    private Attribute windowMadeBy(LogicalPlan plan) {
      if (readsInput(plan)) {
        return null;
      }
      if (plan instanceof Project) {
        Project project = (Project) plan;
        for (Iterator items = project.projectList().iterator(); items.hasNext(); ) {
          Object node = items.next();
          if (node instanceof Alias && ((Alias) node).metadata().contains(TIME_WINDOW)
              && kind(((Alias) node).child()).equals("CreateNamedStruct")) {
            return ((Alias) node).toAttribute();
          }
        }
      }
      if (plan instanceof Filter && ((Filter) plan).child() instanceof Expand) {
        Attribute window = marked(((Filter) plan).child().output(), TIME_WINDOW);
        Expand expand = (Expand) ((Filter) plan).child();
        if (window != null && !expand.child().outputSet().contains(window)) {
          return window;
        }
      }
      return null;
    }

    private Carried givenWindow(LogicalPlan plan, Attribute window) {
      LogicalPlan child = (LogicalPlan) plan.children().head();
      child = (LogicalPlan) child.children().head();
      Carried below = carry(child);
      if (below.hidden.size() != 1) {
        throw new NotPossible("window(...)\t" + line(plan));
      }
      List columns = new ArrayList();
      Expression suppliedWindow = (Expression) below.hidden.get(0);
      columns.add(
          new Alias(
              suppliedWindow, window.name(), window.exprId(), (Seq) Nil$.MODULE$,
              new Some(window.metadata()), (Seq) Nil$.MODULE$));
      columns.addAll(list(child.output()));
      columns.addAll(below.hidden);
      LogicalPlan rows = below.plan;
      if (absent.contains(((Attribute) suppliedWindow).exprId())) {
        // As in Spark, a row that an outer join returns without a tuple is in no window.
        rows = new Filter(new IsNotNull(suppliedWindow), rows);
      }
      return new Carried(new Project(seq(columns), rows), below.hidden);
    }

    private Carried aggregate(Aggregate plan) {
      if (mode.equals("sessions")) {
        Attribute session = marked(plan.groupingExpressions(), SESSION_WINDOW);
        if (session == null) {
          throw new NotPossible("Aggregate\t" + line(plan));
        }
        List hidden = new ArrayList();
        hidden.add(session);
        return new Carried(
            new Aggregate(
                plan.groupingExpressions(), withHidden(plan.aggregateExpressions(), hidden),
                plan.child(), plan.hint()),
            hidden);
      }
      Carried below = carry(plan.child());
      if (mode.equals("given")) {
        return new Carried(
            new Aggregate(
                plan.groupingExpressions(), plan.aggregateExpressions(), below.plan, plan.hint()),
            new ArrayList());
      }
      withoutKeys = withoutKeys || plan.groupingExpressions().isEmpty();
      List keys = list(plan.groupingExpressions());
      keys.addAll(below.hidden);
      return new Carried(
          new Aggregate(
              seq(keys), withHidden(plan.aggregateExpressions(), below.hidden), below.plan,
              plan.hint()),
          below.hidden);
    }

    private Carried join(Join plan) {
      Carried left = carry(plan.left());
      Carried right = carry(plan.right());
      String type = plan.joinType().toString();
      boolean onlyLeft =
          type.startsWith("LeftSemi") || type.startsWith("LeftAnti")
              || type.startsWith("ExistenceJoin");
      boolean both = !left.hidden.isEmpty() && !right.hidden.isEmpty();
      if (both && mode.equals("windows")) {
        throw new NotPossible("Join\t" + line(plan));
      }
      Option condition = plan.condition();
      if (both && mode.equals("pairs") && !sizes.isEmpty()) {
        Expression windows = inWindows(left.hidden, right.hidden);
        condition =
            new Some(
                condition.isDefined()
                    ? new And((Expression) condition.get(), windows)
                    : windows);
      }
      List hidden = new ArrayList(left.hidden);
      boolean leftNull = type.equals("RightOuter") || type.equals("FullOuter");
      boolean rightNull = type.equals("LeftOuter") || type.equals("FullOuter");
      hidden = leftNull ? nullable(hidden) : hidden;
      if (!onlyLeft) {
        hidden.addAll(rightNull ? nullable(right.hidden) : right.hidden);
      }
      if (mode.equals("given")) {
        // Each side carries the window of its rows; both are the same window, so one is enough.
        hidden = hidden.size() > 1 ? new ArrayList(hidden.subList(0, 1)) : hidden;
      }
      return new Carried(
          new Join(left.plan, right.plan, plan.joinType(), condition, plan.hint()), hidden);
    }

    private List nullable(List attributes) {
      List columns = new ArrayList();
      for (int n = 0; n < attributes.size(); n++) {
        absent.add(((Attribute) attributes.get(n)).exprId());
        columns.add(((Attribute) attributes.get(n)).withNullability(true));
      }
      return columns;
    }

    /** Return the condition that tuples of two sides lie in each other's windows. */
    private Expression inWindows(List left, List right) {
      Expression all = null;
      for (int n = 0; n < left.size(); n++) {
        for (int m = 0; m < right.size(); m++) {
          all = and(all, reaches((Attribute) left.get(n), left, (Attribute) right.get(m), right));
          all = and(all, reaches((Attribute) right.get(m), right, (Attribute) left.get(n), left));
        }
      }
      return all;
    }

    private static Expression and(Expression a, Expression b) {
      return a == null ? b : b == null ? a : new And(a, b);
    }

    /** Return the condition that a tuple lies in its own window if that ends at another tuple. */
    private Expression reaches(Attribute time, List ownColumns, Attribute other, List others) {
      String name = time.name();
      String with = other.name();
      if (!name.startsWith(HIDDEN + "t") || !with.startsWith(HIDDEN + "t")) {
        return null;
      }
      String number = name.substring((HIDDEN + "t").length());
      String end = with.substring((HIDDEN + "t").length());
      Expression place = other;
      if (byNumber) {
        place = null;
        for (int n = 0; n < others.size(); n++) {
          if (((Attribute) others.get(n)).name().equals(HIDDEN + "s" + end + "_" + number)) {
            place = (Expression) others.get(n);
          }
        }
      }
      Object size = sizes.get(number);
      Expression reach =
          org.apache.spark.sql.catalyst.expressions.Literal$.MODULE$.apply(
              Long.valueOf(((Number) size).longValue()));
      Expression lies = new GreaterThanOrEqual(time, new Subtract(place, reach));
      // There is no condition on a tuple that is absent.
      lies = absent.contains(time.exprId()) ? new Or(new IsNull(time), lies) : lies;
      return absent.contains(other.exprId()) ? new Or(new IsNull(other), lies) : lies;
    }

    private Carried union(Union plan) {
      List children = new ArrayList();
      List hidden = null;
      for (Iterator items = plan.children().iterator(); items.hasNext(); ) {
        LogicalPlan child = (LogicalPlan) items.next();
        Carried part = carry(child);
        if (part.hidden.size() != 2) {
          throw new NotPossible("Union\t" + line(child));
        }
        List columns = list(child.output());
        columns.addAll(part.hidden);
        children.add(new Project(seq(columns), part.plan));
        hidden = hidden == null ? part.hidden : hidden;
      }
      Union union = new Union(seq(children), plan.byName(), plan.allowMissingCol());
      // By place, the columns of a union have the names of its first part, but new ids.
      List ids = list(plan.output());
      List unionColumns = list(union.output());
      List columns = new ArrayList();
      for (int n = 0; n < ids.size(); n++) {
        Attribute wanted = (Attribute) ids.get(n);
        columns.add(
            ((Attribute) unionColumns.get(n)).exprId().equals(wanted.exprId())
                ? (Object) unionColumns.get(n)
                : alias((Attribute) unionColumns.get(n), wanted.name(), wanted.exprId()));
      }
      List last = unionColumns.subList(ids.size(), unionColumns.size());
      columns.addAll(last);
      return new Carried(new Project(seq(columns), union), last);
    }

    private static Seq withHidden(Seq expressions, List hidden) {
      List columns = list(expressions);
      Set ids = new HashSet();
      for (int n = 0; n < columns.size(); n++) {
        ids.add(((NamedExpression) columns.get(n)).exprId());
      }
      for (int n = 0; n < hidden.size(); n++) {
        if (ids.add(((NamedExpression) hidden.get(n)).exprId())) {
          columns.add(hidden.get(n));
        }
      }
      return seq(columns);
    }

    /** Return window expressions that are also partitioned by the window. */
    private static Seq within(Seq expressions, final List hidden) {
      List rewritten = new ArrayList();
      for (Iterator items = expressions.iterator(); items.hasNext(); ) {
        Expression node = (Expression) items.next();
        rewritten.add(
            node.transformUp(
                new AbstractPartialFunction() {
                  public boolean isDefinedAt(Object part) {
                    return kind(part).equals("WindowSpecDefinition");
                  }

                  public Object applyOrElse(Object part, Function1 otherwise) {
                    if (!kind(part).equals("WindowSpecDefinition")) {
                      return otherwise.apply(part);
                    }
                    org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition spec =
                        (org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition) part;
                    List partition = list(spec.partitionSpec());
                    partition.addAll(hidden);
                    return new org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition(
                        seq(partition), spec.orderSpec(), spec.frameSpecification());
                  }
                }));
      }
      return seq(rewritten);
    }
  }

  /** Return the leaf's column that window(...) or session_window(...) takes; "" for none. */
  public String timeColumn(LogicalPlan plan) {
    for (Iterator expressions = plan.expressions().iterator(); expressions.hasNext(); ) {
      Object node = expressions.next();
      if (plan instanceof Project && node instanceof Alias
          && (((Alias) node).metadata().contains(TIME_WINDOW)
              || ((Alias) node).metadata().contains(SESSION_WINDOW))
          && kind(((Alias) node).child()).equals("CreateNamedStruct")) {
        return origin(((Alias) node).child(), ((Project) plan).child());
      }
    }
    if (plan instanceof Expand && marked(plan.output(), TIME_WINDOW) != null) {
      Expand expand = (Expand) plan;
      Attribute window = marked(plan.output(), TIME_WINDOW);
      if (!expand.child().outputSet().contains(window)) {
        int place = list(plan.output()).indexOf(window);
        return origin(
            (Expression) ((Seq) expand.projections().head()).apply(place), expand.child());
      }
    }
    for (Iterator children = plan.children().iterator(); children.hasNext(); ) {
      String name = timeColumn((LogicalPlan) children.next());
      if (!name.isEmpty()) {
        return name;
      }
    }
    return "";
  }

  /** Return the only column of a leaf that an expression refers to; "" if it is not just one. */
  private static String origin(Expression expression, LogicalPlan plan) {
    List references = list(expression.references().toSeq());
    return references.size() == 1 ? origin(((Attribute) references.get(0)).exprId(), plan) : "";
  }

  private static String origin(ExprId id, LogicalPlan plan) {
    if (leafName(plan) != null) {
      for (Iterator columns = plan.output().iterator(); columns.hasNext(); ) {
        Attribute column = (Attribute) columns.next();
        if (column.exprId().equals(id)) {
          return column.name();
        }
      }
      return "";
    }
    if (plan instanceof Project) {
      for (Iterator columns = ((Project) plan).projectList().iterator(); columns.hasNext(); ) {
        NamedExpression column = (NamedExpression) columns.next();
        if (column.exprId().equals(id) && column instanceof Alias) {
          Expression value = ((Alias) column).child();
          return value instanceof Attribute
              ? origin(((Attribute) value).exprId(), ((Project) plan).child())
              : "";
        }
      }
    }
    for (Iterator children = plan.children().iterator(); children.hasNext(); ) {
      String name = origin(id, (LogicalPlan) children.next());
      if (!name.isEmpty()) {
        return name;
      }
    }
    return "";
  }

  /** Return true if a subquery anywhere in a plan reads a leaf. */
  private static boolean readsInSubquery(LogicalPlan plan) {
    for (Iterator subqueries = plan.subqueriesAll().iterator(); subqueries.hasNext(); ) {
      if (reads((LogicalPlan) subqueries.next())) {
        return true;
      }
    }
    return false;
  }

  /** Return true if a plan reads a relation with a window clause. */
  private static boolean readsInput(LogicalPlan plan) {
    String leaf = leafName(plan);
    if (leaf != null) {
      return leaf.startsWith(MARK);
    }
    for (Iterator children = plan.children().iterator(); children.hasNext(); ) {
      if (readsInput((LogicalPlan) children.next())) {
        return true;
      }
    }
    return false;
  }

  /** Return true if a plan reads a leaf. */
  static boolean reads(LogicalPlan plan) {
    if (leafName(plan) != null) {
      return true;
    }
    for (Iterator children = plan.children().iterator(); children.hasNext(); ) {
      if (reads((LogicalPlan) children.next())) {
        return true;
      }
    }
    return false;
  }
}
