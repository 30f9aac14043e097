import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * What a plan computes from single rows of its relations, before it aggregates, joins or sorts.
 *
 * The optimized plan says this: in it, conditions over one relation are above that relation, and
 * nothing is computed that is not needed. Expressions over a hidden column, such as the window, or
 * over a subquery depend on more than the row, and are left out.
 */
public class RowPlans {
  private static final String HIDDEN = "__hg_";
  private static final String GIVEN = HIDDEN + "given";

  /** The operators above a relation that take its rows one by one. */
  private static class Chain {
    final LogicalPlan plan;
    final Set columns;
    final Set hidden;
    final boolean whole;

    /**
     * @param columns ids of the columns of the relation
     * @param hidden ids of columns that depend on more than the row
     * @param whole false if the next operator depends on more than the row
     */
    Chain(LogicalPlan plan, Set columns, Set hidden, boolean whole) {
      this.plan = plan;
      this.columns = columns;
      this.hidden = hidden;
      this.whole = whole;
    }

    Chain with(LogicalPlan other) {
      return new Chain(other, columns, hidden, whole);
    }

    Chain end() {
      return new Chain(plan, columns, hidden, false);
    }
  }

  /** Return a plan for every relation whose rows can break an expression; each reads only that. */
  public List of(SparkSession session, LogicalPlan plan) {
    LogicalPlan optimized =
        session
            .sessionState()
            .executePlan(plan, session.sessionState().executePlan$default$2())
            .optimizedPlan();
    final List plans = new ArrayList();
    visit(optimized, null, plans);
    QueryPlans.visitAll(
        optimized,
        new QueryPlans.Visitor() {
          void plan(LogicalPlan node, int depth) {}

          void expression(Expression node, LogicalPlan owner) {
            if (node instanceof SubqueryExpression) {
              visit((LogicalPlan) ((SubqueryExpression) node).plan(), null, plans);
            }
          }
        });
    return plans;
  }

  private static void visit(LogicalPlan node, LogicalPlan above, List plans) {
    Chain chain = chain(node);
    if (chain == null) {
      for (Iterator children = node.children().iterator(); children.hasNext(); ) {
        visit((LogicalPlan) children.next(), node, plans);
      }
      return;
    }
    LogicalPlan rows = rows(chain, above);
    if (rows != null) {
      plans.add(rows);
    }
  }

  /** Return the chain that a node ends; null if it is not above a relation, or takes more rows. */
  private static Chain chain(LogicalPlan node) {
    if (node instanceof LogicalRDD && ((LogicalRDD) node).rdd() instanceof Relations.Leaf) {
      if (((Relations.Leaf) ((LogicalRDD) node).rdd()).name.startsWith(GIVEN)) {
        return null;
      }
      Set columns = new HashSet();
      Set hidden = new HashSet();
      for (Iterator items = node.output().iterator(); items.hasNext(); ) {
        Attribute column = (Attribute) items.next();
        columns.add(column.exprId());
        if (column.name().startsWith(HIDDEN)) {
          hidden.add(column.exprId());
        }
      }
      return new Chain(node, columns, hidden, true);
    }
    boolean takesRows =
        node instanceof Project || node instanceof Filter || node instanceof Generate
            || node.getClass().getName().endsWith("EvalPython");
    Chain below = takesRows ? chain((LogicalPlan) node.children().head()) : null;
    if (below == null || !below.whole) {
      return below;
    }
    if (node instanceof Project) {
      return projected((Project) node, below);
    }
    if (node instanceof Filter) {
      return filtered((Filter) node, below);
    }
    for (Iterator items = node.expressions().iterator(); items.hasNext(); ) {
      if (needsMore((Expression) items.next(), below)) {
        return below.end();
      }
    }
    if (node instanceof Generate && !below.hidden.isEmpty()) {
      return below.end(); // it names columns below it by number, and some may be left out
    }
    List children = new ArrayList();
    children.add(below.plan);
    return below.with((LogicalPlan) node.withNewChildren(QueryPlans.seq(children)));
  }

  private static Chain projected(Project node, Chain below) {
    List kept = new ArrayList();
    Set hidden = new HashSet(below.hidden);
    for (Iterator items = node.projectList().iterator(); items.hasNext(); ) {
      NamedExpression item = (NamedExpression) items.next();
      if (needsMore((Expression) item, below)) {
        hidden.add(item.exprId());
      } else {
        kept.add(item);
      }
    }
    LogicalPlan plan = new Project(QueryPlans.seq(kept), below.plan);
    return new Chain(plan, below.columns, hidden, true);
  }

  private static Chain filtered(Filter node, Chain below) {
    List conditions = conjuncts(node.condition());
    Expression kept = null;
    for (int n = 0; n < conditions.size(); n++) {
      Expression condition = (Expression) conditions.get(n);
      if (!needsMore(condition, below)) {
        kept = kept == null ? condition : new And(kept, condition);
      } else if (!(condition instanceof IsNotNull)
          || !(((IsNotNull) condition).child() instanceof Attribute)) {
        // Later conditions see only the rows that pass this one.
        return (kept == null ? below : below.with(new Filter(kept, below.plan))).end();
      }
    }
    return kept == null ? below : below.with(new Filter(kept, below.plan));
  }

  private static List conjuncts(Expression condition) {
    List conditions = new ArrayList();
    if (condition instanceof And) {
      conditions.addAll(conjuncts(((And) condition).left()));
      conditions.addAll(conjuncts(((And) condition).right()));
    } else {
      conditions.add(condition);
    }
    return conditions;
  }

