import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Prints the page at a URL as a Java program would: Fetch URL [USER-AGENT]. */
public class Fetch {
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newBuilder()
            .followRedirects(HttpClient.Redirect.NORMAL)
            .build();
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(args[0]));
        if (args.length > 1) {
            request.header("User-Agent", args[1]);
        }
        HttpResponse<byte[]> response =
            client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
        if (response.statusCode() != 200) {
            System.err.println(response.statusCode());
            System.err.write(response.body());
            System.exit(1);
        }
        System.out.write(response.body());
        System.out.flush();
    }
}
