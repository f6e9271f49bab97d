import java.net.URI;

class Fetch {
    public static void main(String[] args) throws Exception {
        var page = URI.create(args[0]).toURL().openConnection(java.net.Proxy.NO_PROXY);
        page.getInputStream().transferTo(System.out);
    }
}
