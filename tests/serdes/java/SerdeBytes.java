import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;

/**
 * Prints what Kafka's own serdes write and read, one JSON object per line.
 *
 * <p>To write java_bytes.jsonl anew, with Java 17 and the class path of the conformance oracle (its jars are in
 * conformance/target/lib after `mvn -f conformance/pom.xml package`), from the root of the project:
 *
 * <pre>
 * java -cp 'conformance/target/lib/*' tests/serdes/java/SerdeBytes.java > tests/serdes/java_bytes.jsonl
 * </pre>
 *
 * <p>"serde", with "inner" and "size" where it has them, names the serde. Lines are of these kinds:
 * <ul>
 *   <li>"write": "value" was written, "hex" are its bytes, null if null was written; "unreadable" is there if Java does
 *       not read them back;</li>
 *   <li>"read": the bytes "hex" were read; "value" came out, or "rejected" is true;</li>
 *   <li>"lenient write" and "lenient read": the same, where Java takes what is wrong and loses or makes up data.</li>
 * </ul>
 * Numbers, bytes (in hex) and UUIDs stand as strings, so that nothing is lost on the way.
 */
public class SerdeBytes {
    private static final ObjectMapper JSON = new ObjectMapper().enable(JsonWriteFeature.ESCAPE_NON_ASCII.mappedFeature());
    private static final HexFormat HEX = HexFormat.of();

    /** A serde under its name here, with the way to show its values. */
    private record Named<T>(Map<String, Object> name, Serde<T> serde, Function<T, Object> show) {
        static <T> Named<T> of(String name, Serde<T> serde, Function<T, Object> show) {
            return new Named<>(Map.of("serde", name), serde, show);
        }

        @SafeVarargs
        final void write(T... values) throws Exception {
            write("write", values);
        }

        @SafeVarargs
        final void lenientWrite(T... values) throws Exception {
            write("lenient write", values);
        }

        private void write(String kind, T[] values) throws Exception {
            for (T value : values) {
                byte[] data = serde.serializer().serialize("topic", value);
                Map<String, Object> line = line(kind);
                line.put("value", value == null ? null : show.apply(value));
                line.put("hex", data == null ? null : HEX.formatHex(data));
                try {
                    T back = serde.deserializer().deserialize("topic", data);
                    Object shown = back == null ? null : show.apply(back);
                    if (!JSON.writeValueAsString(shown).equals(JSON.writeValueAsString(line.get("value")))) {
                        line.put("unreadable", "comes back as " + shown);
                    }
                } catch (RuntimeException error) {
                    line.put("unreadable", error.getMessage());
                }
                System.out.println(JSON.writeValueAsString(line));
            }
        }

        void read(String... hexes) throws Exception {
            read("read", hexes);
        }

        void lenientRead(String... hexes) throws Exception {
            read("lenient read", hexes);
        }

        private void read(String kind, String[] hexes) throws Exception {
            for (String hex : hexes) {
                Map<String, Object> line = line(kind);
                line.put("hex", hex);
                try {
                    T value = serde.deserializer().deserialize("topic", HEX.parseHex(hex));
                    line.put("value", value == null ? null : show.apply(value));
                } catch (RuntimeException error) {
                    line.put("rejected", true);
                }
                System.out.println(JSON.writeValueAsString(line));
            }
        }

        /** The name as an inner serde's: of a list of strings, "List(String)". */
        private String described() {
            return name.containsKey("inner") ? name.get("serde") + "(" + name.get("inner") + ")" : (String) name.get("serde");
        }

        private Map<String, Object> line(String kind) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("kind", kind);
            for (String key : List.of("serde", "inner", "size")) {
                if (name.containsKey(key)) {
                    line.put(key, name.get(key));
                }
            }
            return line;
        }

        @SuppressWarnings({"unchecked", "rawtypes"})
        Named<List<T>> list() {
            Serde<List<T>> lists = Serdes.ListSerde((Class) ArrayList.class, serde);
            Function<List<T>, Object> showList = values -> {
                List<Object> shown = new ArrayList<>();
                values.forEach(value -> shown.add(value == null ? null : show.apply(value)));
                return shown;
            };
            return new Named<>(Map.of("serde", "List", "inner", described()), lists, showList);
        }

        Named<Windowed<T>> windowed(long size) {
            return new Named<>(
                Map.of("serde", "Windowed", "inner", described(), "size", size),
                new WindowedSerdes.TimeWindowedSerde<>(serde, size), this::showWindowed);
        }

        Named<Windowed<T>> session() {
            return new Named<>(
                Map.of("serde", "SessionWindowed", "inner", described()),
                new WindowedSerdes.SessionWindowedSerde<>(serde), this::showWindowed);
        }

