import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;

/** Values in the format of Confluent's Avro serializer: a byte 0, the id of the schema in 4 bytes, Avro's binary form. */
final class RegistryAvro {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int PREFIX = 5;

    private final HttpClient client = HttpClient.newHttpClient();
    private final Map<String, Integer> ids = new ConcurrentHashMap<>();
    private final Map<Integer, Schema> schemas = new ConcurrentHashMap<>();
    private final String registry;
    private final Schema schema;

    /** Writes with the schema given, which may be null for who only reads; reads with the schema of the writer. */
    RegistryAvro(String registry, Schema schema) {
        this.registry = registry;
        this.schema = schema;
    }

    Serde<GenericRecord> serde() {
        Serializer<GenericRecord> serializer = this::serialize;
        Deserializer<GenericRecord> deserializer = this::deserialize;
        return Serdes.serdeFrom(serializer, deserializer);
    }

    private byte[] serialize(String topic, GenericRecord value) {
        if (value == null) {
            return null;
        }
        int id = ids.computeIfAbsent(topic + "-value", this::register);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            bytes.write(ByteBuffer.allocate(PREFIX).put((byte) 0).putInt(id).array());
            BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
            new GenericDatumWriter<GenericRecord>(schema).write(value, encoder);
            encoder.flush();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return bytes.toByteArray();
    }

    private GenericRecord deserialize(String topic, byte[] data) {
        if (data == null) {
            return null;
        }
        ByteBuffer prefix = ByteBuffer.wrap(data);
        if (prefix.get() != 0) {
            throw new IllegalArgumentException(topic + ": the first byte is not 0");
        }
        Schema writer = schemas.computeIfAbsent(prefix.getInt(), this::find);
        try {
            return new GenericDatumReader<GenericRecord>(writer)
                    .read(null, DecoderFactory.get().binaryDecoder(data, PREFIX, data.length - PREFIX, null));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private int register(String subject) {
        String body = JSON.createObjectNode().put("schema", schema.toString()).toString();
        return ask("/subjects/" + subject + "/versions", HttpRequest.BodyPublishers.ofString(body)).get("id").asInt();
    }

    private Schema find(int id) {
        return new Schema.Parser().parse(ask("/schemas/ids/" + id, null).get("schema").asText());
    }

    private JsonNode ask(String path, HttpRequest.BodyPublisher body) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(registry + path))
                .header("Content-Type", "application/vnd.schemaregistry.v1+json");
        if (body != null) {
            request.POST(body);
        }
        try {
            HttpResponse<String> answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IllegalStateException(path + ": " + answer.statusCode() + " " + answer.body());
            }
            return JSON.readTree(answer.body());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(error);
        }
    }
}
