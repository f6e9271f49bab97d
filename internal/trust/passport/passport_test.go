package passport

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const agentURL = "https://bots.example/news/keys.json"

func newKey(t testing.TB, end time.Time) *Key {
	t.Helper()
	return must.Get(NewKey(end))(t)
}

func newSigner(t testing.TB, k *Key) *Signer {
	t.Helper()
	return must.Get(NewSigner(k, agentURL))(t)
}

// page is a request that is signed.
var page = Request{Method: "GET", Scheme: "https", Authority: "site.test", Target: "/news/1?b=2&a=1"}

// message returns page with the header h, as it is received.
func message(h http.Header) *Message {
	return &Message{Method: page.Method, Scheme: page.Scheme, Authority: page.Authority, Target: page.Target, Header: h}
}

func TestKey_ItsFileIsReadAgain(t *testing.T) {
	t.Parallel()
	k := newKey(t, now.Add(time.Hour))
	again, err := ParseKey(k.File())
	must.Need(t, err == nil && again.Thumbprint == k.Thumbprint && again.NotAfter.Equal(now.Add(time.Hour)) && again.private.Equal(k.private),
		"%+v, %v", again, err)
	must.True(t, !bytes.Contains(k.JWK(), []byte(`"d"`)) && bytes.Count(k.File(), []byte("\n")) == 1,
		"public %s, file %s", k.JWK(), k.File())
	der := must.Get(x509.MarshalPKCS8PrivateKey(k.private))(t)
	fromPEM, err := ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	must.True(t, err == nil && fromPEM.Thumbprint == k.Thumbprint, "PKCS #8: %v", err)
}

// What is no key is refused with a sentence that has nothing of the key in it.
func TestParseKey_RefusesWhatIsNoKey(t *testing.T) {
	t.Parallel()
	k := newKey(t, time.Time{})
	file, other := string(k.File()), string(newKey(t, time.Time{}).File())
	d := func(file string) string {
		_, d, _ := strings.Cut(file, `"d":"`)
		return d[:strings.Index(d, `"`)]
	}
	ec := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := must.Get(x509.MarshalPKCS8PrivateKey(ec))(t)
	with := func(member string) string { return strings.Replace(file, "{", "{"+member+",", 1) }
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"nothing":           {"", errNoKey},
		"text":              {"hunter2", errNoKey},
		"broken JSON":       {file[:len(file)-5], errNoKey},
		"two keys":          {file + other, errNotSeveral},
		"a public key":      {string(k.JWK()), errPublic},
		"another pair":      {strings.Replace(file, d(file), d(other), 1), errPair},
		"a short d":         {strings.Replace(file, d(file), "AAAA", 1), errKind},
		"another kind":      {strings.Replace(file, "Ed25519", "X25519", 1), errKind},
		"RSA":               {`{"kty":"RSA","n":"AA","e":"AQAB","d":"AA"}`, errKind},
		"EC in PEM form":    {string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), errKind},
		"a public PEM":      {string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), errPublic},
		"broken PEM":        {"-----BEGIN PRIVATE KEY-----\nAAA", errNoKey},
		"an end before":     {with(`"nbf":200,"exp":100`), errDates},
		"milliseconds":      {with(`"exp":1743465600000000`), errDates},
		"a negative date":   {with(`"exp":-1`), errDates},
		"a date as text":    {with(`"exp":"2027-01-01"`), errNoKey},
		"a set of keys":     {`{"keys":[` + file + `]}`, errKind},
		"an HMAC secret":    {`{"kty":"oct","k":"AA"}`, errKind},
		"the key backwards": {strings.Replace(file, `"d"`, `"e"`, 1), errPublic},
	} {
		_, err := ParseKey([]byte(c.text))
		must.Equal(t, err, c.want, name)
		must.True(t, err == nil || !strings.Contains(err.Error(), d(file)), "%s: the error contains the key: %v", name, err)
	}
}