        private Object showWindowed(Windowed<T> windowed) {
            Map<String, Object> shown = new LinkedHashMap<>();
            shown.put("key", show.apply(windowed.key()));
            shown.put("start", windowed.window().start());
            shown.put("end", windowed.window().end());
            return shown;
        }
    }

    private static final Named<String> STRING = Named.of("String", Serdes.String(), text -> text);
    private static final Named<Integer> INTEGER = Named.of("Integer", Serdes.Integer(), String::valueOf);
    private static final Named<Long> LONG = Named.of("Long", Serdes.Long(), String::valueOf);
    private static final Named<Short> SHORT = Named.of("Short", Serdes.Short(), String::valueOf);
    private static final Named<Float> FLOAT = Named.of("Float", Serdes.Float(), String::valueOf);
    private static final Named<Double> DOUBLE = Named.of("Double", Serdes.Double(), String::valueOf);
    private static final Named<Boolean> BOOLEAN = Named.of("Boolean", Serdes.Boolean(), value -> value);
    private static final Named<Bytes> BYTES = Named.of("Bytes", Serdes.Bytes(), value -> HEX.formatHex(value.get()));
    private static final Named<UUID> UUIDS = Named.of("UUID", Serdes.UUID(), UUID::toString);
    private static final Named<Void> VOID = Named.of("Void", Serdes.Void(), value -> value);

    private static final UUID SOME_UUID = UUID.fromString("123e4567-e89b-12d3-a456-426614174000");

    public static void main(String[] args) throws Exception {
        single();
        lists();
        leniency();
        windows();
    }

    private static void single() throws Exception {
        STRING.write("", "a", "grüezi", "中文", "\uD83D\uDE80 rocket", "\uD834\uDD1E", "\u0000", "line\nbreak", "\uFEFFbom", "e\u0301",
            "\uFFFF", null);
        // Half a surrogate pair; bytes that are no UTF-8: wrong, cut short, a surrogate, an overlong NUL, too high.
        STRING.lenientWrite("\uD800", "a\uDC00b");
        STRING.lenientRead("ff", "61ff62", "e282", "c3", "f09f9a", "eda080", "c080", "f4908080", "80", "61e28262");
        INTEGER.write(0, 1, -1, 258, 65_536, Integer.MIN_VALUE, Integer.MAX_VALUE, null);
        INTEGER.read("", "00", "000000", "0000000001", "0000000000000001");
        LONG.write(0L, 1L, -1L, 1L << 32, 1_700_000_000_000L, Long.MIN_VALUE, Long.MAX_VALUE, null);
        LONG.read("", "00000001", "68656c6c6f", "000000000000000001");
        SHORT.write((short) 0, (short) 1, (short) -1, (short) 258, Short.MIN_VALUE, Short.MAX_VALUE, null);
        SHORT.read("", "00", "000001");
        FLOAT.write(0f, -0f, 1f, -1.5f, 0.1f, 3.4028235e38f, Float.MIN_VALUE, Float.MIN_NORMAL, -Float.MAX_VALUE, Float.NaN,
            Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, 16_777_216f, null);
        FLOAT.read("", "000000", "0000000000000000");
        DOUBLE.write(0d, -0d, 1d, -1.5d, 0.1d, Double.MAX_VALUE, Double.MIN_VALUE, Double.MIN_NORMAL, -Double.MAX_VALUE,
            Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, 9_007_199_254_740_993d, Math.PI, null);
        DOUBLE.read("", "00000000", "000000000000000000");
        BOOLEAN.write(true, false, null);
        BOOLEAN.read("", "02", "ff", "0001");
        BYTES.write(Bytes.wrap(new byte[0]), Bytes.wrap(new byte[] {0, 1, -1, -128}), null);
        UUIDS.write(new UUID(0, 0), new UUID(-1, -1), new UUID(0, 10), SOME_UUID, null);
        // Capitals, no dashes, a letter too many, one that is no digit, none at all.
        UUIDS.read(text("123E4567-E89B-12D3-A456-426614174ABC"), text("123e4567e89b12d3a456426614174000"),
            text("123e4567-e89b-12d3-a456-4266141740000"), text("123e4567-e89b-12d3-a456-42661417400g"), "");
        UUIDS.lenientRead(text("1-1-1-1-1"));
        VOID.write((Void) null);
        VOID.read("", "00");
    }

    private static void lists() throws Exception {
        INTEGER.list().write(List.of(), List.of(1), List.of(1, -2, Integer.MAX_VALUE), Arrays.asList((Integer) null),
            Arrays.asList(null, 5, null), Arrays.asList(1, null, 3), null);
        LONG.list().write(List.of(), List.of(1L, Long.MIN_VALUE), Arrays.asList(null, null), Arrays.asList(7L, null));
        SHORT.list().write(List.of(), List.of((short) 1, (short) -1), Arrays.asList((short) 7, null));
        FLOAT.list().write(List.of(), List.of(0.5f, Float.NaN), Arrays.asList(null, -0f));
        DOUBLE.list().write(List.of(), List.of(0.5, Double.NEGATIVE_INFINITY), Arrays.asList(null, 0.1));
        UUIDS.list().write(List.of(), List.of(SOME_UUID, new UUID(0, 0)), Arrays.asList(null, SOME_UUID));
        STRING.list().write(List.of(), List.of("a"), List.of("", "b"), List.of("to", "be", "\uD83D\uDE80"), List.of("a", ""),
            Arrays.asList((String) null), Arrays.asList("a", null, "", null, "b"), null);
        BOOLEAN.list().write(List.of(), List.of(true, false), Arrays.asList(null, true));
        BYTES.list().write(List.of(), List.of(Bytes.wrap(new byte[] {1}), Bytes.wrap(new byte[] {2, 3})),
            Arrays.asList(null, Bytes.wrap(new byte[] {-1})));
        VOID.list().write(List.of(), Arrays.asList(null, null));
        STRING.list().list().write(List.of(), List.of(List.of("a"), List.of()), Arrays.asList(null, Arrays.asList("a", null)));

        // Sizes written out although the entries all have the same: read all the same.
        INTEGER.list().read("01" + "00000002" + "00000004" + "00000007" + "ffffffff");
        // No bytes; no such strategy; a negative count; more entries than bytes; a size below -1; a size beyond the end; cut short.
        STRING.list().read("", "02" + "00000000", "01" + "ffffffff", "01" + "00000064", "01" + "00000001" + "fffffffe",
            "01" + "00000001" + "00000064" + "61", "01" + "0000");
        // Constant size, which a String has not.
        STRING.list().read("00" + "00000000" + "00000001" + "61");
        // A negative count of nulls; too many nulls; no count of entries; an entry missing; an entry of the wrong size.
        INTEGER.list().read("00" + "ffffffff" + "00000000", "00" + "00000064" + "00000000", "00" + "00000000",
            "00" + "00000000" + "00000002" + "00000001", "01" + "00000001" + "00000002" + "0001");
    }

    private static void leniency() throws Exception {
        // The last entry cut short; bytes left over; the same with constant size; a null beyond the list.
        STRING.list().lenientRead("01" + "00000001" + "00000003" + "6161", "01" + "00000001" + "00000001" + "61" + "62");
        INTEGER.list().lenientRead("00" + "00000000" + "00000001" + "0001", "00" + "00000000" + "00000001" + "00000001" + "00",
            "00" + "00000001" + "00000009" + "00000001" + "00000007");
    }

    private static void windows() throws Exception {
        STRING.windowed(5_000).write(windowed("a", 0, 5_000), windowed("", 10_000, 15_000), windowed("\uD83D\uDE80", 1_700_000_000_000L, 1_700_000_005_000L),
            null);
        STRING.windowed(Long.MAX_VALUE).write(windowed("a", 0, Long.MAX_VALUE), windowed("a", 7, Long.MAX_VALUE));
        INTEGER.windowed(1).write(windowed(-1, 3, 4));
        LONG.windowed(10).write(windowed(Long.MIN_VALUE, Long.MAX_VALUE - 10, Long.MAX_VALUE));
        DOUBLE.windowed(60_000).write(windowed(0.1, 60_000, 120_000));
        BYTES.windowed(10).write(windowed(Bytes.wrap(new byte[] {0, -1}), 10, 20));
        UUIDS.windowed(10).write(windowed(SOME_UUID, 10, 20));
        // Nothing; too short; an end past the last timestamp; a negative start; a start with no room for an end.
        STRING.windowed(5_000).read("", "61", "00000000000000", "61" + "7fffffffffffffe0", "61" + "ffffffffffffffff",
            "61" + "7fffffffffffffff");
        INTEGER.windowed(5_000).read("000001" + "0000000000000000");

        STRING.session().write(session("a", 0, 0), session("a", 1, 2), session("", 10, 1_700_000_000_000L),
            session("\uD83D\uDE80", 0, Long.MAX_VALUE), null);
        INTEGER.session().write(session(7, 3, 4));
        LONG.session().write(session(Long.MAX_VALUE, 3, 4));
        BYTES.session().write(session(Bytes.wrap(new byte[] {0, -1}), 10, 20));
        // Nothing; too short; end before start; negative start.
        STRING.session().read("", "61" + "0000000000000001", "61" + "0000000000000001" + "0000000000000002",
            "61" + "0000000000000001" + "ffffffffffffffff");
        INTEGER.session().read("000001" + "0000000000000001" + "0000000000000001");
    }

    private static <K> Windowed<K> windowed(K key, long start, long end) {
        return new Windowed<>(key, new TimeWindow(start, end));
    }

    private static <K> Windowed<K> session(K key, long start, long end) {
        return new Windowed<>(key, new SessionWindow(start, end));
    }

    private static String text(String text) {
        return HEX.formatHex(text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }
}
