import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** The CPU time of threads of the JVM, and of the tasks of jobs by their tags. */
public class CpuTime extends SparkListener {
  private static final String TAGS = "spark.job.tags";
  private static final long PATIENCE_MS = 1000;

  private final Map tagsByStage = new HashMap();
  private final Map stagesByJob = new HashMap();
  private final Map nanosByTag = new HashMap();
  private final Set markers = new HashSet();
  private SparkContext context;

  public void listen(SparkContext context) {
    this.context = context;
    context.addSparkListener(this);
  }

  public void end() {
    context.removeSparkListener(this);
  }

  /** Return the CPU time of the calling thread, in nanoseconds. */
  public long ofThread() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
  }

  /** An event behind which all events are later than those of the jobs that have ended. */
  public static class Marker implements SparkListenerEvent {
    public boolean logEvent() {
      return false;
    }
  }

  /** Return the CPU time of tasks of jobs with a tag since the last call of this. */
  public long ofJobs(String tag) throws Exception {
    // Events of a job that has ended may still be on their way to this listener. Spark's own
    // `waitUntilEmpty` looks every 10 ms, and at the queues of all listeners.
    Marker marker = new Marker();
    synchronized (this) {
      markers.add(marker);
    }
    context.listenerBus().post(marker);
    synchronized (this) {
      long endMs = System.currentTimeMillis() + PATIENCE_MS;
      long leftMs = PATIENCE_MS;
      while (markers.contains(marker) && leftMs > 0) {
        wait(leftMs);
        leftMs = endMs - System.currentTimeMillis();
      }
      markers.remove(marker);
      Object nanos = nanosByTag.remove(tag);
      return nanos == null ? 0L : ((Long) nanos).longValue();
    }
  }

  public synchronized void onOtherEvent(SparkListenerEvent event) {
    if (markers.remove(event)) {
      notifyAll();
    }
  }

  public synchronized void onJobStart(SparkListenerJobStart start) {
    String text = start.properties() == null ? null : start.properties().getProperty(TAGS);
    if (text == null) {
      return;
    }
    String[] tags = text.split(",");
    List stages = new ArrayList();
    for (scala.collection.Iterator ids = start.stageIds().iterator(); ids.hasNext(); ) {
      Object stage = ids.next();
      stages.add(stage);
      tagsByStage.put(stage, tags);
    }
    stagesByJob.put(Integer.valueOf(start.jobId()), stages);
  }

  public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
    String[] tags = (String[]) tagsByStage.get(Integer.valueOf(end.stageId()));
    if (tags == null || end.taskMetrics() == null) {
      return;
    }
    long nanos = end.taskMetrics().executorCpuTime();
    for (int n = 0; n < tags.length; n++) {
      Object before = nanosByTag.get(tags[n]);
      long sum = before == null ? nanos : nanos + ((Long) before).longValue();
      nanosByTag.put(tags[n], Long.valueOf(sum));
    }
  }

  public synchronized void onJobEnd(SparkListenerJobEnd end) {
    List stages = (List) stagesByJob.remove(Integer.valueOf(end.jobId()));
    for (Iterator ids = stages == null ? new ArrayList().iterator() : stages.iterator();
        ids.hasNext(); ) {
      tagsByStage.remove(ids.next());
    }
  }
}
