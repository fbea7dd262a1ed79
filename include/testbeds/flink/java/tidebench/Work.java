package tidebench;

import java.io.BufferedWriter;
import java.io.FileWriter;
import java.io.IOException;
import java.io.Writer;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.KeyedStateStore;
import org.apache.flink.api.common.state.OperatorStateStore;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.execution.Environment;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * An operator that takes its time. Queue "engine": it works in the task's thread, and items wait in Flink's buffers,
 * with back pressure as in any job. Queue "heap": it takes every item at once into a queue of its own, which is
 * part of each checkpoint, and time passes by timers: the queue of the simulator.
 */
class Work extends AbstractStreamOperator<Item> implements OneInputStreamOperator<Item, Item> {
    private static final int CHUNK_KB = 256;
    private static final int ROWS_BYTES = 1 << 15;
    private static final long FLUSH_US = 250_000;
    private static final long IDLE_US = 250_000;
    /** Upper bounds of the bins of timer lags, in microseconds; the last bin has none. */
    private static final long[] LAGS_US = {1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000};
    private static final int TOTALS = 3; // received, done, busy; then what was sent by each edge

    private final String name;
    private final String folder;
    private final double serviceUs;
    private final double cv;
    private final boolean burns;
    private final boolean heap;
    private final int stateKb;
    private final int sampleEvery;
    private final long seed;
    private final List<Edge> edges;
    private final Numbers numbers;
    private final Keys keys; // null: items belong to nobody

    private transient ListState<Item> queued;
    private transient ListState<Item> queuedByKey;
    private transient ListState<Long> totals;
    private transient ListState<byte[]> chunks;
    private transient ValueState<byte[]> stateOfKey;
    private transient Set<Integer> keysOfQueued;
    private transient List<byte[]> state;
    private transient ArrayDeque<Item> queue;
    private transient boolean serving;
    private transient long headStartUs;
    private transient long headDoneUs;
    private transient long freeAtUs;
    private transient long timerUs; // when the timer of the item in service is due; 0: there is none
    private transient long received;
    private transient long done;
    private transient long busyUs;
    private transient long[] sent;
    private transient long[] lags;
    private transient Counts counts;
    private transient Writer rows;
    private transient long flushedUs;
    private transient String attempt;

    Work(JsonNode spec, JsonNode of, List<Edge> edges, Numbers numbers, Keys keys) {
        name = of.get("name").asText();
        folder = spec.get("folder").asText();
        serviceUs = of.get("service_us").asDouble();
        cv = of.path("cv").asDouble(0);
        burns = of.path("burns").asBoolean(false);
        heap = spec.get("queue").asText().equals("heap");
        stateKb = of.path("state_kb").asInt(0);
        sampleEvery = spec.get("sample_every").asInt();
        seed = spec.get("seed").asLong() * 1_000_003L + name.hashCode();
        this.edges = edges;
        this.numbers = numbers;
        this.keys = keys;
    }

