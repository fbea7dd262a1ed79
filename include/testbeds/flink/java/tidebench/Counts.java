package tidebench;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * One line of numbers in a file, written over again and again. It begins and ends with the time of writing (us),
 * so a reader sees whether it has all of it.
 */
class Counts {
    private static final int WIDTH = 1024;
    static final long EVERY_US = 50_000;
    private final RandomAccessFile file;
    private long writtenUs;

    Counts(Path path) throws IOException {
        Files.createDirectories(path.getParent());
        file = new RandomAccessFile(path.toFile(), "rw");
    }

    boolean due(long nowUs) {
        return nowUs - writtenUs >= EVERY_US;
    }

    void write(long nowUs, long... values) throws IOException {
        StringBuilder line = new StringBuilder(WIDTH).append(nowUs);
        for (long value : values) line.append(',').append(value);
        line.append(',').append(nowUs);
        while (line.length() < WIDTH - 1) line.append(' ');
        line.append('\n');
        file.seek(0);
        file.write(line.toString().getBytes(StandardCharsets.US_ASCII));
        writtenUs = nowUs;
    }

    void close() throws IOException {
        file.close();
    }
}
