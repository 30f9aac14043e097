import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.MemoryManager;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.optimizer.BuildLeft$;
import org.apache.spark.sql.catalyst.optimizer.BuildRight$;
import org.apache.spark.sql.catalyst.optimizer.BuildSide;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.CollapseCodegenStages;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.OneRowRelationExec;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.RangeExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec;
import org.apache.spark.sql.execution.joins.CartesianProductExec;
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec;
import org.apache.spark.sql.execution.joins.SortMergeJoinExec;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.BlockManager;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractPartialFunction;

/**
 * One physical plan of Spark's, run in the calling thread without a job.
 *
 * The plan is prepared once, for a single partition, so it needs no exchange. Only the rows of its
 * leaves change between calls. The Janino compiler that ships with Spark compiles this class at
 * start, hence no lambdas and no generics.
 */
public class PlanRunner {
  private static final AtomicLong TASKS = new AtomicLong(1L << 40);
  private static final Map RUNNING = new ConcurrentHashMap();
  private static final String ZONE = "UTC";
  private static final long ALL_ROWS = 1L << 30;
  private static final int CHECK_EVERY = 256;
  private static final int FEW_ROWS = 2000;
  private static final int FEW_TO_SORT = 250;
  private static final String PARTIAL = "__hg_partial";

  private SparkSession session;
  private RDD rows;
  private Partition partition;
  private StructType schema;
  private Environment environment;
  private Properties settingsOfFew;
  private Properties settingsOfMany;
  private boolean streams;
  private int few;
  private boolean subqueries;
  private final Map failingRows = new ConcurrentHashMap();
  private String explanation;
  private SparkPlan physical;
  private final StringBuilder windowPlaces = new StringBuilder();
  private final Map scans = new LinkedHashMap();

  /** The rows of one view for the current call, with the columns that the plan reads. */
  private static class Scan extends RDD {
    private final StructType schema;
    private final boolean nested;
    private byte[][] batches = new byte[0][];
    long row = -1;

    Scan(SparkContext context, StructType schema) {
      super(context, (Seq) Nil$.MODULE$, ClassTag$.MODULE$.apply(InternalRow.class));
      this.schema = schema;
      this.nested = isNested(schema);
    }

    public Partition[] getPartitions() {
      return new Partition[] {new Relations.OnlyPartition()};
    }

    public Iterator compute(Partition split, final TaskContext context) {
      row = -1;
      final int[] position = {0};
      final byte[][] all = batches;
      Iterator bytes =
          new scala.collection.AbstractIterator() {
            public boolean hasNext() {
              return position[0] < all.length;
            }

            public Object next() {
              return all[position[0]++];
            }
          };
      Iterator arrowRows =
          ArrowConverters$.MODULE$.fromBatchIterator(bytes, schema, ZONE, false, false, context);
      if (nested) {
        // Arrow's nested values fail on a NULL inside, so they become Spark's rows, as in a job.
        arrowRows = (Iterator) arrowRows.map(UnsafeProjection.create(schema));
      }
      final Iterator rows = arrowRows;
      return new scala.collection.AbstractIterator() {
        public boolean hasNext() {
          return rows.hasNext();
        }

        public Object next() {
          row++;
          if (row % CHECK_EVERY == 0) {
            context.killTaskIfInterrupted();
          }
          return rows.next();
        }
      };
    }

    private static boolean isNested(StructType schema) {
      StructField[] fields = schema.fields();
      for (int n = 0; n < fields.length; n++) {
        DataType type = fields[n].dataType();
        if (type instanceof ArrayType || type instanceof MapType || type instanceof StructType
            || type.typeName().equals("variant")) {
          return true;
        }
      }
      return false;
    }
  }

  /** The rows of a scan, each through one projection. Calls of a plan run one after the other. */
  private static class Projected extends RDD {
    private final RDD scan;
    private final UnsafeProjection projection;

    Projected(RDD scan, UnsafeProjection projection) {
      super(scan.sparkContext(), (Seq) Nil$.MODULE$, ClassTag$.MODULE$.apply(InternalRow.class));
      this.scan = scan;
      this.projection = projection;
    }

    public Partition[] getPartitions() {
      return new Partition[] {new Relations.OnlyPartition()};
    }

    public Iterator compute(Partition split, TaskContext context) {
      projection.initialize(0);
      return scan.iterator(split, context).map(projection);
    }
  }

  /** Rows that never change, in one partition, such as those of VALUES. */
  private static class Fixed extends RDD {
    private final Seq fixed;

