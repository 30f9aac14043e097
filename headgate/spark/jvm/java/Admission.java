import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.analysis.Star;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.XmlToStructs;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SetOperation;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSource$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** The parser and analyzer of texts; it refuses a plan with a node that is not on its lists. */
public class Admission {
  /** Enough stack for 500 nested brackets; with the usual 1 MB, 300 nested CASEs are the limit. */
  private static final long STACK_BYTES = 256L << 20;

  /** Nodes of a parsed SELECT. Other nodes are commands, or too new to be trusted. */
  private static final Set PARSED = names(
      "Project Filter Aggregate Sort GlobalLimit LocalLimit LimitAll Offset Tail Distinct Union"
      + " Except Intersect Join LateralJoin AsOfJoin NearestByJoin Sample Pivot Unpivot Generate"
      + " Deduplicate Repartition RepartitionByExpression SubqueryAlias OneRowRelation"
      + " LocalRelation PipeOperator WithWindowDefinition UnresolvedWith UnresolvedHaving"
      + " UnresolvedQualify UnresolvedHint UnresolvedRelation UnresolvedInlineTable"
      + " UnresolvedTableValuedFunction UnresolvedTVFAliases UnresolvedSubqueryColumnAliases"
      + " UnresolvedBinBy");

  /** Nodes of an analyzed SELECT. */
  private static final Set ANALYZED = names(
      "Project Filter Aggregate Sort GlobalLimit LocalLimit LimitAll Offset Tail Distinct Union"
      + " Except Intersect Join LateralJoin AsOfJoin NearestByJoin Sample Expand Generate"
      + " Deduplicate Window Repartition RepartitionByExpression RebalancePartitions"
      + " SubqueryAlias OneRowRelation LocalRelation ResolvedInlineTable PipeOperator"
      + " ResolvedHint WithCTE CTERelationDef CTERelationRef UnionLoop UnionLoopRef BinBy"
      + " SQLFunctionNode View Range LogicalRDD LogicalRelation DataSourceV2Relation"
      + " HiveTableRelation");

  private static final Set REFLECTION = names("reflect java_method try_reflect");
  private static final Set REFLECTION_CLASSES = names("CallMethodViaReflection TryReflect");

  /** Functions with an argument that may be a file's path; Spark reads that file in analysis. */
  private static final Set WITH_OPTIONS = names("from_xml schema_of_xml from_avro schema_of_avro");
  private static final Set WITH_DESCRIPTOR = names("from_protobuf to_protobuf");
  private static final Set FILE_OPTIONS = names("rowvalidationxsdpath avroschemaurl");

  /** The assumed number of columns of a table that is not a temporary view, before analysis. */
  private static final long USUAL_WIDTH = 100;

  private SparkSession session;
  private long mostNodes;
  private long mostLevels;
  private long timeoutMs;
  private boolean allowsPaths;
  private boolean allowsReflection;
  private java.nio.file.Path state;

  public void set(
      SparkSession session, long mostNodes, long mostLevels, long timeoutMs, boolean allowsPaths,
      boolean allowsReflection, String state) {
    this.session = session;
    this.mostNodes = mostNodes;
    this.mostLevels = mostLevels;
    this.timeoutMs = timeoutMs;
    this.allowsPaths = allowsPaths;
    this.allowsReflection = allowsReflection;
    this.state = state == null ? null : real(Paths.get(state));
  }

  /** Return the parsed plan of a text, or a String if refused: code, name and line, with tabs. */
  public Object parse(final String text) throws Throwable {
    return guarded(
        new Work() {
          Object run(AtomicBoolean stopped) throws Exception {
            LogicalPlan parsed = session.sessionState().sqlParser().parsePlan(text);
            // Analysis executes commands and opens files, so the parsed plan is checked first.
            refuseLarge(size(parsed, new HashMap(), 1, false, false));
            return parsed;
          }
        });
  }

  /** Analyze a parsed plan; return its Dataset, or a String as `parse` does if it is refused. */
  public Object analyze(final LogicalPlan parsed) throws Throwable {
    return guarded(
        new Work() {
          Object run(AtomicBoolean stopped) throws Exception {
            LogicalPlan analyzed =
                session.sessionState().analyzer().executeAndCheck(parsed, new Tracker(stopped));
            refuseLarge(size(analyzed, new HashMap(), 1, true, false));
            return Dataset$.MODULE$.ofRows(session, analyzed);
          }
        });
  }

  private abstract static class Work {
    abstract Object run(AtomicBoolean stopped) throws Exception;
  }

