package clientpage

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func certificate(t *testing.T) []byte {
	t.Helper()
	file, _ := testkit.NewCA(t).Leaf(t, "proxy.test")
	return must.Get(os.ReadFile(file))(t)
}

func TestPage_NamesTheAddressTheFingerprintAndTheContact(t *testing.T) {
	t.Parallel()
	f := Facts{Addr: "proxy.test:3128", CACert: certificate(t), Contact: `https://example.org/?a=1&b="<x>"`}
	html := must.Get(f.HTML())(t)
	prints := f.Fingerprints()
	must.Need(t, len(prints) > 0 && len(prints[0]) == 95, "the fingerprints are %q", prints)
	for form, page := range map[string]string{"text": string(f.Text()), "html": string(html)} {
		for _, want := range []string{"proxy.test:3128/ca.pem", "proxy.test:3128/ca.der", "proxy.test:3128/bundle.pem", "proxy.test:3128/proxy.pac", prints[0], "PowerShell", "update-ca-trust"} {
			must.Contain(t, page, want, "%s: there is no %s", form, want)
		}
	}
	must.True(t, !strings.Contains(string(html), "<x>") && strings.Contains(string(f.Text()), f.Contact),
		"the contact is not shown as it is:\n%s", html)
	_, err := x509.ParseCertificate(f.DER())
	must.True(t, err == nil, "ca.der: %v", err)
	block, _ := pem.Decode(f.CACert)
	must.True(t, string(block.Bytes) == string(f.DER()), "ca.der is another certificate than the first of ca.pem")
}

func TestPAC_HasNoOtherWayThanTheProxy(t *testing.T) {
	t.Parallel()
	f := Facts{Addr: "[2001:db8::7]:3128"}
	text := string(f.PAC())
	if strings.Contains(strings.ToUpper(text), "DIRECT") || !strings.Contains(text, `return "PROXY [2001:db8::7]:3128";`) {
		t.Errorf("proxy.pac is\n%s", text)
	}
}

func TestAddrOf_IsTheHostFieldIfItCanBeWrittenIntoAScript(t *testing.T) {
	t.Parallel()
	const listener = "127.0.0.1:3128"
	for host, want := range map[string]string{
		"Proxy.test:8080": "proxy.test:8080", "proxy.test": "proxy.test:80", "[::1]:9": "[::1]:9", "[::1]": "[::1]:80", "192.0.2.7:3128": "192.0.2.7:3128",
		"": listener, `x";alert(1)//:80`: listener, "a b:80": listener, "proxy.test:0": listener, "proxy.test:http": listener, "[fe80::1%eth0]:80": listener,
		"proxy.test:3128; DIRECT": listener, "proxy.test:80:80": listener, strings.Repeat("a", 300): listener,
	} {
		must.Equal(t, AddrOf(host, listener), want, "%q", host)
	}
}

func FuzzAddrOf(f *testing.F) {
	for _, host := range []string{"proxy.test:8080", "[::1]", `";DIRECT`, ":"} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		facts := Facts{Addr: AddrOf(host, "127.0.0.1:3128")}
		lines := strings.Count(string(facts.PAC()), "\n")
		must.True(t, lines == 3 && !strings.ContainsAny(facts.Addr, "\"'\\; \r\n<>&"), "%q becomes %q", host, facts.Addr)
	})
}