func TestSign_AVerifierFindsItValidForThisRequestAndThisMinute(t *testing.T) {
	t.Parallel()
	k := newKey(t, time.Time{})
	s, keys := newSigner(t, k), []ListedKey{{PublicKey: k.PublicKey}}
	for _, form := range []Form{Dictionary, String} {
		h := http.Header{"Accept": {"*/*"}}
		must.Need(t, !Signed(h) && s.Sign(h, &page, form, now) && Signed(h), "it was not signed")
		c := must.Get(Read(message(h)))(t)
		if c.Agent != agentURL || c.Directory() != agentURL || c.form != form || fmt.Sprint(c.Covered[:3]) != `["@method" "@authority" "@path"]` {
			t.Errorf("%+v", c)
		}
		o, why := c.Verify(keys, now)
		must.Need(t, o == Verified, "%s: %s", o, why)
		change := func(name string, change func(*Message)) {
			m := message(h.Clone())
			change(m)
			c, err := Read(m)
			o := Invalid
			if err == nil {
				o, _ = c.Verify(keys, now)
			}
			must.Equal(t, o, Invalid, name)
		}
		replace := func(field, old, new string) func(*Message) {
			return func(m *Message) { m.Header[field] = []string{strings.Replace(m.Header.Get(field), old, new, 1)} }
		}
		change("another authority", func(m *Message) { m.Authority = "other.test" })
		change("another port", func(m *Message) { m.Authority += ":8443" })
		change("another method", func(m *Message) { m.Method = "POST" })
		change("another path", func(m *Message) { m.Target = "/news/2?b=2&a=1" })
		change("a replay with another nonce", replace("Signature-Input", `nonce="`, `nonce="A`))
		change("a later end", replace("Signature-Input", ";expires=", ";expires=9"))
		change("another key in its name", replace("Signature-Input", `;alg="ed25519"`, ""))
		change("another URL", replace("Signature-Agent", "bots.example", "evil.example"))
		change("no URL", func(m *Message) { delete(m.Header, "Signature-Agent") })
		change("no signature", func(m *Message) { delete(m.Header, "Signature") })
		change("half of a signature", replace("Signature", "=:", "=:AAAA"))
		change("a second one of the label", func(m *Message) {
			m.Header["Signature-Input"] = append(m.Header["Signature-Input"], `sig1=("@authority");created=1;expires=2;keyid="x";tag="web-bot-auth"`)
		})
		for moment, want := range map[time.Duration]Outcome{-time.Second: Invalid, 59 * time.Second: Verified, time.Minute: Invalid} {
			o, _ := c.Verify(keys, now.Add(moment))
			must.True(t, o == want, "after %v: %s", moment, o)
		}
		o, _ = c.Verify(nil, now)
		must.True(t, o == Unverified, "without the key: %s", o)
		ended := []ListedKey{{PublicKey: k.PublicKey}}
		ended[0].NotAfter = now
		o, _ = c.Verify(ended, now)
		must.True(t, o == Invalid, "by a key that has ended: %s", o)
	}
}

// A request that is sent again is signed anew; the header of another is not changed.
func TestSign_EachSignatureIsAnother(t *testing.T) {
	t.Parallel()
	s := newSigner(t, newKey(t, time.Time{}))
	one, two := http.Header{}, http.Header{}
	s.Sign(one, &page, Dictionary, now)
	before := one.Get("Signature")
	s.Sign(two, &page, Dictionary, now)
	must.True(t, one.Get("Signature") == before && two.Get("Signature") != before, "two signatures are one")
	s.Sign(one, &page, String, now)
	if len(one["Signature"]) != 1 || one.Get("Signature") == before || one.Get("Signature-Agent") != `"`+agentURL+`"` || two.Get("Signature-Agent") != `sig1="`+agentURL+`"` {
		t.Errorf("%v, %v", one, two)
	}
}

// No signature outlives its key.
func TestSign_AKeyThatHasEndedSignsNothing(t *testing.T) {
	t.Parallel()
	k := newKey(t, now.Add(10*time.Second))
	k.NotBefore = now
	s, h := newSigner(t, k), http.Header{}
	must.True(t, !s.Sign(h, &page, Dictionary, now.Add(-time.Second)) && !Signed(h), "signed before the key begins")
	s.Sign(h, &page, Dictionary, now)
	must.Contain(t, h.Get("Signature-Input"), fmt.Sprintf(";expires=%d;", k.NotAfter.Unix()))
	must.True(t, !s.Sign(h, &page, Dictionary, now.Add(10*time.Second)) && !Signed(h), "signed after the key has ended")
}

func TestSign_InTheOlderFormAnOriginStandsForItsWellKnownPath(t *testing.T) {
	t.Parallel()
	s := must.Get(NewSigner(newKey(t, time.Time{}), "https://bots.example"+WellKnown))(t)
	for form, want := range map[Form]string{Dictionary: `sig1="https://bots.example` + WellKnown + `"`, String: `"https://bots.example"`} {
		h := http.Header{}
		s.Sign(h, &page, form, now)
		c, err := Read(message(h))
		must.True(t, err == nil && h.Get("Signature-Agent") == want && c.Directory() == s.Agent(),
			"%s, %v", h.Get("Signature-Agent"), err)
	}
}

