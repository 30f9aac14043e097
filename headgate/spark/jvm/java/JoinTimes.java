import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneOffsetTransitionRule;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.Abs;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryExpression;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionDef;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionRef;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.SubtractTimestamps;
import org.apache.spark.sql.catalyst.expressions.TimestampAdd;
import org.apache.spark.sql.catalyst.expressions.UnaryMinus;
import org.apache.spark.sql.catalyst.expressions.With;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.YearMonthIntervalType;
import org.apache.spark.unsafe.types.CalendarInterval;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractPartialFunction;

/**
 * A reader of join conditions: how streams are joined, and how far apart joined tuples may lie.
 *
 * It understands expressions that are sums of event times and constants. A comparison of two such
 * sums is a bound if their difference is one time minus another, plus a constant.
 */
public class JoinTimes {
  private static final String MARK = "__hg_input";
  private static final long DAY = 86400000000L;

  /** Return a plan in which each leaf, in the order of the plan, reads the next of the frames. */
  public LogicalPlan numbered(LogicalPlan plan, final List frames) {
    final int[] next = {0};
    return (LogicalPlan)
        plan.transformUp(
            new AbstractPartialFunction() {
              public boolean isDefinedAt(Object node) {
                return node instanceof LogicalRDD
                    && QueryPlans.leafName((LogicalPlan) node) != null;
              }

              public Object applyOrElse(Object node, Function1 otherwise) {
                if (!isDefinedAt(node)) {
                  return otherwise.apply(node);
                }
                Dataset frame = (Dataset) frames.get(next[0]++);
                return QueryPlans.renamed(
                    (LogicalPlan) node, frame.queryExecution().analyzed());
              }
            });
  }

  /**
   * Return the joins of a plan as lines, in post-order.
   *
   * "I number" is a relation with that number. "T" is a plan that reads no stream. "J kind line" is
   * a join of the two results before it. "B earlier later most" is a bound in the condition of that
   * join, and "F earlier later most" is a bound in a condition above it: the time of relation
   * `later` is at most `most` microseconds after that of `earlier`. "N number name" is the name of
   * a relation's time in the text.
   *
   * @param columns for each relation, by number, the column with the event time
   */
  public String describe(LogicalPlan plan, List columns, String zone) {
    return new Walk(columns, ZoneId.of(zone)).run(plan);
  }

  /** A sum of event times with whole factors and a constant, `least` to `most` microseconds. */
  private static class Sum {
    final Map times = new TreeMap();
    final long least;
    final long most;

    /** Whether the constant has days even if it is shorter than a day: 1 day minus 23 hours. */
    boolean hasDays;

    Sum(long least, long most) {
      this.least = least;
      this.most = most;
    }

    Sum plus(Sum other, int sign) {
      Sum sum =
          new Sum(
              Math.addExact(least, sign > 0 ? other.least : Math.negateExact(other.most)),
              Math.addExact(most, sign > 0 ? other.most : Math.negateExact(other.least)));
      sum.times.putAll(times);
      for (java.util.Iterator entries = other.times.entrySet().iterator(); entries.hasNext(); ) {
        Map.Entry entry = (Map.Entry) entries.next();
        Integer before = (Integer) sum.times.get(entry.getKey());
        int count = (before == null ? 0 : before.intValue())
            + sign * ((Integer) entry.getValue()).intValue();
        if (count == 0) {
          sum.times.remove(entry.getKey());
        } else {
          sum.times.put(entry.getKey(), Integer.valueOf(count));
        }
      }
      return sum;
    }
  }

  private static class Walk {
    private final List columns;
    private final StringBuilder text = new StringBuilder();
    private final Map sums = new HashMap();
    private final Map owners = new HashMap();
    private final long leastOffset;
    private final long mostOffset;

    Walk(List columns, ZoneId zone) {
      this.columns = columns;
      List offsets = new ArrayList();
      offsets.add(zone.getRules().getStandardOffset(java.time.Instant.EPOCH));
      offsets.add(zone.getRules().getOffset(java.time.Instant.EPOCH));
      Object[] transitions = zone.getRules().getTransitions().toArray();
      for (int n = 0; n < transitions.length; n++) {
        offsets.add(((ZoneOffsetTransition) transitions[n]).getOffsetBefore());
        offsets.add(((ZoneOffsetTransition) transitions[n]).getOffsetAfter());
      }
      Object[] rules = zone.getRules().getTransitionRules().toArray();
      for (int n = 0; n < rules.length; n++) {
        offsets.add(((ZoneOffsetTransitionRule) rules[n]).getOffsetBefore());
        offsets.add(((ZoneOffsetTransitionRule) rules[n]).getOffsetAfter());
      }
      long least = Long.MAX_VALUE;
      long most = Long.MIN_VALUE;
      for (int n = 0; n < offsets.size(); n++) {
        long offset = ((ZoneOffset) offsets.get(n)).getTotalSeconds() * 1000000L;
        least = Math.min(least, offset);
        most = Math.max(most, offset);
      }
      leastOffset = least;
      mostOffset = most;
    }

