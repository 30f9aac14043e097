import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;

/** The way of rows through generated code and back, by one call; compiled when a run starts. */
public class Passage {
  private static final long ALL = 1L << 30;
  private final List codes = new ArrayList();
  private StructType taken;
  private StructType given;
  private String zone;

  /** Says what goes in and what comes out. */
  public void between(StructType taken, StructType given, String zone) {
    this.taken = taken;
    this.given = given;
    this.zone = zone;
  }

  /** Adds code that rows pass, after what was added before. */
  public void add(UnsafeProjection code) {
    codes.add(code);
  }

  /**
   * Reads a stream of Arrow's, writes batches behind their sizes.
   *
   * By files: bytes that py4j returns wait 40 ms for an acknowledgement above 8 KB.
   */
  public void carry(String there, String back) throws java.io.IOException {
    ArrowConverters$ arrow = ArrowConverters$.MODULE$;
    FileInputStream source = new FileInputStream(there);
    try {
      Iterator batches = arrow.getBatchesFromStream(Channels.newChannel(source));
      Iterator rows = arrow.fromBatchIterator(batches, taken, zone, false, false, null);
      for (int n = 0; n < codes.size(); n++) {
        rows = (Iterator) rows.map((UnsafeProjection) codes.get(n));
      }
      Iterator made = arrow.toBatchIterator(rows, given, ALL, zone, false, false, null);
      DataOutputStream target =
          new DataOutputStream(new BufferedOutputStream(new FileOutputStream(back)));
      try {
        while (made.hasNext()) {
          byte[] batch = (byte[]) made.next();
          target.writeInt(batch.length);
          target.write(batch);
        }
      } finally {
        target.close();
      }
    } finally {
      source.close();
    }
  }
}