  /** Return true if an expression needs more than the row: a hidden column, or a subquery. */
  private static boolean needsMore(Expression node, Chain chain) {
    if (node instanceof SubqueryExpression
        || (node instanceof Attribute && chain.hidden.contains(((Attribute) node).exprId()))) {
      return true;
    }
    for (Iterator items = node.children().iterator(); items.hasNext(); ) {
      if (needsMore((Expression) items.next(), chain)) {
        return true;
      }
    }
    return false;
  }

  /** Return a plan of what is computed from single rows; null if nothing of it can fail. */
  private static LogicalPlan rows(Chain chain, LogicalPlan above) {
    List outputs = new ArrayList();
    Set ids = new HashSet();
    for (Iterator items = chain.plan.output().iterator(); items.hasNext(); ) {
      Attribute column = (Attribute) items.next();
      ids.add(column.exprId());
      if (!chain.columns.contains(column.exprId())) {
        outputs.add(column);
      }
    }
    List expressions = above == null || !chain.whole ? new ArrayList() : inputs(above);
    for (int n = 0; n < expressions.size(); n++) {
      Expression expression = (Expression) expressions.get(n);
      if (!(expression instanceof Attribute) && isOver(expression, ids)
          && !needsMore(expression, chain) && !SharedPlans.neverFails(expression)) {
        outputs.add(alias(expression, "__hg_e" + n));
      }
    }
    if (outputs.isEmpty() && neverFails(chain.plan)) {
      return null;
    }
    if (outputs.isEmpty()) {
      outputs.add(alias(new Literal(Boolean.TRUE, org.apache.spark.sql.types.DataTypes.BooleanType),
          "__hg_e"));
    }
    return new Project(QueryPlans.seq(outputs), chain.plan);
  }

  private static boolean neverFails(LogicalPlan plan) {
    for (Iterator items = plan.expressions().iterator(); items.hasNext(); ) {
      if (!(plan instanceof LogicalRDD) && !SharedPlans.neverFails((Expression) items.next())) {
        return false;
      } else if (plan instanceof LogicalRDD) {
        return true;
      }
    }
    return plan.children().isEmpty() || neverFails((LogicalPlan) plan.children().head());
  }

  /** Return the expressions that an operator computes from its rows before it combines them. */
  private static List inputs(LogicalPlan node) {
    List inputs = new ArrayList();
    if (node instanceof Aggregate) {
      addAll(inputs, ((Aggregate) node).groupingExpressions());
      for (Iterator items = ((Aggregate) node).aggregateExpressions().iterator();
          items.hasNext(); ) {
        addArguments(inputs, (Expression) items.next());
      }
    } else if (node instanceof Join && ((Join) node).condition().isDefined()) {
      List conditions = conjuncts((Expression) ((Join) node).condition().get());
      for (int n = 0; n < conditions.size(); n++) {
        inputs.add(conditions.get(n));
        if (conditions.get(n) instanceof EqualTo) {
          inputs.add(((EqualTo) conditions.get(n)).left());
          inputs.add(((EqualTo) conditions.get(n)).right());
        }
      }
    } else if (QueryPlans.kind(node).equals("Expand")) {
      addAll(inputs, node.expressions());
    } else if (!(node instanceof Join)) {
      for (Iterator items = node.expressions().iterator(); items.hasNext(); ) {
        addArguments(inputs, (Expression) items.next());
      }
    }
    return inputs;
  }

  private static void addAll(List inputs, Seq expressions) {
    for (Iterator items = expressions.iterator(); items.hasNext(); ) {
      inputs.add(items.next());
    }
  }

  /** Add the arguments of aggregates and window functions in an expression, and its sort keys. */
  private static void addArguments(List inputs, Expression node) {
    if (node instanceof AggregateExpression) {
      AggregateExpression aggregate = (AggregateExpression) node;
      for (Iterator items = aggregate.aggregateFunction().children().iterator();
          items.hasNext(); ) {
        Expression argument = (Expression) items.next();
        if (aggregate.filter().isDefined()) {
          Expression nothing = new Literal(null, argument.dataType());
          argument = new If((Expression) aggregate.filter().get(), argument, nothing);
        }
        inputs.add(argument);
      }
      return;
    }
    if (node instanceof SortOrder) {
      inputs.add(((SortOrder) node).child());
      return;
    }
    for (Iterator items = node.children().iterator(); items.hasNext(); ) {
      Expression child = (Expression) items.next();
      if (node instanceof WindowExpression
          && !(((WindowExpression) node).windowFunction() instanceof AggregateExpression)) {
        addAll(inputs, ((WindowExpression) node).windowFunction().children());
      }
      addArguments(inputs, child);
    }
  }

  /** Return true if an expression has columns, all of them among some. */
  private static boolean isOver(Expression node, Set ids) {
    Seq references = node.references().toSeq();
    for (Iterator items = references.iterator(); items.hasNext(); ) {
      if (!ids.contains(((Attribute) items.next()).exprId())) {
        return false;
      }
    }
    return !references.isEmpty();
  }

  private static Alias alias(Expression value, String name) {
    return new Alias(
        value, name, NamedExpression$.MODULE$.newExprId(), (Seq) Nil$.MODULE$, Option.empty(),
        (Seq) Nil$.MODULE$);
  }
}
