package bypass

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"heed/rules"
)

// draws makes the choices of the grammar from the octets of a fuzz input; when
// they are used up, the first choice is taken.
type draws struct{ left []byte }

// IntN implements chooser.
func (d *draws) IntN(n int) int {
	if len(d.left) == 0 {
		return 0
	}
	v := int(d.left[0]) % n
	d.left = d.left[1:]
	return v
}

// resolver is a way in which servers turn a path into a file's name.
type resolver struct {
	escapedSlash bool // "%2F" separates
	backslash    bool // "\" separates, escaped or not
	merge        int  // slash runs: 0 as they are, 1 merged before dots are resolved, 2 after
	clean        bool // the name ends in no slash unless the path did
}

func resolvers() (all []resolver) {
	for i := range 2 * 2 * 3 * 2 {
		all = append(all, resolver{i&1 == 1, i&2 == 2, i / 8, i&4 == 4})
	}
	return all
}

// name resolves a path as it is sent.
func (v resolver) name(path string) string {
	const data = "\x01" // a slash that separates nothing
	if !v.escapedSlash {
		path = strings.NewReplacer("%2F", data, "%2f", data).Replace(path)
	}
	closed := strings.HasSuffix(path, "/")
	name, err := url.PathUnescape(rules.EscapePercents(path)) // a "%" that begins no escape is itself
	if err != nil {
		return ""
	}
	if v.backslash {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	if v.merge == 1 {
		name = merged(name)
	}
	name = resolved(name)
	if v.merge == 2 {
		name = merged(name)
	}
	if v.clean && !closed {
		name = strings.TrimRight(name, "/")
	}
	return name
}

func merged(name string) string {
	for strings.Contains(name, "//") {
		name = strings.ReplaceAll(name, "//", "/")
	}
	return name
}

// resolved takes dot segments out; those above the root are the root.
func resolved(name string) string {
	var kept []string
	segments := strings.Split(name, "/")[1:]
	for i, segment := range segments {
		last := i == len(segments)-1
		switch {
		case segment == ".." && len(kept) > 0:
			kept = kept[:len(kept)-1]
		case segment == "." || segment == "..":
		default:
			kept = append(kept, segment)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

// asSent is what goes to the site for a target in a request line. An error
// means that nothing does.
func asSent(prefix, target string) (string, error) {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + rules.EscapePercents(prefix+target) + " HTTP/1.1\r\nHost: site.test\r\n\r\n")))
	if err != nil {
		return "", err
	}
	if r.Host != "site.test" || r.URL.User != nil {
		return "", errors.New("another place")
	}
	sent := strings.TrimPrefix(prefix+target, prefix)
	if !strings.HasPrefix(sent, "/") {
		sent = "/" + sent
	}
	sent = strings.ReplaceAll(sent, "#", "%23")
	return sent, checkSent(sent)
}

// checkSent returns an error for a target that heed refuses without a rule.
func checkSent(sent string) error {
	path, _, _ := strings.Cut(sent, "?")
	if sent[0] != '/' || strings.Contains(path, "%00") {
		return errors.New("malformed")
	}
	return nil
}

// oracle knows of a target as it is sent whether some server would give a
// canary for it.
type oracle struct {
	resolvers []resolver
	files     http.Handler // net/http's own
}

// gives returns the name of a server that would answer with the page; empty when there is
// none.
func (o *oracle) gives(p page, sent string) string {
	path, query, asked := strings.Cut(sent, "?")
	if p.exact && asked {
		return "" // another address to the rule
	}
	if p.query != "" && !strings.HasPrefix(unescapeLetters(query), p.query[1:]) {
		return ""
	}
	for _, v := range o.resolvers {
		if name := v.name(path); name == p.path {
			return "a server of another kind"
		}
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + rules.EscapePercents(sent) + " HTTP/1.1\r\nHost: site.test\r\n\r\n")))
	if err != nil {
		return ""
	}
	w := httptest.NewRecorder()
	o.files.ServeHTTP(w, r)
	if body := w.Body.String(); strings.Contains(body, canaryToken) {
		return "http.FileServer"
	}
	return ""
}

// unescapeLetters decodes escaped letters: only those make a difference to the rules of
// the site.
func unescapeLetters(query string) string {
	for i := 0; i+2 < len(query); i++ {
		if c, err := url.QueryUnescape(query[i : i+min(3, len(query)-i)]); query[i] == '%' && err == nil && (c[0]|0x20) >= 'a' && (c[0]|0x20) <= 'z' {
			query = query[:i] + c + query[i+3:]
		}
	}
	return query
}

// check spells a page and fails when heed's rules allow what a server gives.
func (o *oracle) check(t *testing.T, policy *rules.Policy, c chooser, insert string, at uint8) {
	t.Helper()
	var p page
	for p = pages[c.IntN(len(pages))]; p.open; p = pages[c.IntN(len(pages))] {
	}
	target := spell(c, p)
	if p.query == "" && insert != "" {
		i := int(at) % (len(target) + 1)
		target = target[:i] + insert + target[i:]
	}
	for _, prefix := range []string{"", "http://site.test"} {
		sent, err := asSent(prefix, target)
		if err != nil {
			continue
		}
		if d := policy.Decide(rules.Identify("Probe/1"), rules.NewTarget(sent)); d.Verdict == rules.Allow {
			if by := o.gives(p, sent); by != "" {
				t.Fatalf("%q is sent as %q and allowed (%+v), and %s takes it for %q", target, sent, d, by, p.path)
			}
		}
	}
}

func newOracle(t testing.TB) (*oracle, *rules.Policy) {
	policy := rules.New(rules.Source{State: rules.Available}, []byte(robots))
	return &oracle{resolvers(), http.FileServer(http.Dir(writeSite(t)))}, policy
}

// What any plausible server would take for a disallowed file is refused.
func TestHeed_NoServerReadsRoundTheRules(t *testing.T) {
	t.Parallel()
	o, policy := newOracle(t)
	random := rand.New(rand.NewPCG(seed, 2))
	for range 4 * share() {
		o.check(t, policy, random, "", 0)
	}
}

// FuzzBypass lets the fuzzer make the grammar's choices, and put octets of its
// own anywhere.
func FuzzBypass(f *testing.F) {
	o, policy := newOracle(f)
	random := rand.New(rand.NewPCG(seed, 3))
	for _, insert := range []string{"", "/", "..", "%2f", "\\", "?", "%", "#", ";", "\xc0\xae", "&", "%3d"} {
		choices := make([]byte, 48)
		for i := range choices {
			choices[i] = byte(random.IntN(256))
		}
		f.Add(choices, insert, uint8(random.IntN(256)))
	}
	f.Fuzz(func(t *testing.T, choices []byte, insert string, at uint8) {
		o.check(t, policy, &draws{choices}, insert, at)
	})
}
