import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Locale;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** The applications by name. Topics hold strings unless the command says which kinds of {@link Kinds} they hold. */
final class Topologies {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Consumed<String, String> TEXTS_IN = Consumed.with(TEXT, TEXT);
    private static final Produced<String, String> TEXTS_OUT = Produced.with(TEXT, TEXT);

    private Topologies() {}

    static Topology build(JsonNode command) {
        StreamsBuilder builder = new StreamsBuilder();
        switch (command.get("topology").asText()) {
            case "typed" -> typed(builder, command);
            case "texts" -> texts(builder, command);
            case "upper" -> upper(builder, command);
            case "counts" -> counts(builder, command);
            case "windows" -> windows(builder, command);
            case "join" -> join(builder, command);
            case "versions" -> versions(builder, command);
            case "orders" -> orders(builder, command);
            default -> throw new IllegalArgumentException("there is no topology " + command.get("topology"));
        }
        return builder.build();
    }

    /** Reads a kind and, as JSON, a value; writes this as key and value of that kind to a topic of the kind. */
    private static void typed(StreamsBuilder builder, JsonNode command) {
        KStream<String, String> texts = builder.stream(name(command, "in"), TEXTS_IN);
        for (JsonNode one : command.get("kinds")) {
            String kind = one.asText();
            Serde<Object> serde = Kinds.serde(kind, null);
            texts.filter((key, value) -> key.equals(kind))
                    .map((key, value) -> new KeyValue<>(Kinds.parse(kind, value), Kinds.parse(kind, value)))
                    .to(name(command, "out") + "-" + kind, Produced.with(serde, serde));
        }
    }

    /** Reads topics of any kinds; writes the name of the topic, and key and value as JSON. */
    private static void texts(StreamsBuilder builder, JsonNode command) {
        String registry = command.path("registry").asText(null);
        for (JsonNode source : command.get("sources")) {
            String topic = source.get(0).asText();
            Serde<Object> key = Kinds.serde(source.get(1).asText(), registry);
            Serde<Object> value = Kinds.serde(source.get(2).asText(), registry);
            builder.stream(topic, Consumed.with(key, value))
                    .map((k, v) -> new KeyValue<>(topic, "[" + Kinds.text(k) + "," + Kinds.text(v) + "]"))
                    .to(name(command, "out"), TEXTS_OUT);
        }
    }

    /** Writes what it reads in capitals, deletes as well. */
    private static void upper(StreamsBuilder builder, JsonNode command) {
        builder.stream(name(command, "in"), TEXTS_IN)
                .mapValues(value -> value == null ? null : value.toUpperCase(Locale.ROOT))
                .to(name(command, "out"), TEXTS_OUT);
    }

    /** Counts the values, whatever their keys. */
    private static void counts(StreamsBuilder builder, JsonNode command) {
        builder.stream(name(command, "in"), TEXTS_IN)
                .groupBy((key, value) -> value, Grouped.with(TEXT, TEXT))
                .count(Materialized.as("counts"))
                .toStream()
                .to(name(command, "out"), Produced.with(TEXT, Serdes.Long()));
    }

    /** Counts the records of each key, in windows and in sessions. */
    private static void windows(StreamsBuilder builder, JsonNode command) {
        Duration size = Duration.ofMillis(command.get("size").asLong());
        Duration gap = Duration.ofMillis(command.get("gap").asLong());
        Duration retention = Duration.ofMillis(command.get("retention").asLong());
        KGroupedStream<String, String> grouped =
                builder.stream(name(command, "in"), TEXTS_IN).groupByKey(Grouped.with(TEXT, TEXT));
        grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(size))
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("windows").withRetention(retention))
                .toStream()
                .to(name(command, "windows"), Produced.with(
                        WindowedSerdes.timeWindowedSerdeFrom(String.class, size.toMillis()), Serdes.Long()));
        grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(gap))
                .count(Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("sessions").withRetention(retention))
                .toStream()
                .to(name(command, "sessions"), Produced.with(
                        WindowedSerdes.sessionWindowedSerdeFrom(String.class), Serdes.Long()));
    }

    /** Joins a stream with a table; what is not in it is null. */
    private static void join(StreamsBuilder builder, JsonNode command) {
        builder.stream(name(command, "in"), TEXTS_IN)
                .leftJoin(builder.table(name(command, "table"), TEXTS_IN), (left, right) -> left + " " + right,
                        Joined.with(TEXT, TEXT, TEXT))
                .to(name(command, "out"), TEXTS_OUT);
    }

    /** Joins a stream with a table as it was at the time of each record; what was not in it then is null. */
    private static void versions(StreamsBuilder builder, JsonNode command) {
        Duration history = Duration.ofMillis(command.get("history").asLong());
        KTable<String, String> table = builder.table(name(command, "table"), TEXTS_IN,
                Materialized.as(Stores.persistentVersionedKeyValueStore("versions", history)));
        builder.stream(name(command, "in"), TEXTS_IN)
                .leftJoin(table, (left, right) -> left + " " + right, Joined.with(TEXT, TEXT, TEXT))
                .to(name(command, "out"), TEXTS_OUT);
    }

    /** Reads "item count"; writes Avro records. */
    private static void orders(StreamsBuilder builder, JsonNode command) {
        Schema schema = new Schema.Parser().parse(command.get("schema").toString());
        Serde<GenericRecord> serde = new RegistryAvro(command.get("registry").asText(), schema).serde();
        builder.stream(name(command, "in"), TEXTS_IN)
                .mapValues(text -> {
                    String[] parts = text.split(" ");
                    return (GenericRecord) new GenericRecordBuilder(schema)
                            .set("item", parts[0])
                            .set("count", Long.parseLong(parts[1]))
                            .build();
                })
                .to(name(command, "out"), Produced.with(TEXT, serde));
    }

    private static String name(JsonNode command, String field) {
        return command.get(field).asText();
    }
}