  /** Run work in a thread with a large stack; abandon the thread if it takes too long. */
  private Object guarded(final Work work) throws Throwable {
    final Object[] outcome = new Object[1];
    final Throwable[] failure = new Throwable[1];
    final AtomicBoolean stopped = new AtomicBoolean();
    Thread thread = new Thread(null, new Runnable() {
      public void run() {
        try {
          SparkSession.setActiveSession(session);
          outcome[0] = work.run(stopped);
        } catch (Throwable error) {
          failure[0] = error;
        }
      }
    }, "headgate-analysis", STACK_BYTES);
    thread.setDaemon(true);
    thread.start();
    thread.join(timeoutMs);
    if (thread.isAlive()) {
      stopped.set(true);
      thread.interrupt();
      return "time\t\t";
    }
    if (failure[0] == null) {
      return outcome[0];
    }
    if (failure[0] instanceof Refused) {
      return failure[0].getMessage();
    }
    if (failure[0] instanceof StackOverflowError) {
      return "depth\t\t";
    }
    if (failure[0] instanceof OutOfMemoryError) {
      return "memory\t\t";
    }
    throw failure[0];
  }

  /** Return the names of all functions of the session, separated by spaces. */
  public String functions() {
    StringBuilder names = new StringBuilder();
    Seq[] lists = {
      session.sessionState().functionRegistry().listFunction(),
      session.sessionState().tableFunctionRegistry().listFunction(),
    };
    for (int n = 0; n < lists.length; n++) {
      Iterator functions = lists[n].iterator();
      while (functions.hasNext()) {
        Object function = functions.next();
        names.append(((org.apache.spark.sql.catalyst.FunctionIdentifier) function).funcName());
        names.append(' ');
      }
    }
    return names.toString();
  }

  private void refuseLarge(long[] size) {
    if (size[0] > mostNodes) {
      throw new Refused("size", Long.toString(size[0]), "");
    }
  }

  /**
   * Check a plan and everything in it; return the number of its nodes and of its columns.
   *
   * A common table expression counts wherever it is named, since Spark's optimizer copies it there.
   * A star counts as all columns below it. Otherwise twenty lines, each of which doubles the one
   * before, would exhaust the JVM.
   *
   * @param sizes the sizes of common table expressions, by name or by id
   * @param analyzed whether names have been resolved
   * @param trusted whether the plan belongs to a view that a DataFrame defined, not a text
   */
  private long[] size(
      LogicalPlan plan, Map sizes, long level, boolean analyzed, boolean trusted) {
    refuseDeep(level, plan);
    refuseNode(plan, analyzed, trusted);
    long nodes = 1;
    long columns = 0;
    if (plan instanceof UnresolvedWith) {
      sizes = new HashMap(sizes);
      Iterator relations = ((UnresolvedWith) plan).cteRelations().iterator();
      while (relations.hasNext()) {
        Tuple3 relation = (Tuple3) relations.next();
        long[] size = size((LogicalPlan) relation._2(), sizes, level + 1, analyzed, trusted);
        sizes.put(lower((String) relation._1()), size);
        nodes = sum(nodes, size[0]);
      }
    }
    boolean stored = trusted || (plan instanceof View
        && ((View) plan).isTempViewStoringAnalyzedPlan());
    Iterator children = plan.children().iterator();
    boolean first = true;
    while (children.hasNext()) {
      LogicalPlan child = (LogicalPlan) children.next();
      long[] size;
      try {
        size = size(child, sizes, level + 1, analyzed, stored);
      } catch (Refused refused) {
        throw plan instanceof View ? refused.in((View) plan) : refused;
      }
      if (child instanceof CTERelationDef) {
        sizes.put(Long.valueOf(((CTERelationDef) child).id()), size);
      }
      nodes = sum(nodes, size[0]);
      boolean counts = first || !(plan instanceof Union || plan instanceof SetOperation);
      columns = counts ? sum(columns, size[1]) : columns;
      first = false;
    }
    Object reference = null;
    if (plan instanceof CTERelationRef) {
      reference = Long.valueOf(((CTERelationRef) plan).cteId());
    } else if (plan instanceof UnresolvedRelation) {
      UnresolvedRelation relation = (UnresolvedRelation) plan;
      boolean alone = relation.multipartIdentifier().size() == 1;
      reference = alone ? lower((String) relation.multipartIdentifier().head()) : null;
      columns = width(relation);
    }
    if (reference != null && sizes.containsKey(reference)) {
      long[] size = (long[]) sizes.get(reference);
      nodes = sum(nodes, size[0]);
      columns = size[1];
    }
    long below = columns;
    boolean lists = plan instanceof Project || plan instanceof Aggregate;
    columns = lists ? 0 : columns;
    Iterator expressions = plan.expressions().iterator();
    while (expressions.hasNext()) {
      Expression expression = (Expression) expressions.next();
      long more = size(expression, sizes, level + 1, below, analyzed, stored);
      nodes = sum(nodes, more);
      if (lists) {
        columns = sum(columns, expression instanceof Star ? below : 1);
      }
    }
    long[] size = {nodes, columns};
    return size;
  }

