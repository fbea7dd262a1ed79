package tidebench;

import java.io.Serializable;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.util.OutputTag;

/** {@code out} items leave for {@code in} that enter by a path; which ones follows from their numbers. */
class Edge implements Serializable {
    String from;
    String to;
    int out;
    int in;
    long firstPath; // of those that go over it
    long paths;

    OutputTag<Item> tag() {
        return new OutputTag<>("path" + firstPath, TypeInformation.of(Item.class));
    }

    /**
     * How many items have left once n have entered by a path: no state, however often the job starts again. The
     * paths begin at even distances within {@code in}, so rounding takes from some what it gives to others.
     */
    long after(long n, long place) {
        long begun = place * in / paths;
        return n / in * out + (n % in * out + begun) / in;
    }
}
