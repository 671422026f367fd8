import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

/**
 * Prints the hash of keys by Kafka's own murmur2, and the partitions that its producer chooses for them.
 *
 * <p>To write java_murmur2.tsv anew, with Java 17 and the class path of the conformance oracle (its jars are in
 * conformance/target/lib after `mvn -f conformance/pom.xml package`), from the root of the project:
 *
 * <pre>
 * java -cp 'conformance/target/lib/*' tests/brokers/java/Murmur2.java > tests/brokers/java_murmur2.tsv
 * </pre>
 *
 * <p>A line has the key in hex, its hash, and its partition of 2, 3, 7, 12 and 1000, with tabs between them.
 */
public class Murmur2 {
    private static final int[] COUNTS = {2, 3, 7, 12, 1000};

    public static void main(String[] args) {
        for (byte[] key : keys()) {
            StringBuilder line = new StringBuilder(HexFormat.of().formatHex(key)).append('\t').append(Utils.murmur2(key));
            for (int count : COUNTS) {
                line.append('\t').append(BuiltInPartitioner.partitionForKey(key, count));
            }
            System.out.println(line);
        }
    }

    private static List<byte[]> keys() {
        List<byte[]> keys = new ArrayList<>();
        keys.add(new byte[0]);
        for (String text : List.of("a", "kafka", "grüezi", "日本語", "user-1", "user-2", "00000000-0000-0000-0000-00000000000a")) {
            keys.add(text.getBytes(StandardCharsets.UTF_8));
        }
        // One length of every rest of four, with the highest bit of every byte off and on.
        for (int length = 1; length <= 9; length++) {
            byte[] high = new byte[length];
            java.util.Arrays.fill(high, (byte) 0xff);
            keys.add(new byte[length]);
            keys.add(high);
        }
        Random random = new Random(7);
        for (int i = 0; i < 200; i++) {
            byte[] key = new byte[random.nextInt(40)];
            random.nextBytes(key);
            keys.add(key);
        }
        return keys;
    }
}