    String run(LogicalPlan plan) {
      walk(plan);
      names(plan);
      return text.toString();
    }

    private void walk(LogicalPlan plan) {
      String leaf = QueryPlans.leafName(plan);
      if (leaf != null && leaf.startsWith(MARK)) {
        leaf(plan, Integer.valueOf(leaf.substring(MARK.length())));
      } else if (!QueryPlans.reads(plan)) {
        text.append("T\n");
      } else if (plan instanceof Join) {
        walk(((Join) plan).left());
        walk(((Join) plan).right());
        text.append("J\t").append(QueryPlans.detail(plan)).append('\t');
        text.append(QueryPlans.line(plan)).append('\n');
        boolean both =
            QueryPlans.reads(((Join) plan).left()) && QueryPlans.reads(((Join) plan).right());
        if (((Join) plan).condition().isDefined()
            && (both || QueryPlans.detail(plan).equals("Inner"))) {
          bounds((Expression) ((Join) plan).condition().get(), both ? "B" : "F");
        }
      } else if (plan.children().size() == 1) {
        walk((LogicalPlan) plan.children().head());
        if (plan instanceof Filter) {
          bounds(((Filter) plan).condition(), "F");
        }
        if (plan instanceof Project) {
          for (Iterator items = ((Project) plan).projectList().iterator(); items.hasNext(); ) {
            Object column = items.next();
            if (column instanceof Alias) {
              put((Alias) column);
            }
          }
        }
      } else {
        throw new QueryPlans.NotPossible(QueryPlans.kind(plan) + "\t" + QueryPlans.line(plan));
      }
    }

    private void leaf(LogicalPlan plan, Integer number) {
      text.append("I\t").append(number).append('\n');
      Object time = columns.get(number.intValue());
      for (Iterator items = plan.output().iterator(); items.hasNext(); ) {
        Attribute column = (Attribute) items.next();
        owners.put(column.exprId(), number);
        if (time != null && column.name().equalsIgnoreCase((String) time)) {
          Sum sum = new Sum(0, 0);
          sum.times.put(number, Integer.valueOf(1));
          sums.put(column.exprId(), sum);
        }
      }
    }

    private void put(Alias column) {
      Sum sum = sum((Expression) column.child());
      if (sum != null) {
        sums.put(column.exprId(), sum);
      }
      if ((Object) column.child() instanceof Attribute) {
        Object owner = owners.get(((Attribute) (Object) column.child()).exprId());
        if (owner != null) {
          owners.put(column.exprId(), owner);
        }
      }
    }

    /** Write, for every relation that the text names, that name and the name of its time. */
    private void names(LogicalPlan plan) {
      final Map names = new TreeMap();
      final Map times = new HashMap();
      QueryPlans.visitAll(
          plan,
          new QueryPlans.Visitor() {
            void plan(LogicalPlan plan, int depth) {}

            void expression(Expression node, LogicalPlan owner) {
              if (!(node instanceof AttributeReference)) {
                return;
              }
              AttributeReference column = (AttributeReference) node;
              Object number = owners.get(column.exprId());
              if (number == null || column.qualifier().isEmpty()) {
                return;
              }
              if (!names.containsKey(number)) {
                names.put(number, column.qualifier().last());
              }
              if (sums.containsKey(column.exprId()) && !times.containsKey(number)) {
                names.put(number, column.qualifier().last());
                times.put(number, column.name());
              }
            }
          });
      for (java.util.Iterator items = names.keySet().iterator(); items.hasNext(); ) {
        Object number = items.next();
        Object time = times.get(number);
        time = time == null ? columns.get(((Integer) number).intValue()) : time;
        String name = names.get(number) + "." + time;
        text.append("N\t").append(number).append('\t');
        text.append(name.replace('\t', ' ').replace('\n', ' ')).append('\n');
      }
    }

