import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes.SessionWindowedSerde;
import org.apache.kafka.streams.kstream.WindowedSerdes.TimeWindowedSerde;

/** The kinds of keys and values: their serdes, which are the ordinary ones, and their form as JSON. */
final class Kinds {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Kinds() {}

    @SuppressWarnings("unchecked")
    static Serde<Object> serde(String kind, String registry) {
        String[] parts = kind.split(":");
        return (Serde<Object>) switch (parts[0]) {
            case "string" -> Serdes.String();
            case "integer" -> Serdes.Integer();
            case "long" -> Serdes.Long();
            case "short" -> Serdes.Short();
            case "float" -> Serdes.Float();
            case "double" -> Serdes.Double();
            case "boolean" -> Serdes.Boolean();
            case "uuid" -> Serdes.UUID();
            case "bytes" -> Serdes.ByteArray();
            case "list" -> Serdes.ListSerde(ArrayList.class, Serdes.Integer());
            case "windowed" -> new TimeWindowedSerde<>(Serdes.String(), Long.parseLong(parts[1]));
            case "windowed-in-changelog" ->
                    new TimeWindowedSerde<>(Serdes.String(), Long.parseLong(parts[1])).forChangelog(true);
            case "session" -> new SessionWindowedSerde<>(Serdes.String());
            case "avro" -> new RegistryAvro(registry, null).serde();
            default -> throw new IllegalArgumentException("there is no kind " + kind);
        };
    }

    static Object parse(String kind, String text) {
        JsonNode json;
        try {
            json = JSON.readTree(text);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
        return switch (kind) {
            case "string" -> json.asText();
            case "integer" -> json.intValue();
            case "long" -> json.longValue();
            case "short" -> json.shortValue();
            case "float" -> json.floatValue();
            case "double" -> json.doubleValue();
            case "boolean" -> json.booleanValue();
            case "uuid" -> UUID.fromString(json.asText());
            case "bytes" -> HexFormat.of().parseHex(json.asText());
            case "list" -> {
                List<Integer> numbers = new ArrayList<>();
                json.forEach(one -> numbers.add(one.isNull() ? null : one.intValue()));
                yield numbers;
            }
            default -> throw new IllegalArgumentException("there is no kind " + kind);
        };
    }

    static String text(Object value) {
        if (value instanceof GenericRecord) {
            return value.toString();
        }
        try {
            return JSON.writeValueAsString(plain(value));
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private static Object plain(Object value) {
        if (value instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
        if (value instanceof Windowed<?> windowed) {
            return List.of(plain(windowed.key()), windowed.window().start(), windowed.window().end());
        }
        return value;
    }
}
