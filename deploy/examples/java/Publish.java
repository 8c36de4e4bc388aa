import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Publishes one event of family-portal over HTTP. Java 17 or later, without libraries: {@code java Publish.java}
 *
 * <pre>
 * EVENTS_API_URL   the address of events-api
 * EVENTS_API_KEY   an API key for events:publish, bound to the app
 * </pre>
 */
public final class Publish {
    private static final HttpClient CLIENT = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();

    /** Returns once the event is accepted. The id makes a repetition harmless. */
    static void publish(String event, int attempts) throws IOException, InterruptedException {
        String url = System.getenv("EVENTS_API_URL").replaceAll("/+$", "") + "/v1/events";
        HttpRequest request = HttpRequest.newBuilder(URI.create(url))
            .timeout(Duration.ofSeconds(30))
            .header("Content-Type", "application/cloudevents+json")
            .header("Authorization", "Bearer " + System.getenv("EVENTS_API_KEY"))
            .POST(HttpRequest.BodyPublishers.ofString(event))
            .build();
        for (int attempt = 1; ; attempt++) {
            long pause = (long) ((500 + ThreadLocalRandom.current().nextInt(500)) * Math.pow(2, attempt - 1));
            try {
                HttpResponse<String> response = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
                int status = response.statusCode();
                if (status == 202) return;
                if ((status != 429 && status < 500) || attempt == attempts) {
                    throw new IllegalStateException("status " + status + ": " + response.body());
                }
                pause += response.headers().firstValueAsLong("Retry-After").orElse(0) * 1000;
            } catch (IOException error) {
                if (attempt == attempts) throw error;
            }
            Thread.sleep(pause);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        String id = UUID.randomUUID().toString();
        // With a JSON library, build this from values. Texts need escapes.
        String event = """
            {
              "specversion": "1.0",
              "id": "%s",
              "source": "/family-portal/chat",
              "type": "chat.message.created",
              "time": "%s",
              "data": {
                "message": {"id": 123, "text": "Dinner is at seven.", "thread_id": null},
                "sender": {"id": 456, "name": "Pat"},
                "participants": [456, 457, 458]
              }
            }
            """.formatted(id, Instant.now());
        try {
            publish(event, 5);
            System.out.println("accepted " + id);
        } catch (IOException | IllegalStateException error) {
            System.err.println(error.getMessage());
            System.exit(1);
        }
    }
}