    // ---- Conditions ----

    private void bounds(Expression condition, String kind) {
      if (condition instanceof And) {
        bounds((Expression) ((And) condition).left(), kind);
        bounds((Expression) ((And) condition).right(), kind);
      } else if (condition instanceof RuntimeReplaceable) {
        bounds(((RuntimeReplaceable) condition).replacement(), kind);
      } else if (condition instanceof With) {
        // An expression that several comparisons share, as in BETWEEN.
        for (Iterator items = ((With) condition).defs().iterator(); items.hasNext(); ) {
          CommonExpressionDef common = (CommonExpressionDef) items.next();
          sums.put(common.id(), sum((Expression) common.child()));
        }
        bounds((Expression) ((With) condition).child(), kind);
      } else if (condition instanceof BinaryExpression) {
        Expression left = (Expression) ((BinaryExpression) condition).left();
        Expression right = (Expression) ((BinaryExpression) condition).right();
        if (condition instanceof LessThan) {
          atMost(left, right, 1, kind);
        } else if (condition instanceof LessThanOrEqual) {
          atMost(left, right, 0, kind);
        } else if (condition instanceof GreaterThan) {
          atMost(right, left, 1, kind);
        } else if (condition instanceof GreaterThanOrEqual) {
          atMost(right, left, 0, kind);
        } else if (condition instanceof EqualTo) {
          atMost(left, right, 0, kind);
          atMost(right, left, 0, kind);
        }
      }
    }

    /** Write the bound that `less` is at least `margin` below `more`, if it is a bound. */
    private void atMost(Expression less, Expression more, long margin, String kind) {
      Expression inside = less instanceof Abs ? (Expression) ((Abs) less).child() : less;
      Sum left = sum(inside);
      Sum right = sum(more);
      if (left == null || right == null) {
        return;
      }
      try {
        bound(left.plus(right, -1), margin, kind);
        if (less instanceof Abs) {
          bound(new Sum(0, 0).plus(left, -1).plus(right, -1), margin, kind);
        }
      } catch (ArithmeticException tooFar) {
        return;
      }
    }

    private void bound(Sum difference, long margin, String kind) {
      Object later = null;
      Object earlier = null;
      for (java.util.Iterator items = difference.times.entrySet().iterator(); items.hasNext(); ) {
        Map.Entry entry = (Map.Entry) items.next();
        int count = ((Integer) entry.getValue()).intValue();
        later = count == 1 ? entry.getKey() : later;
        earlier = count == -1 ? entry.getKey() : earlier;
      }
      if (difference.times.size() == 2 && later != null && earlier != null) {
        long most = Math.subtractExact(Math.negateExact(difference.least), margin);
        text.append(kind).append('\t').append(earlier).append('\t').append(later);
        text.append('\t').append(most).append('\n');
      }
    }

    // ---- Sums of times and constants ----

    /** Return an expression as a sum; null if it is not one. */
    private Sum sum(Expression node) {
      try {
        return understood(node);
      } catch (Exception unknown) {
        return null; // a number is too great, or a constant cannot be computed: there is no bound
      }
    }

    private Sum understood(Expression node) {
      if (node instanceof Attribute) {
        return (Sum) sums.get(((Attribute) node).exprId());
      }
      if (node instanceof CommonExpressionRef) {
        return (Sum) sums.get(((CommonExpressionRef) node).id());
      }
      String kind = QueryPlans.kind(node);
      boolean linear =
          node.dataType() instanceof DayTimeIntervalType || node.dataType() instanceof LongType;
      if (node.foldable()) {
        return linear ? constant(node) : null;
      }
      if (node instanceof RuntimeReplaceable) {
        return sum(((RuntimeReplaceable) node).replacement());
      }
      if (kind.equals("TimestampAddInterval") || kind.equals("TimeAdd")
          || kind.equals("TimestampAddYMInterval")) {
        Expression start = (Expression) ((BinaryExpression) node).left();
        return moved(start, constant((Expression) ((BinaryExpression) node).right()));
      }
      if (node instanceof TimestampAdd) {
        TimestampAdd add = (TimestampAdd) node;
        return moved(add.timestamp(), units(constant(add.quantity()), add.unit()));
      }
      if (node instanceof SubtractTimestamps) {
        Expression left = (Expression) ((SubtractTimestamps) node).left();
        Sum difference = plus(left, (Expression) ((SubtractTimestamps) node).right(), -1);
        return difference == null ? null : difference.plus(shift(left.dataType()), 1);
      }
      if (node instanceof Cast) {
        return cast((Cast) node);
      }
      if (kind.equals("UnixMicros")) {
        return sum((Expression) node.children().head());
      }
      if (linear && node instanceof UnaryMinus) {
        Sum negated = sum((Expression) ((UnaryMinus) node).child());
        return negated == null ? null : new Sum(0, 0).plus(negated, -1);
      }
      if (linear && (node instanceof Add || node instanceof Subtract)) {
        BinaryExpression both = (BinaryExpression) node;
        return plus(
            (Expression) both.left(), (Expression) both.right(), node instanceof Add ? 1 : -1);
      }
      return null;
    }