    // -------------------------------------------------------------------------------------- begin and end

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        OperatorStateStore store = context.getOperatorStateStore();
        queued = store.getListState(new ListStateDescriptor<>("queue", Item.class));
        totals = store.getListState(new ListStateDescriptor<>("totals", Long.class));
        chunks = store.getListState(new ListStateDescriptor<>("chunks", byte[].class));
        queue = new ArrayDeque<>();
        sent = new long[edges.size()];
        lags = new long[LAGS_US.length + 1];
        state = new ArrayList<>();
        keysOfQueued = new HashSet<>();
        List<Item> waiting = new ArrayList<>();
        for (Item item : queued.get()) waiting.add(item);
        if (keys != null) takeUpByKey(context.getKeyedStateStore(), waiting);
        waiting.sort(Comparator.comparingLong((Item item) -> item.sent).thenComparingLong(numbers::of));
        queue.addAll(waiting);
        for (long packed : totals.get()) takeUp((int) (packed >>> 56), packed & ((1L << 56) - 1));
        for (byte[] chunk : chunks.get()) state.add(chunk);
        TaskInfo task = getRuntimeContext().getTaskInfo();
        if (keys == null && !context.isRestored()) makeState(task);
        openFiles(task, context.getRestoredCheckpointId().orElse(0));
    }

    /** From the store of the context: while an operator is initialised its runtime context has none yet. */
    private void takeUpByKey(KeyedStateStore store, List<Item> waiting) throws Exception {
        queuedByKey = store.getListState(new ListStateDescriptor<>("queueByKey", Item.class));
        stateOfKey = store.getState(new ValueStateDescriptor<>("state", byte[].class));
        try (Stream<Object> there = getKeyedStateBackend().getKeys("queueByKey", VoidNamespace.INSTANCE)) {
            there.forEach(key -> keysOfQueued.add((Integer) key));
        }
        for (Integer key : keysOfQueued) {
            setCurrentKey(key);
            for (Item item : queuedByKey.get()) waiting.add(item);
        }
    }

    /** Sums survive any redistribution: what they are is in the highest byte. */
    private void takeUp(int what, long amount) {
        switch (what) {
            case 0 -> received += amount;
            case 1 -> done += amount;
            case 2 -> busyUs += amount;
            default -> sent[what - TOTALS] += amount;
        }
    }

    /** The operator's state, in even shares; random, for it would be stored compressed. */
    private void makeState(TaskInfo task) {
        SplittableRandom random = new SplittableRandom(task.getIndexOfThisSubtask());
        int mineKb = stateKb / task.getNumberOfParallelSubtasks();
        for (int leftKb = mineKb; leftKb > 0; leftKb -= CHUNK_KB) {
            byte[] chunk = new byte[Math.min(leftKb, CHUNK_KB) * 1024];
            random.nextBytes(chunk);
            state.add(chunk);
        }
    }

    private void openFiles(TaskInfo task, long restored) throws IOException {
        Environment environment = getContainingTask().getEnvironment();
        String host = environment.getTaskManagerInfo().getConfiguration().get(TaskManagerOptions.TASK_MANAGER_RESOURCE_ID);
        String graph = environment.getExecutionId().toString().split("_")[0];
        int subtask = task.getIndexOfThisSubtask();
        attempt = String.format("%s.%d", graph, subtask);
        String about = String.format("%s.%d.%d.%d.%s", attempt, task.getNumberOfParallelSubtasks(), restored, Item.nowUs(), host);
        counts = new Counts(Path.of(folder, "counts", name, about));
        openRows(restored);
        writeCounts(Item.nowUs(), 0);
    }

    /** A file holds the rows between two checkpoints. */
    private void openRows(long after) throws IOException {
        if (rows != null) rows.close();
        Path path = Path.of(folder, "rows", name, String.format("%s.%d", attempt, after));
        Files.createDirectories(path.getParent());
        rows = new BufferedWriter(new FileWriter(path.toFile()), ROWS_BYTES);
    }

    @Override
    public void open() throws Exception {
        super.open();
        freeAtUs = Item.nowUs();
        writeCountsLater();
        serve();
    }

    @Override
    public void close() throws Exception {
        if (rows != null) rows.close();
        if (counts != null) {
            writeCounts(Item.nowUs(), 1);
            counts.close();
        }
        super.close();
    }

    private void writeCountsLater() {
        long at = (Item.nowUs() + IDLE_US) / 1000;
        getProcessingTimeService().registerTimer(at, t -> {
            flush(Item.nowUs());
            writeCountsLater();
        });
    }

    private void flush(long nowUs) throws IOException {
        if (counts.due(nowUs)) writeCounts(nowUs, 0);
        if (nowUs - flushedUs >= FLUSH_US) {
            rows.flush();
            flushedUs = nowUs;
        }
    }

    private void writeCounts(long nowUs, long closed) throws IOException {
        Item oldest = queue.peek();
        long waiting = Math.max(0, queue.size() - (serving ? 1 : 0));
        long waitsUs = waiting == 0 ? 0 : Math.max(0, nowUs - oldest.sent);
        long[] first = {closed, received, done, busyUs, waiting, waitsUs};
        long[] values = Arrays.copyOf(first, first.length + lags.length + sent.length);
        System.arraycopy(lags, 0, values, first.length, lags.length);
        System.arraycopy(sent, 0, values, first.length + lags.length, sent.length);
        counts.write(nowUs, values);
    }

    // ---------------------------------------------------------------------------------------------- items

    @Override
    public void processElement(StreamRecord<Item> record) throws Exception {
        Item item = record.getValue();
        received++;
        if (heap) {
            queue.add(item);
            serve();
            return;
        }
        long startUs = Item.nowUs();
        flush(startUs);
        long needsUs = (long) needsUs(item);
        spend(needsUs);
        long endUs = Item.nowUs();
        if (!burns) noteLag(endUs - startUs - needsUs);
        finish(item, startUs, endUs);
    }

    /** Gamma of shape 1/cv^2: a sum of exponentials, and one of less than one; drawn by number, so a repetition takes as long. */
    private double needsUs(Item item) {
        if (cv <= 0) return serviceUs;
        SplittableRandom random = new SplittableRandom(Item.mixed(seed + numbers.of(item)));
        double shape = 1 / (cv * cv);
        int whole = (int) (shape + 1e-9);
        double sum = 0;
        for (int i = 0; i < whole; i++) sum -= Math.log(1 - random.nextDouble());
        if (shape - whole > 1e-9) sum += ofLessThanOne(shape - whole, random);
        return serviceUs * sum / shape;
    }

    /** Gamma of a shape below 1: an exponential times a beta (Johnk 1964). */
    private static double ofLessThanOne(double shape, SplittableRandom random) {
        double x, y;
        do {
            x = Math.pow(random.nextDouble(), 1 / shape);
            y = Math.pow(random.nextDouble(), 1 / (1 - shape));
        } while (x + y > 1 || x + y == 0);
        return -Math.log(1 - random.nextDouble()) * x / (x + y);
    }

    private void spend(long us) throws InterruptedException {
        if (us <= 0) return;
        if (!burns) {
            Thread.sleep(us / 1000, (int) (us % 1000) * 1000);
            return;
        }
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long untilNs = threads.getCurrentThreadCpuTime() + us * 1000;
        while (threads.getCurrentThreadCpuTime() < untilNs) Thread.onSpinWait();
    }

    /** Finishes what is done and begins the next item; service times follow each other without gaps. */
    private void serve() {
        while (!queue.isEmpty()) {
            long nowUs = Item.nowUs();
            if (!serving) {
                headStartUs = Math.max(freeAtUs, Math.min(nowUs, queue.peek().sent));
                headDoneUs = headStartUs + (long) needsUs(queue.peek());
                serving = true;
            }
            if (headDoneUs > nowUs) {
                setTimer(headDoneUs);
                return;
            }
            Item item = queue.poll();
            serving = false;
            freeAtUs = headDoneUs;
            noteLag(nowUs - headDoneUs);
            try {
                finish(item, headStartUs, headDoneUs);
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        }
    }

    /** One at a time: were there one for each item that comes meanwhile, all of them would be set anew for every item. */
    private void setTimer(long atUs) {
        if (timerUs == atUs) return;
        timerUs = atUs;
        getProcessingTimeService().registerTimer((atUs + 999) / 1000, t -> {
            if (timerUs != atUs) return;
            timerUs = 0;
            serve();
        });
    }

    private void noteLag(long us) {
        int bin = 0;
        while (bin < LAGS_US.length && us >= LAGS_US[bin]) bin++;
        lags[bin]++;
    }

    private void finish(Item item, long startUs, long endUs) throws Exception {
        done++;
        busyUs += endUs - startUs;
        if (keys != null) keepStateOf(item);
        if (item.number % sampleEvery == 0)
            rows.write(item.path + "," + item.number + "," + item.emitted + "," + item.sent + "," + startUs + "," + endUs + "\n");
        long nowUs = Item.nowUs();
        flush(nowUs);
        long place = numbers.placeOf(item);
        for (int k = 0; k < edges.size(); k++) {
            Edge edge = edges.get(k);
            for (long n = edge.after(item.number, place); n < edge.after(item.number + 1, place); n++) {
                output.collect(edge.tag(), new StreamRecord<>(new Item(edge.firstPath + place, n, item.emitted, nowUs)));
                sent[k]++;
            }
        }
    }

    private void keepStateOf(Item item) throws Exception {
        setCurrentKey(keys.getKey(item));
        byte[] bytes = stateOfKey.value();
        if (bytes == null) {
            bytes = new byte[Math.max(1, stateKb) * 1024];
            new SplittableRandom(numbers.of(item)).nextBytes(bytes);
        }
        bytes[0]++;
        stateOfKey.update(bytes);
    }

    // -------------------------------------------------------------------------------------------- snapshot

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        if (keys == null) queued.update(new ArrayList<>(queue));
        else keepQueueByKey();
        chunks.update(state);
        List<Long> all = new ArrayList<>(List.of(received, (1L << 56) + done, (2L << 56) + busyUs));
        for (int k = 0; k < sent.length; k++) all.add(((long) (TOTALS + k) << 56) + sent[k]);
        totals.update(all);
        openRows(context.getCheckpointId());
    }

    private void keepQueueByKey() throws Exception {
        for (Integer key : keysOfQueued) {
            setCurrentKey(key);
            queuedByKey.clear();
        }
        keysOfQueued.clear();
        for (Item item : queue) {
            Integer key = keys.getKey(item);
            keysOfQueued.add(key);
            setCurrentKey(key);
            queuedByKey.add(item);
        }
    }
}