    Fixed(SparkContext context, Seq fixed) {
      super(context, (Seq) Nil$.MODULE$, ClassTag$.MODULE$.apply(InternalRow.class));
      this.fixed = fixed;
    }

    public Partition[] getPartitions() {
      return new Partition[] {new Relations.OnlyPartition()};
    }

    public Iterator compute(Partition split, TaskContext context) {
      return fixed.iterator();
    }
  }

  /** The value of a scalar subquery, computed once per call, when it is first needed. */
  private static class SubqueryValue implements java.util.function.Supplier, java.io.Serializable {
    // Spark checks that generated code is serializable, although it is never sent to an executor.
    private final transient RDD rows;
    private final transient Partition partition;
    private final DataType type;
    private long task = -1;
    private transient Object value;

    SubqueryValue(RDD rows, DataType type) {
      this.rows = rows;
      this.partition = rows.partitions()[0];
      this.type = type;
    }

    public Object get() {
      TaskContext context = TaskContext.get();
      if (task != context.taskAttemptId()) {
        Iterator results = rows.iterator(partition, context);
        value = null;
        if (results.hasNext()) {
          InternalRow row = ((InternalRow) results.next()).copy();
          value = row.isNullAt(0) ? null : row.get(0, type);
          if (results.hasNext()) {
            throw new IllegalStateException(
                "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery used"
                    + " as an expression. SQLSTATE: 21000");
          }
        }
        task = context.taskAttemptId();
      }
      return value;
    }
  }

  /** Raised if a plan cannot run this way; the message names the operator that prevents it. */
  public static class NeedsJob extends RuntimeException {
    public NeedsJob(String message) {
      super(message);
    }
  }