  /** Check an expression and everything in it; return the number of its nodes. */
  private long size(
      Expression expression, Map sizes, long level, long below, boolean analyzed,
      boolean trusted) {
    refuseDeep(level, expression);
    refuseExpression(expression, analyzed);
    long nodes = expression instanceof Star ? Math.max(1, below) : 1;
    if (expression instanceof PlanExpression) {
      Object plan = ((PlanExpression) expression).plan();
      nodes = sum(nodes, size((LogicalPlan) plan, sizes, level + 1, analyzed, trusted)[0]);
    }
    Iterator children = expression.children().iterator();
    while (children.hasNext()) {
      Expression child = (Expression) children.next();
      nodes = sum(nodes, size(child, sizes, level + 1, below, analyzed, trusted));
    }
    return nodes;
  }

  private void refuseDeep(long level, TreeNode node) {
    if (level > mostLevels) {
      throw new Refused("depth", "", node);
    }
  }

  private void refuseNode(LogicalPlan plan, boolean analyzed, boolean trusted) {
    String name = name(plan);
    if (name.equals("ScriptTransformation")) {
      throw new Refused("script", "TRANSFORM", plan);
    }
    if (name.equals("PlanWithUnresolvedIdentifier")) {
      throw new Refused("hidden", "IDENTIFIER", plan);
    }
    boolean listed = isSpark(plan) && (analyzed ? ANALYZED : PARSED).contains(name);
    if (plan instanceof Command || !(listed || trusted)) {
      throw new Refused("node", name, plan);
    }
    if (plan instanceof UnresolvedRelation) {
      refusePath((UnresolvedRelation) plan);
    } else if (!trusted && plan instanceof LogicalRelation) {
      LogicalRelation relation = (LogicalRelation) plan;
      if (relation.catalogTable().isEmpty()) {
        refuseFiles(relation);
      }
    } else if (!trusted && plan instanceof DataSourceV2Relation) {
      DataSourceV2Relation relation = (DataSourceV2Relation) plan;
      if (relation.catalog().isEmpty() || relation.identifier().isEmpty()) {
        throw new Refused("path", relation.name(), plan);
      }
    }
  }

  private void refuseExpression(Expression expression, boolean analyzed) {
    String name = name(expression);
    if (!isSpark(expression)) {
      throw new Refused("expression", name, expression);
    }
    if (name.equals("ExpressionWithUnresolvedIdentifier")) {
      throw new Refused("hidden", "IDENTIFIER", expression);
    }
    if (!allowsReflection && REFLECTION_CLASSES.contains(name)) {
      throw new Refused("reflection", expression.prettyName(), expression);
    }
    if (expression instanceof UnresolvedFunction) {
      UnresolvedFunction function = (UnresolvedFunction) expression;
      String called = lower((String) function.nameParts().last());
      if (!allowsReflection && REFLECTION.contains(called)) {
        throw new Refused("reflection", called, expression);
      }
      if (!allowsPaths && opensFile(called, function.arguments())) {
        throw new Refused("file", called, expression);
      }
    }
    if (!allowsPaths && expression instanceof XmlToStructs) {
      Iterator options = ((XmlToStructs) expression).options().keysIterator();
      while (options.hasNext()) {
        if (FILE_OPTIONS.contains(lower((String) options.next()))) {
          throw new Refused("file", "from_xml", expression);
        }
      }
    }
  }

  /** Return true if a function may get a file's path; literal options show that it does not. */
  private static boolean opensFile(String function, Seq arguments) {
    if (WITH_DESCRIPTOR.contains(function) && arguments.size() > 2) {
      Object third = arguments.apply(2);
      boolean binary = third instanceof Literal
          && ((Literal) third).dataType().typeName().equals("binary");
      return !binary && !isMap(third);
    }
    if (!WITH_OPTIONS.contains(function) || arguments.size() < 2) {
      return false;
    }
    Object last = arguments.last();
    if (!isMap(last)) {
      return !(last instanceof Literal) && arguments.size() > 2;
    }
    Seq pairs = ((UnresolvedFunction) last).arguments();
    for (int n = 0; n < pairs.size(); n += 2) {
      Object key = pairs.apply(n);
      if (!(key instanceof Literal) || FILE_OPTIONS.contains(lower(key.toString()))) {
        return true;
      }
    }
    return false;
  }

  private static boolean isMap(Object expression) {
    return expression instanceof UnresolvedFunction
        && lower((String) ((UnresolvedFunction) expression).nameParts().last()).equals("map");
  }

