package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/output/manual"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// rulesOf returns the lines of nftables in the topic gateway under the comment
// "# rules: NAME", for an interface.
func rulesOf(t *testing.T, name, iface string) string {
	t.Helper()
	topic, _ := manual.Lookup("gateway")
	_, rest, found := strings.Cut(topic.Text, "    # rules: "+name+"\n")
	must.Need(t, found, "the manual has no rules called %s", name)
	rules, _, _ := strings.Cut(rest, "\n\n")
	return strings.ReplaceAll(rules, `"lan"`, `"`+iface+`"`) + "\n"
}

// A bot that knows no proxy, behind a gateway with the rules of the manual: what it asks
// for is judged, over HTTP/1, HTTP/2 and TLS, IPv4 and IPv6, and nothing else passes.
func TestAGatewayRedirectsABotThatKnowsNoProxy(t *testing.T) {
	t.Parallel()
	count := "0"
	if testkit.Full {
		count = "10000"
	}
	gateway(t, "redirect", count)
}

// The same with TPROXY, and many connections: 10,000 with HEED_TEST_FULL=1.
func TestAGatewayWithTPROXY(t *testing.T) {
	t.Parallel()
	count := "100"
	if testkit.Full {
		count = "10000"
	}
	gateway(t, "tproxy", count)
}

func gateway(t *testing.T, mode, count string) {
	t.Helper()
	for _, program := range []string{"unshare", "ip", "curl", "nft", "nginx"} {
		testkit.Program(t, program)
	}
	story := must.Get(filepath.Abs("testdata/gateway/story.sh"))(t)
	dir := t.TempDir()
	ca := testkit.NewCA(t)
	cert, key := ca.Leaf(t, "site.test")
	for from, to := range map[string]string{cert: "cert.pem", key: "key.pem", ca.File: "ca.pem"} {
		testkit.Write(t, filepath.Join(dir, to), testkit.Read(t, from))
	}
	rules := map[string]string{"redirect": "gateway", "tproxy": "tproxy"}[mode]
	testkit.Write(t, filepath.Join(dir, "rules"), rulesOf(t, rules, "to-bot"))
	testkit.Write(t, filepath.Join(dir, "machine-rules"), rulesOf(t, "machine", ""))
	args := []string{"--net", "--mount", "--pid", "--fork", "--kill-child", "sh", story, testkit.Binary(t), dir, mode, count}
	if os.Getuid() != 0 { // without the steps for users of the machine: there is one
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	cmd := exec.Command("unshare", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", testkit.RaceOptions}
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s\nNetwork namespaces need root, or a kernel that gives them to users", err, out)
	got := "\n" + string(out)
	for _, want := range gatewayLines {
		must.Contain(t, got, "\n"+want, "%q is not in it", want)
	}
	if os.Getuid() == 0 && mode == "redirect" && !strings.Contains(got, "\nuser-1002: 200 403 200\nuser-1003-is-not-redirected: 200\n") {
		t.Error("the programs of one user are not judged, or those of another are redirected")
	}
	must.True(t, count == "0" || strings.Contains(got, "\nmany: {'200': "+count+"}\n"),
		"%s connections did not all get the page", count)
	if listener := map[string]string{"redirect": "transparent", "tproxy": "tproxy"}[mode]; !strings.Contains(got, "\nstatus: redirected to [::]:3129 ("+listener+")\n") {
		t.Error("heed status does not name the listener")
	}
	if asked := got[strings.Index(got, "the site was asked for:"):]; strings.Contains(asked, "/private HTTP/2.0") || strings.Contains(asked, "/private HTTP/1.1 site") {
		t.Error("a refused page reached the site")
	}
	must.Contain(t, got, " its connection to 203.0.114.2:80 was redirected to heed ", "heed why does not name the original destination")
	t.Log(got)
}

// gatewayLines are what the bot sees, a line a step: the status and the HTTP version.
var gatewayLines = []string{
	"page: the page\n", "refused: 403/1.1\n",
	"https-h1: 200/1.1\n", "https-h1-refused: 403/1.1\n", "https-h2: 200/2\n", "https-h2-refused: 403/2\n",
	"prior-knowledge: 200/2\n", "prior-knowledge-refused: 403/2\n",
	"ipv6: 200/1.1\n", "ipv6-refused: 403/2\n", "other-port: 200/1.1\n",
	"address-2: 403/1.1\n", "address-3: 403/1.1\n", "address-6: 403/1.1\n", "address-11: 403/1.1\n", // of ten
	"another-name-at-an-address-of-no-site: 200/1.1\n", // heed asks the site that it resolves the name to
	"port-in-host: 421/1.1\n", "address-in-host: 421/1.1\n", "hello-against-host: 421/1.1\n",
	"no-name: 403/1.1\n", "heed-itself: 000/0\n",
	"nothing: ConnectionResetError\n", "slowly: ConnectionResetError\n",
	"garbage: ConnectionResetError\n", "quic: ConnectionRefusedError\n",
	"why: refuse GET http://site.test/private ", "closed: curl: (", "verify: good up to commit",
}
