import java.lang.reflect.Constructor;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.reflect.ClassTag$;

/** The relations that queries read; their rows are supplied at each call, on either lane. */
public class Relations {
  /** A leaf of an analyzed plan: the name of a view whose rows are supplied at each call. */
  public static class Leaf extends RDD {
    public final String name;

    public Leaf(SparkContext context, String name) {
      super(context, (Seq) Nil$.MODULE$, ClassTag$.MODULE$.apply(InternalRow.class));
      this.name = name;
    }

    public Iterator compute(Partition split, TaskContext context) {
      throw new IllegalStateException("view '" + name + "' has no rows of its own");
    }

    public Partition[] getPartitions() {
      return new Partition[] {new OnlyPartition()};
    }
  }

  /** The only partition of rows that are in the driver. */
  public static class OnlyPartition implements Partition {
    public int index() {
      return 0;
    }

    public boolean org$apache$spark$Partition$$super$equals(Object other) {
      return this == other;
    }
  }

  /** Return a relation without rows; rows are supplied later, under its name. */
  public static Dataset relation(SparkSession session, String schema, String name)
      throws Exception {
    StructType type = (StructType) DataType.fromJson(schema);
    Seq output = DataTypeUtils.toAttributes(type);
    // The constructor differs between versions of Spark, so arguments are matched by type.
    Constructor constructor = LogicalRDD.class.getConstructors()[0];
    Class[] types = constructor.getParameterTypes();
    Object[] values = new Object[types.length];
    boolean hasOutput = false;
    for (int n = 0; n < types.length; n++) {
      String kind = types[n].getName();
      if (kind.equals("scala.collection.immutable.Seq")) {
        values[n] = hasOutput ? (Object) Nil$.MODULE$ : output;
        hasOutput = true;
      } else if (kind.endsWith(".RDD")) {
        values[n] = new Leaf(session.sparkContext(), name);
      } else if (kind.endsWith(".Partitioning")) {
        values[n] = SinglePartition$.MODULE$;
      } else if (kind.equals("boolean")) {
        values[n] = Boolean.FALSE;
      } else if (kind.equals("scala.Option")) {
        values[n] = Option.empty();
      } else if (kind.endsWith(".SparkSession")) {
        values[n] = session;
      } else {
        throw new IllegalStateException("LogicalRDD with a parameter of type " + kind);
      }
    }
    return Dataset$.MODULE$.ofRows(session, (LogicalPlan) constructor.newInstance(values));
  }
}