func TestCheckAgent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://bots.example": true, agentURL: true, "https://bots.example:8443/k?a=b": true,
		"": false, "bots.example": false, "http://bots.example/k": false, "https://": false, "https:///k": false, "https://u:p@bots.example/": false,
		"https://bots.example/#k": false, "https://bots.example/\"": false, "https://bots.example/a b": false, "https://bots.example/\n": false,
		"https://bots.example/\\": false, "https://b\u00fcts.example/": false, "data:application/json,{}": false,
	} {
		err := CheckAgent(text)
		must.True(t, (err == nil) == want, "%q: %v", text, err)
	}
}

// What a URL parser writes in another way is not covered: a verifier would compare another
// path than was sent.
func TestPlainPath(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/": "/", "/?": "/", "/a/b?c|d": "/a/b", "/a//b/": "/a//b/", "/a%2Fb%c3%a9": "/a%2Fb%c3%a9", "/~u/$x,(y)!*'+;v=1@2:3": "/~u/$x,(y)!*'+;v=1@2:3",
		"/...": "/...", "/a.": "/a.", "/.well-known/x": "/.well-known/x", "/%2ea": "/%2ea",
		"*": "", "": "", "//a": "", "/a/../b": "", "/a/.": "", "/.": "", "/%2e%2E/b": "", "/.%2e": "", "/100%-cotton": "", "/a|b": "", "/a\"b": "",
		"/a^b": "", "/\u00e9": "", "/a\\b": "", "/{a}": "", "/a%2": "",
	} {
		got := plainPath(target)
		must.Equal(t, got, want, "%q", target)
		if u, err := url.Parse("https://site.test" + target); got != "" && (err != nil || u.EscapedPath() != got) {
			t.Errorf("%q: net/url has %q, %v", target, u.EscapedPath(), err)
		}
	}
}

// A claim that a verifier must not believe, and those that other programs make.
func TestRead_RefusesWhatHeedDoesNotWrite(t *testing.T) {
	t.Parallel()
	const rest = `;created=1;expires=2;keyid="k";tag="web-bot-auth"`
	const whole = `sig1=("@authority" "signature-agent";key="sig1");created=1;keyid="k";alg="ed25519";expires=2;nonce="";tag="web-bot-auth"`
	agent := `sig1="` + agentURL + `"`
	for name, c := range map[string]struct {
		input, agent, value string
		want                error
	}{
		"well":                {whole, agent, "sig1=:AAAA:", nil},
		"nothing covered":     {`sig1=()` + rest, agent, "sig1=:AAAA:", errForm},
		"no host":             {strings.Replace(whole, `"@authority" `, "", 1), agent, "sig1=:AAAA:", errForm},
		"another component":   {strings.Replace(whole, `"@authority"`, `"@authority" "@query"`, 1), agent, "sig1=:AAAA:", errForm},
		"another algorithm":   {strings.Replace(whole, "ed25519", "hmac-sha256", 1), agent, "sig1=:AAAA:", errForm},
		"no time":             {strings.Replace(whole, "created=1;", "", 1), agent, "sig1=:AAAA:", errForm},
		"two signatures":      {whole + ", " + whole, agent, "sig1=:AAAA:", errForm},
		"a member of string":  {whole, `"` + agentURL + `"`, "sig1=:AAAA:", errAgent},
		"another member":      {whole, `b="` + agentURL + `"`, "sig1=:AAAA:", errAgent},
		"two members":         {whole, agent + ", " + agent, "sig1=:AAAA:", errURL},
		"parameters":          {whole, agent + ";a=1", "sig1=:AAAA:", errAgent},
		"http":                {whole, `sig1="http://bots.example"`, "sig1=:AAAA:", errURL},
		"a value of another":  {whole, agent, "sig2=:AAAA:", errValue},
		"a value of no bytes": {whole, agent, "sig1=:A:", errValue},
		"another tag":         {strings.Replace(whole, tag, "other", 1), agent, "sig1=:AAAA:", ErrUnsigned},
	} {
		_, err := Read(message(http.Header{"Signature-Input": {c.input}, "Signature-Agent": {c.agent}, "Signature": {c.value}}))
		must.True(t, errors.Is(err, c.want), "%s: %v, want %v", name, err, c.want)
	}
	_, err := Read(message(http.Header{}))
	must.True(t, err == ErrUnsigned, "unsigned: %v", err)
}

