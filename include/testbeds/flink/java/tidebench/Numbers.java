package tidebench;

import java.io.Serializable;

/** Numbers of all that an operator gets: the paths that lead to it take turns. */
class Numbers implements Serializable {
    private final long firstPath;
    private final long paths;

    Numbers(long firstPath, long paths) {
        this.firstPath = firstPath;
        this.paths = paths;
    }

    /** By which of the operator's paths it came, from 0. */
    long placeOf(Item item) {
        return item.path - firstPath;
    }

    long of(Item item) {
        return item.number * paths + placeOf(item);
    }
}
