package tidebench;

import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** Emits by a schedule: 64-bit microseconds since second 0, big endian. Second 0 is in the file {@code start}. */
class Replay implements Source<Item, Replay.Split, Long> {
    private static final long POLL_US = 20_000;
    private static final long LONGEST_REST_US = 200_000;
    final String name;
    final String folder;
    final String schedule;
    final List<Edge> edges;

    Replay(String name, String folder, String schedule, List<Edge> edges) {
        this.name = name;
        this.folder = folder;
        this.schedule = schedule;
        this.edges = edges;
    }

    /** The whole schedule, and how far it has come. */
    public static class Split implements SourceSplit, Serializable {
        long next;

        Split(long next) {
            this.next = next;
        }

        @Override
        public String splitId() {
            return "schedule";
        }
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SplitEnumerator<Split, Long> createEnumerator(SplitEnumeratorContext<Split> context) {
        return new Once(context, false);
    }

    @Override
    public SplitEnumerator<Split, Long> restoreEnumerator(SplitEnumeratorContext<Split> context, Long handedOut) {
        return new Once(context, handedOut == 1);
    }

    @Override
    public SimpleVersionedSerializer<Split> getSplitSerializer() {
        return new Longs<>() {
            @Override
            long of(Split split) {
                return split.next;
            }

            @Override
            Split as(long number) {
                return new Split(number);
            }
        };
    }

    @Override
    public SimpleVersionedSerializer<Long> getEnumeratorCheckpointSerializer() {
        return new Longs<>() {
            @Override
            long of(Long number) {
                return number;
            }

            @Override
            Long as(long number) {
                return number;
            }
        };
    }

    @Override
    public SourceReader<Item, Split> createReader(SourceReaderContext context) {
        return new Reader(context, this);
    }

    private abstract static class Longs<T> implements SimpleVersionedSerializer<T> {
        abstract long of(T value);

        abstract T as(long number);

        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(T value) {
            return ByteBuffer.allocate(Long.BYTES).putLong(of(value)).array();
        }

        @Override
        public T deserialize(int version, byte[] bytes) {
            return as(ByteBuffer.wrap(bytes).getLong());
        }
    }

    /** Gives the split to the first reader, once. */
    private static class Once implements SplitEnumerator<Split, Long> {
        private final SplitEnumeratorContext<Split> context;
        private Split left;

        Once(SplitEnumeratorContext<Split> context, boolean handedOut) {
            this.context = context;
            left = handedOut ? null : new Split(0);
        }

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int reader, String host) {}

        @Override
        public void addSplitsBack(List<Split> splits, int reader) {
            left = splits.get(0);
            give();
        }

        @Override
        public void addReader(int reader) {
            give();
        }

        private void give() {
            if (left == null || context.registeredReaders().isEmpty()) return;
            context.assignSplit(left, context.registeredReaders().keySet().iterator().next());
            left = null;
        }

        @Override
        public Long snapshotState(long id) {
            return left == null ? 1L : 0L;
        }

        @Override
        public void close() {}
    }

    private static class Reader implements SourceReader<Item, Split> {
        private final SourceReaderContext context;
        private final Replay replay;
        private final Path startFile;
        private final Path againFile;
        private final ScheduledExecutorService timer;
        private String again = "";
        private Counts counts;
        private volatile LongBuffer due;
        private volatile long startUs = -1;
        private volatile Split split;
        private volatile CompletableFuture<Void> available = new CompletableFuture<>();

        Reader(SourceReaderContext context, Replay replay) {
            this.context = context;
            this.replay = replay;
            startFile = Path.of(replay.folder, "start");
            againFile = Path.of(replay.folder, "again");
            timer = Executors.newSingleThreadScheduledExecutor(work -> {
                Thread thread = new Thread(work, "replay");
                thread.setDaemon(true);
                return thread;
            });
        }

        @Override
        public void start() {
            try {
                again = asked();
                counts = new Counts(Path.of(replay.folder, "sources", replay.name));
            } catch (IOException error) {
                throw new RuntimeException(error);
            }
            context.metricGroup().setPendingRecordsGauge(this::pending);
            if (split == null) context.sendSplitRequest();
        }

        /** Records that are due and were not emitted; Flink asks in a thread of its own. */
        private long pending() {
            Split now = split;
            LongBuffer times = due;
            if (now == null || times == null || startUs < 0) return 0;
            long next = now.next;
            int low = (int) Math.min(next, times.limit());
            int high = times.limit();
            long sinceUs = Item.nowUs() - startUs;
            while (low < high) {
                int middle = (low + high) >>> 1;
                if (times.get(middle) <= sinceUs) low = middle + 1;
                else high = middle;
            }
            long records = 0;
            for (Edge edge : replay.edges) records += edge.after(low, 0) - edge.after(next, 0);
            return records;
        }

        /** What the file says that the testbed writes to have the job started again as it is. */
        private String asked() throws IOException {
            return Files.exists(againFile) ? Files.readString(againFile) : "";
        }

        @Override
        public InputStatus pollNext(ReaderOutput<Item> out) throws Exception {
            long now = Item.nowUs();
            long restUs = POLL_US;
            if (startUs < 0 && Files.exists(startFile)) startUs = Long.parseLong(Files.readString(startFile).trim());
            if (counts.due(now) && split != null) {
                counts.write(now, split.next);
                if (!asked().equals(again)) throw new RuntimeException("started again on request");
            }
            if (split != null && startUs >= 0) {
                if (due == null) due = ByteBuffer.wrap(Files.readAllBytes(Path.of(replay.schedule))).asLongBuffer();
                if (split.next < due.limit()) {
                    long atUs = startUs + due.get((int) split.next);
                    if (atUs <= now) {
                        for (Edge edge : replay.edges)
                            for (long n = edge.after(split.next, 0); n < edge.after(split.next + 1, 0); n++)
                                out.collect(new Item(edge.firstPath, n, atUs, now));
                        split.next++;
                        return InputStatus.MORE_AVAILABLE;
                    }
                    restUs = Math.min(atUs - now, LONGEST_REST_US);
                } else {
                    restUs = LONGEST_REST_US;
                }
            }
            CompletableFuture<Void> later = new CompletableFuture<>();
            available = later;
            timer.schedule(() -> later.complete(null), restUs, TimeUnit.MICROSECONDS);
            return InputStatus.NOTHING_AVAILABLE;
        }

        @Override
        public List<Split> snapshotState(long id) {
            return split == null ? List.of() : List.of(new Split(split.next));
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            return available;
        }

        @Override
        public void addSplits(List<Split> splits) {
            split = splits.get(0);
            available.complete(null);
        }

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() throws IOException {
            timer.shutdownNow();
            if (counts != null) counts.close();
        }
    }
}
