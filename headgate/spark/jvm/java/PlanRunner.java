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
 * The plan is made once, for a single partition, so it needs no exchange. Only the rows of its
 * leaves change between calls. Compiled at start by the Janino compiler that ships with Spark,
 * hence no lambdas and no generics.
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

  /** The rows of one view in one plan: the columns that the plan reads, for the present call. */
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
      final int[] at = {0};
      final byte[][] all = batches;
      Iterator bytes =
          new scala.collection.AbstractIterator() {
            public boolean hasNext() {
              return at[0] < all.length;
            }

            public Object next() {
              return all[at[0]++];
            }
          };
      Iterator found =
          ArrowConverters$.MODULE$.fromBatchIterator(bytes, schema, ZONE, false, false, context);
      if (nested) {
        // Arrow's nested values fail on a NULL inside; a job sees Spark's own rows, too.
        found = (Iterator) found.map(UnsafeProjection.create(schema));
      }
      final Iterator rows = found;
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

  /** Rows that never change, in one partition: those of VALUES. */
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

  /** The value of a scalar subquery, computed within the call that first asks for it. */
  private static class SubqueryValue implements java.util.function.Supplier, java.io.Serializable {
    // Spark checks that generated code could be sent to an executor; it never is.
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
        Iterator found = rows.iterator(partition, context);
        value = null;
        if (found.hasNext()) {
          InternalRow row = ((InternalRow) found.next()).copy();
          value = row.isNullAt(0) ? null : row.get(0, type);
          if (found.hasNext()) {
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

  /** Raised where a plan cannot be run this way; its message names the operator. */
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

  /** Make the session active again that was before: settings are those of the active session. */
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
   * Prepare the part of a plan below its only aggregate as `this`, and return the rest, which reads
   * what this one gives under the name PARTIAL; null where the plan is not such a one.
   *
   * Partial aggregates of parts of the rows, merged, are exactly the aggregates of all rows.
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
    // Before preparation: that makes one aggregate of two where no exchange lies between them.
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
    // Names of partial results repeat, so they are numbered.
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

  /** Return the aggregate that only filters and projections stand above; null for other plans. */
  private static BaseAggregateExec lastAggregate(SparkPlan plan) {
    while (plan instanceof ProjectExec || plan instanceof FilterExec) {
      plan = (SparkPlan) plan.children().head();
    }
    return plan instanceof BaseAggregateExec ? (BaseAggregateExec) plan : null;
  }

  /** Return true if partial results, merged in any order, are exactly those of all rows. */
  private static boolean merges(BaseAggregateExec partial) {
    for (Iterator each = partial.aggregateExpressions().iterator(); each.hasNext(); ) {
      AggregateExpression aggregate = (AggregateExpression) each.next();
      String name = aggregate.aggregateFunction().getClass().getSimpleName();
      String type =
          aggregate.aggregateFunction().children().isEmpty()
              ? ""
              : ((Expression) aggregate.aggregateFunction().children().head())
                  .dataType().catalogString();
      boolean exact = !type.equals("float") && !type.equals("double");
      boolean known =
          name.equals("Count") || name.equals("Min") || name.equals("Max")
              || ((name.equals("Sum") || name.equals("Average")) && exact
                  && type.indexOf("interval") < 0);
      if (!known || aggregate.isDistinct()
          || !aggregate.mode().toString().equals("Partial")) {
        return false;
      }
    }
    for (Iterator each = partial.groupingExpressions().iterator(); each.hasNext(); ) {
      // Of equal values of a collation, a group has the first; which one that is depends on parts.
      if (!UnsafeRowUtils.isBinaryStable(((Expression) each.next()).dataType())) {
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
    for (Iterator each = plan.children().iterator(); each.hasNext(); ) {
      if (hasAggregate((SparkPlan) each.next())) {
        return true;
      }
    }
    return false;
  }

  /**
   * Return true if anything is computed from the window: a pane's window is not the window that it
   * is merged into, so it may only be a key.
   *
   * @param windows takes the columns that are the window, by whatever name: window(...) is one
   */
  private static boolean computesWithWindow(SparkPlan plan, Set windows) {
    for (Iterator each = plan.children().iterator(); each.hasNext(); ) {
      if (computesWithWindow((SparkPlan) each.next(), windows)) {
        return true;
      }
    }
    if (plan.children().isEmpty()) {
      for (Iterator each = plan.output().iterator(); each.hasNext(); ) {
        Attribute column = (Attribute) each.next();
        if (column.name().equals("__hg_window")) {
          windows.add(column.exprId());
        }
      }
    }
    for (Iterator each = plan.expressions().iterator(); each.hasNext(); ) {
      Expression expression = (Expression) each.next();
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

  /** Return which partial columns are the window, by number. */
  public String windowPlaces() {
    return windowPlaces.toString();
  }

  /** Return the physical plan of the part below an aggregate. */
  public SparkPlan physical() {
    return physical;
  }

  /** Prepare a physical plan that has the output of its own. */
  private void start(SparkPlan runnable) {
    streams = isStreaming(runnable) && !subqueries && scans.size() == 1;
    explanation = runnable.toString();
    // Interpreted, each comparison of a sort costs microseconds.
    few = sorts(runnable) ? FEW_TO_SORT : FEW_ROWS;
    rows = runnable.execute();
    partition = only(rows);
  }

  private static boolean sorts(SparkPlan plan) {
    if (plan.getClass().getSimpleName().equals("SortExec")) {
      return true;
    }
    for (Iterator each = plan.children().iterator(); each.hasNext(); ) {
      if (sorts((SparkPlan) each.next())) {
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

  /** Replace joins that need a broadcast or sorted input, and subqueries, before preparation. */
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
        RDD found = runnable(planned(plan)).execute();
        only(found);
        DataType type = subquery.dataType();
        SubqueryValue value = new SubqueryValue(found, type);
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

  /** Return a join without equal keys as a hash join on a literal. */
  private static Object onOneKey(
      JoinType type, Option condition, SparkPlan left, SparkPlan right) {
    BuildSide side = buildSide(type);
    SparkPlan hashed = side instanceof BuildLeft$ ? left : right;
    // Spark's map of numbers loses the first of rows that have no columns: its address is 0.
    Object value = hashed.output().isEmpty() ? (Object) Boolean.TRUE : (Object) Integer.valueOf(1);
    List keys = new ArrayList();
    keys.add(Literal$.MODULE$.apply(value));
    Seq key = QueryPlans.seq(keys);
    return new ShuffledHashJoinExec(key, key, type, side, condition, left, right, false);
  }

  /** Return the side that can be hashed: the left one only for a right outer join. */
  private static BuildSide buildSide(JoinType type) {
    return type.toString().equals("RightOuter")
        ? (BuildSide) BuildLeft$.MODULE$
        : (BuildSide) BuildRight$.MODULE$;
  }

  private static boolean binaryStable(Seq keys) {
    for (Iterator each = keys.iterator(); each.hasNext(); ) {
      if (!UnsafeRowUtils.isBinaryStable(((Expression) each.next()).dataType())) {
        return false;
      }
    }
    return true;
  }

  /** Prepare a plan for one partition: no exchange, our scans, generated code. */
  private SparkPlan runnable(SparkPlan plan) {
    return scanning(bare(plan));
  }

  /** Return a plan prepared by Spark, without exchanges and generated code. */
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

  /** Return a plan with scans of its own and generated code. */
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

  /** Return the scan of a leaf, with the columns that the plan reads; one scan serves all calls. */
  private Object scanOf(RDDScanExec leaf, Set places) {
    Relations.Leaf view = (Relations.Leaf) leaf.rdd();
    Seq output = leaf.output();
    List kept = new ArrayList();
    StructType schema = new StructType();
    for (java.util.Iterator at = places.iterator(); at.hasNext(); ) {
      int place = ((Integer) at.next()).intValue();
      Attribute column = (Attribute) output.apply(place);
      kept.add(column);
      String name = view.name.equals(PARTIAL) ? "p" + place : column.name();
      schema = schema.add(name, column.dataType(), true);
    }
    View known = (View) scans.get(view.name);
    if (known == null) {
      known = new View();
      scans.put(view.name, known);
    }
    Scan scan = new Scan(session.sparkContext(), schema);
    known.scans.add(scan);
    known.columns.add(Arrays.asList(schema.fieldNames()));
    return scan(QueryPlans.seq(kept), scan);
  }

  /** The scans of one view in a plan, and the names of the columns of each. */
  private static class View {
    final List scans = new ArrayList();
    final List columns = new ArrayList();
  }

  /** Return the ordinals of the columns that a plan reads, by view; one at the least. */
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
      for (int at = 0; at < output.size(); at++) {
        if (used.contains(((Attribute) output.apply(at)).exprId())) {
          places.add(Integer.valueOf(at));
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
    for (Iterator each = plan.expressions().iterator(); each.hasNext(); ) {
      addAll(used, ((Expression) each.next()).references().toSeq());
    }
    if (plan instanceof UnionExec) {
      // The columns of a union are those of its parts, by place.
      for (Iterator part = plan.children().iterator(); part.hasNext(); ) {
        addAll(used, ((SparkPlan) part.next()).output());
      }
    }
    for (Iterator child = plan.children().iterator(); child.hasNext(); ) {
      visit((SparkPlan) child.next(), used, leaves);
    }
  }

  private static void addAll(Set ids, Seq attributes) {
    for (Iterator each = attributes.iterator(); each.hasNext(); ) {
      ids.add(((Attribute) each.next()).exprId());
    }
  }

  /** Raise NeedsJob for an operator that reads anything but our rows or needs another process. */
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

  /** Return true if each row leaves the plan before the next is read, so that it is to blame. */
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
   * Return the settings of a session for the tasks of calls.
   *
   * @param few for calls over few rows: Spark interprets projections that operators create for each
   *     task, such as those of a join's keys. To generate their code takes longer than to use it.
   */
  private static Properties properties(SparkSession session, boolean few) {
    Properties properties = new Properties();
    for (Iterator each = session.sessionState().conf().getAllConfs().iterator(); each.hasNext(); ) {
      scala.Tuple2 setting = (scala.Tuple2) each.next();
      properties.setProperty((String) setting._1(), (String) setting._2());
    }
    if (few) {
      properties.setProperty("spark.sql.codegen.factoryMode", "NO_CODEGEN");
    }
    return properties;
  }

  /** Return the views that the plan reads, each with its columns, by lines. */
  public String reads() {
    StringBuilder text = new StringBuilder();
    for (java.util.Iterator each = scans.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      List all = ((View) entry.getValue()).columns;
      for (int n = 0; n < all.size(); n++) {
        text.append((String) entry.getKey());
        for (java.util.Iterator at = ((List) all.get(n)).iterator(); at.hasNext(); ) {
          text.append('\t').append(at.next());
        }
        text.append('\n');
      }
    }
    return text.toString();
  }

  /** Return Spark's type of the rows that come out, as JSON. */
  public String schema() {
    return schema.json();
  }

  public String explanation() {
    return explanation;
  }

  /** Return the row at which a call has failed; -1 where rows do not pass singly. Asked once. */
  public long failingRow(String tag) {
    Long row = (Long) failingRows.remove(tag);
    return row == null ? -1 : row.longValue();
  }

  /**
   * Run the plan over rows in files of Arrow's stream format; write batches behind their sizes.
   *
   * By files, because bytes that py4j returns wait 40 ms for an acknowledgement above 8 KB.
   *
   * @param request by lines: what `cancel` knows the call by, how many rows the inputs have in all,
   *     the file for the output, and a file for each line of `reads`. One text, because py4j takes
   *     30 microseconds for each argument.
   */
  public synchronized void run(String request) throws Throwable {
    String[] lines = request.split("\n");
    String tag = lines[0];
    long count = Long.parseLong(lines[1]);
    String output = lines[2];
    String[] files = (String[]) Arrays.copyOfRange(lines, 3, lines.length);
    int number = 0;
    for (java.util.Iterator each = scans.values().iterator(); each.hasNext(); ) {
      List found = ((View) each.next()).scans;
      for (int n = 0; n < found.size(); n++) {
        ((Scan) found.get(n)).batches = batches(files[number++]);
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
      Iterator found =
          ArrowConverters$.MODULE$.toBatchIterator(
              rows.iterator(partition, context), schema, ALL_ROWS, ZONE, false, false, context);
      DataOutputStream target =
          new DataOutputStream(new BufferedOutputStream(new FileOutputStream(output)));
      try {
        while (found.hasNext()) {
          byte[] batch = (byte[]) found.next();
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
        for (java.util.Iterator each = scans.values().iterator(); each.hasNext(); ) {
          List found = ((View) each.next()).scans;
          for (int n = 0; n < found.size(); n++) {
            ((Scan) found.get(n)).batches = new byte[0][];
          }
        }
      }
    }
  }

  /** Interrupt the call that runs under a tag, within the next rows that it reads. */
  public static void cancel(String tag) {
    TaskContextImpl context = (TaskContextImpl) RUNNING.get(tag);
    if (context != null) {
      context.markInterrupted("the call was cancelled");
    }
  }

  private static byte[][] batches(String file) throws Exception {
    FileInputStream source = new FileInputStream(file);
    try {
      List found = new ArrayList();
      Iterator all =
          ArrowConverters$.MODULE$.getBatchesFromStream(Channels.newChannel(source));
      while (all.hasNext()) {
        found.add(all.next());
      }
      return (byte[][]) found.toArray(new byte[0][]);
    } finally {
      source.close();
    }
  }

  /** What calls need of Spark's environment, by reflection: Janino cannot load that class. */
  private static class Environment {
    final MemoryManager memory;
    final BlockManager blocks;
    private final Object metrics;
    private final Constructor constructor;
    private final Class[] types;

    Environment() throws Throwable {
      ClassLoader loader = TaskContext.class.getClassLoader();
      Class kind = Class.forName("org.apache.spark.SparkEnv", true, loader);
      // By handle: to list the methods of the class would load a class that Spark does not ship.
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

    /** Return a task context; the constructor differs between versions, so it is matched by type. */
    TaskContextImpl context(long task, TaskMemoryManager memory, Properties properties)
        throws Exception {
      Object[] values = new Object[types.length];
      int ints = 0;
      for (int n = 0; n < types.length; n++) {
        String type = types[n].getName();
        if (type.equals("int")) {
          // stage, attempt, partition, attempt of the task, partitions, and CPUs in older versions
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