  /** Prepare an analyzed or optimized plan. */
  public void prepare(SparkSession session, LogicalPlan plan) throws Throwable {
    Option before = SparkSession$.MODULE$.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      plan(session, plan);
    } finally {
      restore(before);
    }
  }

  /** Restore the session that was active before; Spark reads settings from the active session. */
  private static void restore(Option before) {
    if (before.isDefined()) {
      SparkSession.setActiveSession((SparkSession) before.get());
    } else {
      SparkSession.clearActiveSession();
    }
  }

  private void ready(SparkSession session) throws Throwable {
    this.session = session;
    environment = new Environment();
    settingsOfFew = properties(session, true);
    settingsOfMany = properties(session, false);
  }

  private void plan(SparkSession session, LogicalPlan plan) throws Throwable {
    ready(session);
    org.apache.spark.sql.execution.QueryExecution execution =
        session.sessionState().executePlan(plan, session.sessionState().executePlan$default$2());
    schema = execution.analyzed().schema();
    start(runnable(planned(execution.sparkPlan())));
  }

  /**
   * Prepare the partial aggregates of a plan as `this`, and return a runner for the rest of it.
   *
   * The rest reads the partial aggregates as the relation PARTIAL. Merging the partial aggregates
   * of parts of the rows gives exactly the aggregates of all rows. Returns null if the plan cannot
   * be split like this.
   */
  public PlanRunner split(SparkSession session, LogicalPlan plan) throws Throwable {
    Option before = SparkSession$.MODULE$.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      return splitPlan(session, plan);
    } finally {
      restore(before);
    }
  }

  private PlanRunner splitPlan(SparkSession session, LogicalPlan plan) throws Throwable {
    ready(session);
    org.apache.spark.sql.execution.QueryExecution execution =
        session.sessionState().executePlan(plan, session.sessionState().executePlan$default$2());
    // This must precede preparation, which merges two aggregates with no exchange between them.
    SparkPlan whole = planned(execution.sparkPlan());
    final BaseAggregateExec last = lastAggregate(whole);
    if (last == null || !(last.child() instanceof BaseAggregateExec)
        || !merges((BaseAggregateExec) last.child())) {
      return null;
    }
    SparkPlan partial = (SparkPlan) last.child();
    PlanRunner rest = new PlanRunner();
    rest.ready(session);
    rest.schema = execution.analyzed().schema();
    final SparkPlan leaf =
        scan(partial.output(), new Relations.Leaf(session.sparkContext(), PARTIAL));
    SparkPlan above =
        (SparkPlan)
            whole.transformUp(
                new AbstractPartialFunction() {
                  public boolean isDefinedAt(Object node) {
                    return node == last;
                  }

                  public Object applyOrElse(Object node, Function1 otherwise) {
                    if (node != last) {
                      return otherwise.apply(node);
                    }
                    List only = new ArrayList();
                    only.add(leaf);
                    return ((SparkPlan) (Object) last).withNewChildren(QueryPlans.seq(only));
                  }
                });
    Set windows = new HashSet();
    if (computesWithWindow(partial, windows)) {
      return null;
    }
    // Names of partial columns may repeat, so the columns are numbered.
    StructType numbered = new StructType();
    for (int n = 0; n < partial.output().size(); n++) {
      Attribute column = (Attribute) partial.output().apply(n);
      numbered = numbered.add("p" + n, column.dataType(), true);
      if (windows.contains(column.exprId())) {
        windowPlaces.append(windowPlaces.length() == 0 ? "" : " ").append(n);
      }
    }
    if (windowPlaces.length() == 0) {
      return null;
    }
    rest.start(rest.runnable(above));
    this.schema = numbered;
    this.physical = partial;
    start(runnable(partial));
    return rest;
  }

  /** Return the topmost aggregate; null if anything but filters and projections is above it. */
  private static BaseAggregateExec lastAggregate(SparkPlan plan) {
    while (plan instanceof ProjectExec || plan instanceof FilterExec) {
      plan = (SparkPlan) plan.children().head();
    }
    return plan instanceof BaseAggregateExec ? (BaseAggregateExec) plan : null;
  }

  /** Return true if partial results, merged in any order, are exactly the results of all rows. */
  private static boolean merges(BaseAggregateExec partial) {
    for (Iterator aggregates = partial.aggregateExpressions().iterator(); aggregates.hasNext(); ) {
      AggregateExpression aggregate = (AggregateExpression) aggregates.next();
      String name = aggregate.aggregateFunction().getClass().getSimpleName();
      String type =
          aggregate.aggregateFunction().children().isEmpty()
              ? ""
              : ((Expression) aggregate.aggregateFunction().children().head())
                  .dataType().catalogString();
      // For a mean, Spark adds up whole numbers as doubles, which are exact up to 2^53.
      boolean exact = !type.equals("float") && !type.equals("double")
          && !(name.equals("Average") && type.equals("bigint"));
      boolean mergeable =
          name.equals("Count") || name.equals("Min") || name.equals("Max")
              || ((name.equals("Sum") || name.equals("Average")) && exact
                  && type.indexOf("interval") < 0);
      if (!mergeable || aggregate.isDistinct()
          || !aggregate.mode().toString().equals("Partial")) {
        return false;
      }
    }
    for (Iterator keys = partial.groupingExpressions().iterator(); keys.hasNext(); ) {
      // If a collation makes values equal, a group has the first one, which depends on the parts.
      if (!UnsafeRowUtils.isBinaryStable(((Expression) keys.next()).dataType())) {
        return false;
      }
    }
    return !partial.groupingExpressions().isEmpty() && !hasAggregate((SparkPlan) partial.child());
  }

  private static boolean hasAggregate(SparkPlan plan) {
    String name = plan.getClass().getSimpleName();
    if (plan instanceof BaseAggregateExec || name.endsWith("JoinExec")
        || name.equals("WindowExec") || name.equals("GenerateExec")) {
      return true;
    }
    for (Iterator children = plan.children().iterator(); children.hasNext(); ) {
      if (hasAggregate((SparkPlan) children.next())) {
        return true;
      }
    }
    return false;
  }

  /**
   * Return true if the plan computes anything from the window.
   *
   * A pane's window is not the window that the pane is merged into, so it may only be a key.
   *
   * @param windows receives the columns that hold the window under any name, such as window(...)
   */
  private static boolean computesWithWindow(SparkPlan plan, Set windows) {
    for (Iterator children = plan.children().iterator(); children.hasNext(); ) {
      if (computesWithWindow((SparkPlan) children.next(), windows)) {
        return true;
      }
    }
    if (plan.children().isEmpty()) {
      for (Iterator columns = plan.output().iterator(); columns.hasNext(); ) {
        Attribute column = (Attribute) columns.next();
        if (column.name().equals("__hg_window")) {
          windows.add(column.exprId());
        }
      }
    }
    for (Iterator expressions = plan.expressions().iterator(); expressions.hasNext(); ) {
      Expression expression = (Expression) expressions.next();
      boolean renames =
          expression instanceof Alias && ((Alias) expression).child() instanceof Attribute;
      Set references = new HashSet();
      addAll(references, expression.references().toSeq());
      references.retainAll(windows);
      if (renames && !references.isEmpty()) {
        windows.add(((Alias) expression).exprId());
      } else if (!(expression instanceof Attribute) && !references.isEmpty()) {
        return true;
      }
    }
    return false;
  }

  /** Return the numbers of the partial columns that hold the window, separated by spaces. */
  public String windowPlaces() {
    return windowPlaces.toString();
  }

  /** Return the physical plan of the partial aggregates. */
  public SparkPlan physical() {
    return physical;
  }

  /** Set up a runnable plan for calls: create its RDD, and note how it runs. */
  private void start(SparkPlan runnable) {
    streams = isStreaming(runnable) && !subqueries && scans.size() == 1;
    explanation = runnable.toString();
    // If a sort is interpreted, each comparison costs microseconds.
    few = sorts(runnable) ? FEW_TO_SORT : FEW_ROWS;
    rows = projected(runnable);
    if (rows == null) {
      rows = runnable.execute();
    }
    partition = only(rows);
  }

  /**
   * Return the rows of a projection of a scan; null if the plan is anything else.
   *
   * If many queries share a projection, its code is too long for one method. Spark then creates a
   * projection of split methods for each task, which takes longer than to run it. This one is
   * created once for all calls.
   */
  private static RDD projected(SparkPlan runnable) {
    SparkPlan plan = runnable;
    if (plan instanceof WholeStageCodegenExec) {
      plan = ((WholeStageCodegenExec) plan).child();
    }
    if (!(plan instanceof ProjectExec)) {
      return null;
    }
    ProjectExec project = (ProjectExec) plan;
    SparkPlan child = project.child();
    if (!(child instanceof RDDScanExec) || !(((RDDScanExec) child).rdd() instanceof Scan)) {
      return null;
    }
    return new Projected(((RDDScanExec) child).rdd(),
        UnsafeProjection.create(project.projectList(), child.output()));
  }

  private static boolean sorts(SparkPlan plan) {
    if (plan.getClass().getSimpleName().equals("SortExec")) {
      return true;
    }
    for (Iterator children = plan.children().iterator(); children.hasNext(); ) {
      if (sorts((SparkPlan) children.next())) {
        return true;
      }
    }
    return false;
  }

  private static Partition only(RDD rdd) {
    Partition[] partitions = rdd.partitions();
    if (partitions.length != 1) {
      throw new NeedsJob(partitions.length + " partitions");
    }
    return partitions[0];
  }

  /** Replace subqueries, and joins that need a broadcast or sorted input, before preparation. */
  private SparkPlan planned(SparkPlan plan) {
    SparkPlan joined =
        (SparkPlan)
            plan.transformUp(
                new AbstractPartialFunction() {
                  public boolean isDefinedAt(Object node) {
                    return node instanceof SortMergeJoinExec
                        || node instanceof BroadcastNestedLoopJoinExec
                        || node instanceof CartesianProductExec;
                  }

                  public Object applyOrElse(Object node, Function1 otherwise) {
                    if (node instanceof SortMergeJoinExec) {
                      return hashJoin((SortMergeJoinExec) node);
                    }
                    if (node instanceof BroadcastNestedLoopJoinExec) {
                      return hashJoin((BroadcastNestedLoopJoinExec) node);
                    }
                    if (node instanceof CartesianProductExec) {
                      CartesianProductExec product = (CartesianProductExec) node;
                      return onOneKey(
                          (JoinType) Inner$.MODULE$, product.condition(), product.left(),
                          product.right());
                    }
                    return otherwise.apply(node);
                  }
                });
    return (SparkPlan)
        joined.transformUp(
            new AbstractPartialFunction() {
              public boolean isDefinedAt(Object node) {
                return true;
              }

              public Object applyOrElse(Object node, Function1 otherwise) {
                return ((SparkPlan) node).transformExpressionsUp(subqueryValues());
              }
            });
  }

  private AbstractPartialFunction subqueryValues() {
    return new AbstractPartialFunction() {
      public boolean isDefinedAt(Object node) {
        return node instanceof SubqueryExpression;
      }

      public Object applyOrElse(Object node, Function1 otherwise) {
        if (!(node instanceof ScalarSubquery)) {
          if (node instanceof SubqueryExpression) {
            throw new NeedsJob(((Expression) node).nodeName());
          }
          return otherwise.apply(node);
        }
        subqueries = true;
        ScalarSubquery subquery = (ScalarSubquery) node;
        SparkPlan plan =
            QueryExecution$.MODULE$.createSparkPlan(
                session.sessionState().planner(), (LogicalPlan) subquery.plan());
        RDD subqueryRows = runnable(planned(plan)).execute();
        only(subqueryRows);
        DataType type = subquery.dataType();
        SubqueryValue value = new SubqueryValue(subqueryRows, type);
        Expression target =
            Literal$.MODULE$.fromObject(value, new ObjectType(java.util.function.Supplier.class));
        return new Invoke(
            target, "get", type, (Seq) Nil$.MODULE$, (Seq) Nil$.MODULE$, true, true, true);
      }
    };
  }

  private static Object hashJoin(SortMergeJoinExec join) {
    if (!binaryStable(join.leftKeys()) || !binaryStable(join.rightKeys())) {
      return join;
    }
    return new ShuffledHashJoinExec(
        join.leftKeys(), join.rightKeys(), join.joinType(), buildSide(join.joinType()),
        join.condition(), join.left(), join.right(), false);
  }

  private static Object hashJoin(BroadcastNestedLoopJoinExec join) {
    return onOneKey(join.joinType(), join.condition(), join.left(), join.right());
  }

  /** Return a join without equality keys as a hash join on a literal. */
  private static Object onOneKey(
      JoinType type, Option condition, SparkPlan left, SparkPlan right) {
    BuildSide side = buildSide(type);
    SparkPlan hashed = side instanceof BuildLeft$ ? left : right;
    // If rows have no columns, Spark's hash map for numeric keys loses the first: its address is 0.
    Object value = hashed.output().isEmpty() ? (Object) Boolean.TRUE : (Object) Integer.valueOf(1);
    List keys = new ArrayList();
    keys.add(Literal$.MODULE$.apply(value));
    Seq key = QueryPlans.seq(keys);
    return new ShuffledHashJoinExec(key, key, type, side, condition, left, right, false);
  }

  /** Return the side that can be hashed: the right side, except in a right outer join. */
  private static BuildSide buildSide(JoinType type) {
    return type.toString().equals("RightOuter")
        ? (BuildSide) BuildLeft$.MODULE$
        : (BuildSide) BuildRight$.MODULE$;
  }

  private static boolean binaryStable(Seq keys) {
    for (Iterator expressions = keys.iterator(); expressions.hasNext(); ) {
      if (!UnsafeRowUtils.isBinaryStable(((Expression) expressions.next()).dataType())) {
        return false;
      }
    }
    return true;
  }

  /** Prepare a plan for one partition: without exchanges, with our scans and generated code. */
  private SparkPlan runnable(SparkPlan plan) {
    return scanning(bare(plan));
  }

  /** Return a plan as Spark prepares it, but without exchanges and generated code. */
  private SparkPlan bare(SparkPlan plan) {
    SparkPlan prepared = QueryExecution$.MODULE$.prepareExecutedPlan(session, plan);
    SparkPlan bare =
        (SparkPlan)
            prepared.transformUp(
                new AbstractPartialFunction() {
                  public boolean isDefinedAt(Object node) {
                    return true;
                  }

                  public Object applyOrElse(Object node, Function1 otherwise) {
                    if (node instanceof WholeStageCodegenExec) {
                      return ((WholeStageCodegenExec) node).child();
                    }
                    if (node instanceof InputAdapter) {
                      return ((InputAdapter) node).child();
                    }
                    if (node instanceof ShuffleExchangeExec) {
                      return ((ShuffleExchangeExec) node).child();
                    }
                    if (node instanceof LocalTableScanExec) {
                      LocalTableScanExec table = (LocalTableScanExec) node;
                      RDD fixed = new Fixed(session.sparkContext(), table.rows());
                      return scan(table.output(), fixed);
                    }
                    if (node instanceof UnionExec || node instanceof RangeExec) {
                      return new CoalesceExec(1, (SparkPlan) node);
                    }
                    return node;
                  }
                });
    refuse(bare);
    return bare;
  }

  /** Return a plan with scans of the supplied rows and with generated code. */
  private SparkPlan scanning(SparkPlan bare) {
    final Map columns = usedColumns(bare);
    SparkPlan scanning =
        (SparkPlan)
            bare.transformUp(
                new AbstractPartialFunction() {
                  public boolean isDefinedAt(Object node) {
                    return node instanceof RDDScanExec;
                  }

                  public Object applyOrElse(Object node, Function1 otherwise) {
                    if (node instanceof RDDScanExec
                        && ((RDDScanExec) node).rdd() instanceof Relations.Leaf) {
                      RDDScanExec leaf = (RDDScanExec) node;
                      return scanOf(leaf, (Set) columns.get(((Relations.Leaf) leaf.rdd()).name));
                    }
                    return node;
                  }
                });
    return new CollapseCodegenStages(new AtomicInteger(0)).apply(scanning);
  }

  private static RDDScanExec scan(Seq output, RDD rdd) {
    return new RDDScanExec(
        output, rdd, "rows", SinglePartition$.MODULE$, (Seq) Nil$.MODULE$, Option.empty());
  }

  /** Return the scan of a leaf, with the columns that the plan reads; all calls use this scan. */
  private Object scanOf(RDDScanExec leaf, Set places) {
    Relations.Leaf view = (Relations.Leaf) leaf.rdd();
    Seq output = leaf.output();
    List columns = new ArrayList();
    StructType schema = new StructType();
    for (java.util.Iterator numbers = places.iterator(); numbers.hasNext(); ) {
      int place = ((Integer) numbers.next()).intValue();
      Attribute column = (Attribute) output.apply(place);
      columns.add(column);
      String name = view.name.equals(PARTIAL) ? "p" + place : column.name();
      schema = schema.add(name, column.dataType(), true);
    }
    View scansOfView = (View) scans.get(view.name);
    if (scansOfView == null) {
      scansOfView = new View();
      scans.put(view.name, scansOfView);
    }
    Scan scan = new Scan(session.sparkContext(), schema);
    scansOfView.scans.add(scan);
    scansOfView.columns.add(Arrays.asList(schema.fieldNames()));
    return scan(QueryPlans.seq(columns), scan);
  }

  /** The scans of one view in a plan, and the names of each scan's columns. */
  private static class View {
    final List scans = new ArrayList();
    final List columns = new ArrayList();
  }

  /** Return the ordinals of the columns that a plan reads, by view; at least one per view. */
  private static Map usedColumns(SparkPlan plan) {
    final Set used = new HashSet();
    addAll(used, plan.output());
    final List leaves = new ArrayList();
    visit(plan, used, leaves);
    Map columns = new HashMap();
    for (int n = 0; n < leaves.size(); n++) {
      RDDScanExec leaf = (RDDScanExec) leaves.get(n);
      String name = ((Relations.Leaf) leaf.rdd()).name;
      Set places = (Set) columns.get(name);
      if (places == null) {
        places = new TreeSet();
        columns.put(name, places);
      }
      Seq output = leaf.output();
      for (int place = 0; place < output.size(); place++) {
        if (used.contains(((Attribute) output.apply(place)).exprId())) {
          places.add(Integer.valueOf(place));
        }
      }
    }
    for (int n = 0; n < leaves.size(); n++) {
      Set places = (Set) columns.get(((Relations.Leaf) ((RDDScanExec) leaves.get(n)).rdd()).name);
      if (places.isEmpty()) {
        places.add(Integer.valueOf(0));
      }
    }
    return columns;
  }

  private static void visit(SparkPlan plan, Set used, List leaves) {
    if (plan instanceof RDDScanExec && ((RDDScanExec) plan).rdd() instanceof Relations.Leaf) {
      leaves.add(plan);
      return;
    }
    for (Iterator expressions = plan.expressions().iterator(); expressions.hasNext(); ) {
      addAll(used, ((Expression) expressions.next()).references().toSeq());
    }
    if (plan instanceof UnionExec) {
      // The columns of a union are the columns of its parts, by place.
      for (Iterator part = plan.children().iterator(); part.hasNext(); ) {
        addAll(used, ((SparkPlan) part.next()).output());
      }
    }
    for (Iterator child = plan.children().iterator(); child.hasNext(); ) {
      visit((SparkPlan) child.next(), used, leaves);
    }
  }

  private static void addAll(Set ids, Seq attributes) {
    for (Iterator columns = attributes.iterator(); columns.hasNext(); ) {
      ids.add(((Attribute) columns.next()).exprId());
    }
  }

  /** Raise NeedsJob for an operator that reads other rows than ours or needs another process. */
  private static void refuse(SparkPlan plan) {
    String kind = plan.getClass().getName();
    boolean leaf = plan.children().isEmpty();
    boolean ours = plan instanceof RDDScanExec || plan instanceof OneRowRelationExec
        || plan instanceof RangeExec;
    if (plan instanceof RDDScanExec) {
      RDD rdd = ((RDDScanExec) plan).rdd();
      ours = rdd instanceof Relations.Leaf || rdd instanceof Fixed;
    }
    if ((leaf && !ours) || kind.indexOf(".python.") >= 0 || kind.indexOf("Broadcast") >= 0
        || kind.indexOf("ScriptTransformation") >= 0) {
      throw new NeedsJob(plan.nodeName());
    }
    for (Iterator child = plan.children().iterator(); child.hasNext(); ) {
      refuse((SparkPlan) child.next());
    }
  }

  /** Return true if rows pass one by one, so that the row read last is the one that failed. */
  private static boolean isStreaming(SparkPlan plan) {
    String name = plan.getClass().getSimpleName();
    boolean passes = name.equals("ProjectExec") || name.equals("FilterExec")
        || name.equals("WholeStageCodegenExec") || name.equals("InputAdapter")
        || name.equals("GenerateExec") || name.equals("RDDScanExec");
    if (!passes || plan.children().size() > 1) {
      return false;
    }
    return plan.children().isEmpty() || isStreaming((SparkPlan) plan.children().head());
  }

  /**
   * Return the settings of a session, for the tasks of calls.
   *
   * @param few true for calls over few rows: Spark then interprets projections that operators
   *     create for each task, such as those of a join's keys. Generating their code takes longer
   *     than running it.
   */
  private static Properties properties(SparkSession session, boolean few) {
    Properties properties = new Properties();
    for (Iterator settings = session.sessionState().conf().getAllConfs().iterator();
        settings.hasNext(); ) {
      scala.Tuple2 setting = (scala.Tuple2) settings.next();
      properties.setProperty((String) setting._1(), (String) setting._2());
    }
    if (few) {
      properties.setProperty("spark.sql.codegen.factoryMode", "NO_CODEGEN");
      // Interpreted projections look common parts up in a cache, which is slower than computing them.
      properties.setProperty("spark.sql.subexpressionElimination.enabled", "false");
    }
    return properties;
  }

  /** Return the views that the plan reads, one line per scan: the view and its columns. */
  public String reads() {
    StringBuilder text = new StringBuilder();
    for (java.util.Iterator entries = scans.entrySet().iterator(); entries.hasNext(); ) {
      Map.Entry entry = (Map.Entry) entries.next();
      List all = ((View) entry.getValue()).columns;
      for (int n = 0; n < all.size(); n++) {
        text.append((String) entry.getKey());
        for (java.util.Iterator names = ((List) all.get(n)).iterator(); names.hasNext(); ) {
          text.append('\t').append(names.next());
        }
        text.append('\n');
      }
    }
    return text.toString();
  }

  /** Return the Spark schema of the output rows, as JSON. */
  public String schema() {
    return schema.json();
  }

  public String explanation() {
    return explanation;
  }

  /** Return, once, the row at which a call failed; -1 if the plan does not pass rows one by one. */
  public long failingRow(String tag) {
    Long row = (Long) failingRows.remove(tag);
    return row == null ? -1 : row.longValue();
  }

  /**
   * Run the plan over rows in files of Arrow's stream format; write batches, each after its size.
   *
   * Rows pass in files because py4j waits 40 ms for an acknowledgement if it returns over 8 KB.
   *
   * @param request one value per line: the tag for `cancel`, the number of rows of all inputs, the
   *     file for the output, and a file for each line of `reads`. It is one text because py4j takes
   *     30 microseconds per argument.
   */
  public synchronized void run(String request) throws Throwable {
    String[] lines = request.split("\n");
    String tag = lines[0];
    long count = Long.parseLong(lines[1]);
    String output = lines[2];
    String[] files = (String[]) Arrays.copyOfRange(lines, 3, lines.length);
    int number = 0;
    for (java.util.Iterator views = scans.values().iterator(); views.hasNext(); ) {
      List viewScans = ((View) views.next()).scans;
      for (int n = 0; n < viewScans.size(); n++) {
        ((Scan) viewScans.get(n)).batches = batches(files[number++]);
      }
    }
    long task = TASKS.incrementAndGet();
    TaskMemoryManager memory = new TaskMemoryManager(environment.memory, task);
    Properties settings = count <= few ? settingsOfFew : settingsOfMany;
    TaskContextImpl context = environment.context(task, memory, settings);
    BlockManager blocks = environment.blocks;
    blocks.registerTask(task);
    TaskContext outer = TaskContext.get();
    TaskContext$.MODULE$.setTaskContext(context);
    RUNNING.put(tag, context);
    Throwable failure = null;
    try {
      Iterator outputBatches =
          ArrowConverters$.MODULE$.toBatchIterator(
              rows.iterator(partition, context), schema, ALL_ROWS, ZONE, false, false, context);
      DataOutputStream target =
          new DataOutputStream(new BufferedOutputStream(new FileOutputStream(output)));
      try {
        while (outputBatches.hasNext()) {
          byte[] batch = (byte[]) outputBatches.next();
          target.writeInt(batch.length);
          target.write(batch);
        }
      } finally {
        target.close();
      }
    } catch (Throwable error) {
      failure = error;
      if (streams) {
        View view = (View) scans.values().iterator().next();
        failingRows.put(tag, Long.valueOf(((Scan) view.scans.get(0)).row));
      }
      throw error;
    } finally {
      RUNNING.remove(tag);
      try {
        context.markTaskCompleted(failure == null ? Option.empty() : Option.apply(failure));
      } finally {
        blocks.releaseAllLocksForTask(task);
        memory.cleanUpAllAllocatedMemory();
        if (outer == null) {
          TaskContext$.MODULE$.unset();
        } else {
          TaskContext$.MODULE$.setTaskContext(outer);
        }
        for (java.util.Iterator views = scans.values().iterator(); views.hasNext(); ) {
          List viewScans = ((View) views.next()).scans;
          for (int n = 0; n < viewScans.size(); n++) {
            ((Scan) viewScans.get(n)).batches = new byte[0][];
          }
        }
      }
    }
  }

  /** Interrupt the call that runs under a tag; it stops within the next rows that it reads. */
  public static void cancel(String tag) {
    TaskContextImpl context = (TaskContextImpl) RUNNING.get(tag);
    if (context != null) {
      context.markInterrupted("the call was cancelled");
    }
  }

  private static byte[][] batches(String file) throws Exception {
    FileInputStream source = new FileInputStream(file);
    try {
      List batches = new ArrayList();
      Iterator all =
          ArrowConverters$.MODULE$.getBatchesFromStream(Channels.newChannel(source));
      while (all.hasNext()) {
        batches.add(all.next());
      }
      return (byte[][]) batches.toArray(new byte[0][]);
    } finally {
      source.close();
    }
  }

  /** Parts of Spark's environment that calls need, by reflection: Janino cannot load its class. */
  private static class Environment {
    final MemoryManager memory;
    final BlockManager blocks;
    private final Object metrics;
    private final Constructor constructor;
    private final Class[] types;

    Environment() throws Throwable {
      ClassLoader loader = TaskContext.class.getClassLoader();
      Class kind = Class.forName("org.apache.spark.SparkEnv", true, loader);
      // By handle, because listing the methods of the class loads a class that Spark does not ship.
      Object environment =
          MethodHandles.publicLookup()
              .findStatic(kind, "get", MethodType.methodType(kind))
              .invokeWithArguments(new Object[0]);
      memory = (MemoryManager) part(environment, "memoryManager", MemoryManager.class);
      blocks = (BlockManager) part(environment, "blockManager", BlockManager.class);
      metrics =
          part(
              environment, "metricsSystem",
              Class.forName("org.apache.spark.metrics.MetricsSystem", true, loader));
      constructor = TaskContextImpl.class.getConstructors()[0];
      types = constructor.getParameterTypes();
    }

    private static Object part(Object environment, String name, Class type) throws Throwable {
      return MethodHandles.publicLookup()
          .findVirtual(environment.getClass(), name, MethodType.methodType(type))
          .invokeWithArguments(new Object[] {environment});
    }

    /** Return a task context. Its constructor depends on the version, so it is matched by type. */
    TaskContextImpl context(long task, TaskMemoryManager memory, Properties properties)
        throws Exception {
      Object[] values = new Object[types.length];
      int ints = 0;
      for (int n = 0; n < types.length; n++) {
        String type = types[n].getName();
        if (type.equals("int")) {
          // In order: stage, its attempt, partition, attempt of the task, partitions, and, in older
          // versions, CPUs.
          values[n] = Integer.valueOf(ints++ >= 4 ? 1 : 0);
        } else if (type.equals("long")) {
          values[n] = Long.valueOf(task);
        } else if (type.endsWith("TaskMemoryManager")) {
          values[n] = memory;
        } else if (type.equals("java.util.Properties")) {
          values[n] = properties;
        } else if (type.endsWith("MetricsSystem")) {
          values[n] = metrics;
        } else if (type.endsWith("TaskMetrics")) {
          values[n] = new TaskMetrics();
        } else if (type.equals("scala.math.BigDecimal")) {
          values[n] = scala.math.BigDecimal$.MODULE$.apply(1);
        } else if (type.endsWith("immutable.Map")) {
          values[n] = scala.collection.immutable.Map$.MODULE$.empty();
        } else {
          throw new NeedsJob("TaskContextImpl with a parameter of type " + type);
        }
      }
      return (TaskContextImpl) constructor.newInstance(values);
    }
  }
}
