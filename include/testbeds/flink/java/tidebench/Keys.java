package tidebench;

import java.util.Arrays;
import org.apache.flink.api.java.functions.KeySelector;

/** The key of an item by its number: key k of n (from 1) has a share proportional to k to the power of -exponent. */
class Keys implements KeySelector<Item, Integer> {
    private final double[] upTo;
    private final Numbers numbers;
    private final long seed;

    Keys(int keys, double exponent, long seed, Numbers numbers) {
        upTo = new double[keys];
        double sum = 0;
        for (int k = 0; k < keys; k++) upTo[k] = sum += Math.pow(k + 1, -exponent);
        for (int k = 0; k < keys; k++) upTo[k] /= sum;
        this.seed = seed;
        this.numbers = numbers;
    }

    @Override
    public Integer getKey(Item item) {
        double drawn = (Item.mixed(seed + numbers.of(item)) >>> 11) * 0x1.0p-53;
        int place = Arrays.binarySearch(upTo, drawn);
        return Math.min(upTo.length - 1, place < 0 ? -place - 1 : place);
    }
}
