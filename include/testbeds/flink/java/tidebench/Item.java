package tidebench;

import java.time.Instant;

/** What flows. {@code path}: by which edges it came, {@code number}: from 0 along it; times in microseconds since 1970. */
public class Item {
    public long path;
    public long number;
    public long emitted;
    public long sent;

    public Item() {}

    Item(long path, long number, long emitted, long sent) {
        this.path = path;
        this.number = number;
        this.emitted = emitted;
        this.sent = sent;
    }

    static long nowUs() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000L + now.getNano() / 1000;
    }

    /** Well mixed bits of a number (the finaliser of SplitMix64): the same draw wherever it is made. */
    static long mixed(long number) {
        number = (number ^ (number >>> 30)) * 0xbf58476d1ce4e5b9L;
        number = (number ^ (number >>> 27)) * 0x94d049bb133111ebL;
        return number ^ (number >>> 31);
    }
}
