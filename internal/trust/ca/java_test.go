package ca

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// javaClient shakes hands as HTTPS clients do, with the trust store the JVM
// was started with, and says how many roots that holds.
const javaClient = `
import java.net.Socket;
import java.security.KeyStore;
import javax.net.ssl.*;

public class Client {
	public static void main(String[] args) throws Exception {
		TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		factory.init((KeyStore) null);
		System.out.println("roots " + ((X509TrustManager) factory.getTrustManagers()[0]).getAcceptedIssuers().length);
		Socket plain = new Socket("127.0.0.1", Integer.parseInt(args[0]));
		SSLSocket socket = (SSLSocket) ((SSLSocketFactory) SSLSocketFactory.getDefault()).createSocket(plain, "example.com", 443, true);
		SSLParameters parameters = socket.getSSLParameters();
		parameters.setEndpointIdentificationAlgorithm("HTTPS");
		socket.setSSLParameters(parameters);
		socket.startHandshake();
		System.out.println("trusted");
	}
}
`

func TestJavaTrustsTheTrustStore(t *testing.T) {
	java, javac := testkit.Program(t, "java"), testkit.Program(t, "javac")
	onlyRoots(t, issue(t, "One", nil, nil, nil), issue(t, "One", nil, nil, nil)) // two of one name
	a := must.Get(Open(newDir(t), time.Now))(t)
	dir := t.TempDir()
	store, source := filepath.Join(dir, "trust.p12"), filepath.Join(dir, "Client.java")
	put(t, source, []byte(javaClient), 0o644)
	must.OK(t, WriteJavaTrustStore(store, a, nil))
	run(t, true, javac, "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-d", dir, source)
	port := serve(t, a)
	client := func(options ...string) []string {
		return append(append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", dir}, options...), "Client", port)
	}
	for _, password := range [][]string{nil, {"-Djavax.net.ssl.trustStorePassword=changeit"}} {
		args := client(append(password, "-Djavax.net.ssl.trustStore="+store)...)
		must.Contain(t, run(t, true, java, args...), "roots 3\ntrusted", "%v", password)
	}
	must.Contain(t, run(t, false, java, client()...), "SSLHandshakeException", "without the trust store")
}

func TestKeytoolReadsTheTrustStore(t *testing.T) {
	keytool := testkit.Program(t, "keytool")
	onlyRoots(t, issue(t, "One", nil, nil, nil))
	a := open(t, noon)
	store := filepath.Join(t.TempDir(), "trust.p12")
	must.OK(t, WriteJavaTrustStore(store, a, nil))
	out := run(t, true, keytool, "-list", "-keystore", store, "-storepass", "changeit", "-v")
	must.True(t, strings.Count(out, "trustedCertEntry") == 2 && strings.Contains(out, Fingerprint(a.chain[0])),
		"not what was put in:\n%s", out)
}
