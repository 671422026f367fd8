import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * Kafka Streams, beside Headrace on the same broker: {@code Neighbour <bootstrap servers> <state folder>}.
 *
 * <p>Each line of its input is a JSON object that names an application, one of the {@link Topologies} and what that
 * needs to know. The application runs until it has processed all that is there; then a line tells so, or what went
 * wrong. The process ends with its input.
 */
public final class Neighbour {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long PATIENCE_MS = 90_000;
    private static final long POLL_MS = 20;

    private final String bootstrap;
    private final String folder;

    private Neighbour(String bootstrap, String folder) {
        this.bootstrap = bootstrap;
        this.folder = folder;
    }

    public static void main(String[] arguments) throws Exception {
        Neighbour neighbour = new Neighbour(arguments[0], arguments[1]);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        String line;
        while ((line = commands.readLine()) != null) {
            Map<String, String> answer = new HashMap<>();
            try {
                neighbour.run(JSON.readTree(line));
            } catch (Exception error) {
                StringWriter trace = new StringWriter();
                error.printStackTrace(new PrintWriter(trace));
                answer.put("error", trace.toString());
            }
            answers.println(JSON.writeValueAsString(answer));
        }
    }

    private void run(JsonNode command) throws Exception {
        String application = command.get("application").asText();
        Topology topology = Topologies.build(command);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
                KafkaStreams streams = new KafkaStreams(topology, settings(application))) {
            streams.setUncaughtExceptionHandler(error -> {
                failure.set(error);
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (!isCaughtUp(admin, application, sources(topology))) {
                if (failure.get() != null) {
                    throw new IllegalStateException(application + " has failed", failure.get());
                }
                if (System.currentTimeMillis() > end) {
                    throw new IllegalStateException(application + " has not caught up in " + PATIENCE_MS + " ms");
                }
                Thread.sleep(POLL_MS);
            }
        }
    }

    private Properties settings(String application) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 50);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        return settings;
    }

    private static Set<String> sources(Topology topology) {
        Set<String> topics = new HashSet<>();
        for (TopologyDescription.Subtopology part : topology.describe().subtopologies()) {
            for (TopologyDescription.Node node : part.nodes()) {
                if (node instanceof TopologyDescription.Source source) {
                    topics.addAll(source.topicSet());
                }
            }
        }
        return topics;
    }

    /**
     * Tells whether all that was written to the source topics is processed and committed. The ends are looked up after
     * what is committed: what an application sends to itself is there before it commits what that came from.
     */
    private static boolean isCaughtUp(Admin admin, String application, Set<String> sources) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> committed =
                admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get();
        Set<String> known = admin.listTopics().names().get();
        Set<String> names = new HashSet<>();
        for (String source : sources) {
            names.add(known.contains(source) ? source : application + "-" + source);
        }
        if (!known.containsAll(names)) {
            return false;
        }
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get().values()) {
            topic.partitions().forEach(part ->
                    asked.put(new TopicPartition(topic.name(), part.partition()), OffsetSpec.latest()));
        }
        for (var end : admin.listOffsets(asked).all().get().entrySet()) {
            OffsetAndMetadata position = committed.get(end.getKey());
            if (end.getValue().offset() > (position == null ? 0 : position.offset())) {
                return false;
            }
        }
        return true;
    }
}
