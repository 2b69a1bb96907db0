package examples;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;

/** Words of texts. */
public final class Words {
    private static final Map<String, LongAdder> SEEN = new ConcurrentHashMap<>();

    private Words() {}

    /** Rows of a word and its number of times. */
    public static Stream<Object[]> frequent(String text) {
        Map<String, Integer> times = new TreeMap<>();
        for (String word : text.split("\\W+")) {
            times.merge(word.toLowerCase(), 1, Integer::sum);
        }
        return times.entrySet().stream().map(entry -> new Object[] {entry.getKey(), entry.getValue()});
    }

    /** How often this was asked for a word, by whatever session, since the server's JVM has started. */
    public static long seen(String word) {
        LongAdder times = SEEN.computeIfAbsent(word, key -> new LongAdder());
        times.increment();
        return times.sum();
    }
}