    private Sum plus(Expression left, Expression right, int sign) {
      Sum first = sum(left);
      Sum second = sum(right);
      return first == null || second == null ? null : first.plus(second, sign);
    }

    /** Return a time plus a constant; days and months are those of the time zone. */
    private Sum moved(Expression start, Sum by) {
      Sum sum = sum(start);
      if (sum == null || by == null) {
        return null;
      }
      boolean hasDays = Math.max(Math.abs(by.least), Math.abs(by.most)) >= DAY || by.hasDays;
      Sum moved = sum.plus(by, 1);
      return hasDays ? moved.plus(shift(start.dataType()), 1) : moved;
    }

    /** Return by how much a difference of local times may differ from that of the instants. */
    private Sum shift(DataType type) {
      long shift = type instanceof TimestampType ? mostOffset - leastOffset : 0;
      return new Sum(-shift, shift);
    }

    private Sum cast(Cast node) {
      DataType from = ((Expression) node.child()).dataType();
      DataType to = node.dataType();
      Sum sum = sum((Expression) node.child());
      if (sum == null || from.equals(to)) {
        return sum;
      }
      if (from instanceof TimestampNTZType && to instanceof TimestampType) {
        return sum.plus(new Sum(-mostOffset, -leastOffset), 1);
      }
      if (from instanceof TimestampType && to instanceof TimestampNTZType) {
        return sum.plus(new Sum(leastOffset, mostOffset), 1);
      }
      boolean toSeconds =
          from instanceof DayTimeIntervalType && to instanceof DayTimeIntervalType
              && ((DayTimeIntervalType) to).endField() == 3;
      return toSeconds ? sum : null;
    }

    /** Return a constant interval in microseconds, or a whole number; null if it is neither. */
    private static Sum constant(Expression node) {
      Object value = node.foldable() ? node.eval(null) : null;
      if (value instanceof CalendarInterval) {
        CalendarInterval interval = (CalendarInterval) value;
        long days = Math.multiplyExact((long) interval.days, DAY);
        long rest = Math.addExact(days, interval.microseconds);
        Sum sum = months(interval.months).plus(new Sum(rest, rest), 1);
        sum.hasDays = interval.days != 0;
        return sum;
      }
      if (!(value instanceof Long) && !(value instanceof Integer)) {
        return null;
      }
      long number = ((Number) value).longValue();
      boolean inMonths = node.dataType() instanceof YearMonthIntervalType;
      return inMonths ? months(number) : new Sum(number, number);
    }

    /** Return the length of some months: 28 to 31 days each. */
    private static Sum months(long count) {
      long one = Math.multiplyExact(count, 28 * DAY);
      long other = Math.multiplyExact(count, 31 * DAY);
      return new Sum(Math.min(one, other), Math.max(one, other));
    }

    /** Return the length of `count` units of timestampadd; null if the unit is unknown. */
    private static Sum units(Sum count, String unit) {
      String[] names = {
        "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DAYOFYEAR", "WEEK"
      };
      long[] lengths = {1, 1000, 1000000, 60000000L, 3600000000L, DAY, DAY, 7 * DAY};
      for (int n = 0; n < names.length && count != null; n++) {
        if (unit.equalsIgnoreCase(names[n])) {
          long length = Math.multiplyExact(count.least, lengths[n]);
          return new Sum(length, length);
        }
      }
      String[] longer = {"MONTH", "QUARTER", "YEAR"};
      long[] inMonths = {1, 3, 12};
      for (int n = 0; n < longer.length && count != null; n++) {
        if (unit.equalsIgnoreCase(longer[n])) {
          return months(Math.multiplyExact(count.least, inMonths[n]));
        }
      }
      return null;
    }
  }
}
