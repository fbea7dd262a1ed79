package tidebench;

import java.io.Serializable;
import java.util.Map;

/** The number of an item among all that an operator gets: its inputs take turns. */
class Numbers implements Serializable {
    private final int[] placeOf;
    private final int inputs;

    Numbers(Map<Integer, Integer> places, int edges) {
        placeOf = new int[edges];
        places.forEach((edge, place) -> placeOf[edge] = place);
        inputs = places.size();
    }

    long of(Item item) {
        return item.number * inputs + placeOf[item.edge];
    }
}
