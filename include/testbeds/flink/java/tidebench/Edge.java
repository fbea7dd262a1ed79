package tidebench;

import java.io.Serializable;
import java.math.BigInteger;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.util.OutputTag;

/** {@code out} items leave for {@code in} that enter; which ones follows from their numbers. */
class Edge implements Serializable {
    int index;
    int out;
    int in;
    String to;

    OutputTag<Item> tag() {
        return new OutputTag<>("edge" + index, TypeInformation.of(Item.class));
    }

    /** How many items have left once n have entered: no state, however often the job starts again. */
    long after(long n) {
        long high = Math.multiplyHigh(n, out);
        if (high == 0 && n * out >= 0) return n * out / in;
        return BigInteger.valueOf(n).multiply(BigInteger.valueOf(out)).divide(BigInteger.valueOf(in)).longValue();
    }
}
