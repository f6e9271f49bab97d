package passport

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// rfcKey is the key of RFC 9421 §B.1.4.
func rfcKey(t testing.TB) *Key {
	t.Helper()
	k, err := ParseKey([]byte(`{"kty":"OKP","crv":"Ed25519","kid":"test-key-ed25519",
		"d":"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}`))
	must.OK(t, err)
	return k
}

// The example of RFC 8037 §A.3.
func TestThumbprint(t *testing.T) {
	t.Parallel()
	j := jwk{Type: "OKP", Curve: "Ed25519", X: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
	k, err := j.public()
	must.True(t, err == nil && k.Thumbprint == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "%+v, %v", k, err)
	must.Equal(t, rfcKey(t).Thumbprint, "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U", "the key of RFC 9421 has the thumbprint")
}

// The vectors of draft-ietf-webbotauth-httpsig-protocol-01, bit for bit.
func TestVectors_ARequestIsSigned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		base         base
		input, value string
		field        string // Signature-Agent
	}{
		{
			"dictionary",
			base{
				authority: "example.com", form: Dictionary, agent: `agent2="https://signature-agent.test"`, label: "agent2",
				created: 1735689600, expires: 4889289600, nonce: "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
			},
			`("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`,
			"RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==",
			`agent2="https://signature-agent.test"`,
		},
		{
			"string",
			base{
				authority: "example.com", form: String, agent: `"https://signature-agent.test"`,
				created: 1735689600, expires: 1735693200, nonce: "e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==",
			},
			`("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"`,
			"jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==",
			`"https://signature-agent.test"`,
		},
	} {
		k := rfcKey(t)
		input, value := k.seal(c.base.build(nil, k.Thumbprint))
		must.True(t, input == c.input && value == c.value,
			"%s: Signature-Input %s\nSignature %s\nwant %s\n%s", c.name, input, value, c.input, c.value)
		// And a verifier finds it valid while it lasts.
		m := &Message{Method: "GET", Scheme: "https", Authority: "Example.com:443", Target: "/foo?a", Header: http.Header{
			"Signature-Agent": {c.field}, "Signature-Input": {"sig2=" + c.input}, "Signature": {"sig2=:" + c.value + ":"},
		}}
		claim, err := Read(m)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		keys := []ListedKey{{PublicKey: k.PublicKey}}
		o, why := claim.Verify(keys, time.Unix(1735689700, 0))
		must.True(t, o == Verified && claim.Agent == "https://signature-agent.test", "%s: %s, %s", c.name, o, why)
		o, _ = claim.Verify(keys, time.Unix(c.base.expires, 0))
		must.True(t, o == Invalid, "%s: %s at its end", c.name, o)
	}
}

// The signed directory of the draft: body, digest and signature.
func TestVectors_ADirectoryIsSigned(t *testing.T) {
	t.Parallel()
	d := must.Get(NewDirectory("https://signature-agent.test"+WellKnown, []*Key{rfcKey(t)}, time.Unix(1735689600, 0), time.Unix(4889289600, 0)))(t)
	const body = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}`
	must.Equal(t, string(d.Body), body, "body")
	h := http.Header{}
	for _, f := range d.Header {
		h[f.Name] = []string{f.Value}
	}
	for name, want := range map[string]string{
		"Content-Digest":  "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:",
		"Signature-Input": `binding0=("@authority";req "content-digest");created=1735689600;expires=4889289600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";tag="http-message-signatures-directory"`,
		"Signature":       "binding0=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:",
	} {
		must.Equal(t, h.Get(name), want, name)
	}
	read := func(at string, h http.Header, body string, now int64) *Listed {
		t.Helper()
		u, _ := url.Parse(at)
		return must.Get(ReadDirectory(u, h, []byte(body), time.Unix(now, 0)))(t)
	}
	const at, now = "https://signature-agent.test" + WellKnown, 1735689601
	if l := read(at, h, body, now); l.Keys[0].Proven.Unix() != 4889289600 || len(l.Remarks) != 1 || !strings.Contains(l.Remarks[0], "RFC 9421") {
		t.Errorf("%+v", l)
	}
	for name, l := range map[string]*Listed{
		"another host":      read("https://other.test"+WellKnown, h, body, now),
		"another document":  read(at, h, strings.Replace(body, `"use"`, `"use" `, 1), now),
		"before it was":     read(at, h, body, now-2),
		"after its end":     read(at, h, body, 4889289600),
		"without signature": read(at, http.Header{}, body, now),
	} {
		must.True(t, l.Keys[0].Remark != "" && l.Keys[0].Proven.IsZero(),
			"%s: the key counts as proven: %+v", name, l.Keys[0])
	}
	must.True(t, json.Valid(d.Body), "no JSON")
}