func TestReadDirectory_RemarksOnWhatAVerifierRefuses(t *testing.T) {
	t.Parallel()
	k := newKey(t, time.Time{})
	set := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	public := strings.TrimSpace(string(k.JWK()))
	kind := http.Header{"Content-Type": {MediaType + "; charset=utf-8"}}
	for name, c := range map[string]struct {
		path, body string
		h          http.Header
		want       string // of the error or the remarks
	}{
		"well":               {WellKnown, set(public), kind, ""},
		"well, elsewhere":    {"/keys.json", set(strings.Replace(public, k.Thumbprint, "mine", 1)), http.Header{}, ""},
		"another type":       {WellKnown, set(public), http.Header{"Content-Type": {"application/json"}}, "it must be " + MediaType},
		"another kid":        {WellKnown, set(strings.Replace(public, k.Thumbprint, "mine", 1)), kind, "it must be the thumbprint"},
		"a private key":      {"/k", set(strings.TrimSpace(string(k.File()))), kind, "PRIVATE"},
		"HTML":               {"/k", "<html>", kind, "not a set of keys"},
		"no list":            {"/k", "{}", kind, "not a set of keys"},
		"an empty list":      {"/k", set(), kind, "no Ed25519 key"},
		"RSA only":           {"/k", set(`{"kty":"RSA","n":"AA","e":"AQAB"}`), kind, "no Ed25519 key"},
		"too many":           {"/k", set(strings.Split(strings.Repeat("{}\n", maxKeys+1), "\n")[:maxKeys+1]...), kind, "more than 100 keys"},
		"dates out of order": {"/k", set(public, strings.Replace(public, "{", `{"nbf":2,"exp":1,`, 1)), kind, "ends before it begins"},
	} {
		u := &url.URL{Scheme: "https", Host: "bots.example", Path: c.path}
		l, err := ReadDirectory(u, c.h, []byte(c.body), now)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(l.Remarks, "; ")
		}
		must.True(t, (c.want != "" || got == "") && strings.Contains(got, c.want), "%s: %q, want %q", name, got, c.want)
	}
}

// Two keys, of which the next one is published before it is used: each proves itself.
func TestNewDirectory_EachKeyProvesItself(t *testing.T) {
	t.Parallel()
	one, two := newKey(t, now.AddDate(0, 1, 0)), newKey(t, time.Time{})
	d := must.Get(NewDirectory(agentURL, []*Key{one, two}, now, now.AddDate(0, 0, 28)))(t)
	h := http.Header{}
	for _, f := range d.Header {
		h[f.Name] = []string{f.Value}
	}
	u, _ := url.Parse(agentURL)
	l, err := ReadDirectory(u, h, d.Body, now)
	must.Need(t, err == nil && len(l.Keys) == 2 && len(l.Remarks) == 0, "%+v, %v", l, err)
	for i, k := range []*Key{one, two} {
		if got := l.Keys[i]; got.Thumbprint != k.Thumbprint || got.Remark != "" || !got.NotAfter.Equal(k.NotAfter) || !got.Proven.Equal(now.AddDate(0, 0, 28)) {
			t.Errorf("%d: %+v", i, got)
		}
	}
	must.True(t, !bytes.Contains(d.Body, []byte(`"d"`)), "the private key is published: %s", d.Body)
}

// FuzzRead: no header makes a verifier panic, and none is verified that was not signed.
func FuzzRead(f *testing.F) {
	k := newKey(f, time.Time{})
	s, h := newSigner(f, k), http.Header{}
	s.Sign(h, &page, Dictionary, now)
	claim := must.Get(Read(message(h)))(f)
	f.Add(h.Get("Signature-Agent"), h.Get("Signature-Input"), h.Get("Signature"))
	f.Add(`"https://a.example"`, `a=("@authority";req "x";key="y");tag="web-bot-auth"`, `a=:AA==:`)
	f.Fuzz(func(t *testing.T, agent, input, value string) {
		m := message(http.Header{"Signature-Agent": {agent}, "Signature-Input": {input}, "Signature": {value}})
		c, err := Read(m)
		if err != nil {
			return
		}
		if o, _ := c.Verify([]ListedKey{{PublicKey: k.PublicKey}}, now); o == Verified && c.Base != claim.Base {
			t.Errorf("verified without having been signed: %s", c.Base)
		}
	})
}