  /** Refuse a table that is named by its path, as in text.`/etc/passwd`. */
  private void refusePath(UnresolvedRelation relation) {
    Seq parts = relation.multipartIdentifier();
    String last = (String) parts.last();
    boolean isPath = last.indexOf('/') >= 0
        || (parts.size() == 2 && isFormat((String) parts.head()));
    if (isPath && !allowsPaths) {
      throw new Refused("path", parts.mkString("."), relation);
    }
    if (isPath && reachesState(last)) {
      throw new Refused("state", last, relation);
    }
  }

  private boolean isFormat(String name) {
    if (session.sessionState().catalog().databaseExists(name)) {
      return false;
    }
    try {
      DataSource$.MODULE$.lookupDataSource(name, session.sessionState().conf());
      return true;
    } catch (Throwable unknown) {
      return false;
    }
  }

  private void refuseFiles(LogicalRelation relation) {
    if (!allowsPaths) {
      throw new Refused("path", relation.relation().toString(), relation);
    }
    if (relation.relation() instanceof HadoopFsRelation) {
      Iterator roots = ((HadoopFsRelation) relation.relation()).location().rootPaths().iterator();
      while (roots.hasNext()) {
        String root = roots.next().toString();
        if (reachesState(root)) {
          throw new Refused("state", root, relation);
        }
      }
    }
  }

  /** Return true if a path is in the state directory or contains it. */
  private boolean reachesState(String path) {
    if (state == null) {
      return false;
    }
    String fixed = path.replaceFirst("[^/]*[*?{\\[\\\\].*", "");
    try {
      org.apache.hadoop.fs.Path hadoop =
          new org.apache.hadoop.fs.Path(fixed.isEmpty() ? "." : fixed);
      URI uri = hadoop.getFileSystem(session.sessionState().newHadoopConf())
          .makeQualified(hadoop).toUri();
      if (!"file".equals(uri.getScheme())) {
        return false;
      }
      java.nio.file.Path local = real(Paths.get(uri.getPath()));
      return local.startsWith(state) || state.startsWith(local);
    } catch (Exception unknown) {
      return false;
    }
  }

  /** Return a path with symbolic links resolved, as far as its files exist. */
  private static java.nio.file.Path real(java.nio.file.Path path) {
    java.nio.file.Path whole = path.toAbsolutePath().normalize();
    java.nio.file.Path head = whole;
    while (head != null && !Files.exists(head, new java.nio.file.LinkOption[0])) {
      head = head.getParent();
    }
    try {
      java.nio.file.Path base = head.toRealPath(new java.nio.file.LinkOption[0]);
      return base.resolve(head.relativize(whole)).normalize();
    } catch (java.io.IOException unreadable) {
      return whole;
    }
  }

  private long width(UnresolvedRelation relation) {
    Option view = session.sessionState().catalog()
        .getLocalOrGlobalTempView(relation.multipartIdentifier());
    return view.isEmpty() ? USUAL_WIDTH : ((View) view.get()).desc().schema().length();
  }

  private static long sum(long one, long other) {
    return Math.min(one + other, Long.MAX_VALUE / 4);
  }

  private static boolean isSpark(Object node) {
    return node.getClass().getName().startsWith("org.apache.spark.sql.");
  }

  private static String name(Object node) {
    String name = node.getClass().getName();
    name = name.endsWith("$") ? name.substring(0, name.length() - 1) : name;
    return name.substring(Math.max(name.lastIndexOf('.'), name.lastIndexOf('$')) + 1);
  }

  private static String lower(String name) {
    return name.toLowerCase(Locale.ROOT);
  }

  private static Set names(String text) {
    return new HashSet(Arrays.asList(text.split(" ")));
  }

  /** A tracker that ends an abandoned analysis after the rule that is being applied. */
  private static class Tracker extends QueryPlanningTracker {
    private final AtomicBoolean stopped;

    Tracker(AtomicBoolean stopped) {
      super(Option.empty());
      this.stopped = stopped;
    }

    public void recordRuleInvocation(String rule, long time, boolean effective) {
      if (stopped.get()) {
        throw new CancellationException();
      }
      super.recordRuleInvocation(rule, time, effective);
    }
  }

  private static class Refused extends RuntimeException {
    private final String code;
    private final String name;
    private final String line;

    Refused(String code, String name, TreeNode node) {
      this(code, name.replace('\t', ' '),
          node.origin().line().isEmpty() ? "" : node.origin().line().get().toString());
    }

    private Refused(String code, String name, String line) {
      super(code + "\t" + name + "\t" + line);
      this.code = code;
      this.name = name;
      this.line = line;
    }

    /** Return a refusal that names the view that causes it; a line in a view is not the query's. */
    Refused in(View view) {
      return name.isEmpty() ? this
          : new Refused(code, name + " in view " + view.desc().identifier().table(), "");
    }
  }
}
