package rules_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// The properties on which an enforcing proxy depends: no change of a client's
// name or of a target's spelling, and no Disallow that a site adds, turns a
// refusal into an allowance. The fuzz functions try any text.

func propertyMaker(t *testing.T, stream uint64) maker {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return maker{rand.New(rand.NewPCG(seed, stream))}
}

// named reports whether a name of the agent leads to a group.
func named(p *rules.Policy, agent *rules.Agent) bool {
	for _, t := range p.Explain(agent, rules.NewTarget("/")).Tokens {
		for _, to := range t.Groups {
			if to.How != rules.ByList {
				return true
			}
		}
	}
	return false
}

// checkDecoy adds a name to a User-Agent string of which a name leads to a group.
func checkDecoy(t *testing.T, p *rules.Policy, file, header, decoyed, target string) {
	t.Helper()
	agent := rules.Identify(header)
	if !named(p, agent) {
		return
	}
	before, after := p.Decide(agent, rules.NewTarget(target)), p.Decide(rules.Identify(decoyed), rules.NewTarget(target))
	must.Need(t, before.Verdict != rules.Refuse || after.Verdict == rules.Refuse,
		"%s: refused for %q (%+v), allowed for %q (%+v); file:\n%s", target, header, before, decoyed, after, file)
}

var decoys = []string{"Other", "foobot", "BarBot", "Sogou", "web", "Googlebot", "Googlebot-Image", "spider", "Mozilla", "baz", "*"}

// phrases puts names of several words among the names of a file.
func (m maker) phrases(file string) string {
	for _, name := range []string{"Sogou web spider", "Sogou", "sogou pic spider", "web", "Googlebot", "baz foobot"} {
		if m.IntN(2) == 0 {
			file += "\nUser-agent: " + name + "\n" + m.pick("Disallow: /a\n", "Disallow: /\nAllow: /b\n", "Disallow:\n", "Allow: /\n", "Disallow: /*b\n")
		}
	}
	return file
}

func TestHeed_ADecoyNameLoosensNothing(t *testing.T) {
	t.Parallel()
	m := propertyMaker(t, 11)
	for range times(20_000) {
		file := m.phrases(m.file())
		p := standard(file)
		for range 8 {
			header, _ := m.agent()
			if m.IntN(3) == 0 {
				header = m.pick("Sogou web spider/4.0 (+http://site.test)", "Mozilla/5.0 (compatible; Sogou pic spider/1.0)", "baz foobot", "Googlebot-Image/1.0", "Sogou/1.0 web")
			}
			decoy := m.pick(decoys...) + m.pick("", "/1.0", " ", " like")
			decoyed := m.pick(decoy+" "+header, header+" "+decoy, decoy+"; "+header, header+" ("+decoy+")", decoy+", "+header)
			checkDecoy(t, p, file, header, decoyed, m.path(false))
		}
	}
}

func FuzzHeed_ADecoyNameLoosensNothing(f *testing.F) {
	f.Add("User-agent: foo\nDisallow: /\nUser-agent: foo bar\nAllow: /", "foo/1.0", "bar", "/a")
	f.Add("User-agent: Sogou web spider\nDisallow: /a\nUser-agent: sogou\nDisallow:", "Sogou web spider/4.0", "x", "/a")
	f.Fuzz(func(t *testing.T, file, header, decoy, target string) {
		if strings.ContainsAny(decoy+header, "@:/") {
			return // the text beside an address is read as part of it
		}
		p := standard(file)
		if p.Source().State == rules.Available {
			checkDecoy(t, p, file, header, header+" ("+decoy+")", target)
			checkDecoy(t, p, file, header, decoy+"/1.0 "+header, target)
			checkDecoy(t, p, file, header, decoy+"; "+header, target)
		}
	})
}

// plainPath reports whether the reading v3 of a path is the path itself, and no segment is
// empty once its parameters are cut.
func plainPath(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	lower := strings.ToLower(path)
	for _, odd := range []string{"//", "/.", "/;", "%2f", "%5c", "\\", "%2e"} {
		if strings.Contains(lower, odd) {
			return false
		}
	}
	return strings.HasPrefix(path, "/")
}

// respell spells a path in another way that servers may take for the same.
func (m maker) respell(target string) string {
	const hex, unreserved = "0123456789abcdefABCDEF", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	path, query, hasQuery := strings.Cut(target, "?")
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '%' && i+2 < len(path) && strings.IndexByte(hex, path[i+1]) >= 0 && strings.IndexByte(hex, path[i+2]) >= 0:
			b.WriteString(m.pick(strings.ToUpper(path[i:i+3]), strings.ToLower(path[i:i+3])))
			i += 2
		case c == '/':
			slash := m.pick("/", "/", "/", "//", "/./", "/x/../", "/%2e/", "/y/%2E./", "%2F", "%2f", "/%2F", "/x%2f..%2F", "%5C", "\\", "///")
			if i == 0 && slash[0] != '/' {
				slash = "/" + slash
			}
			b.WriteString(slash)
		case m.IntN(4) == 0 && strings.IndexByte(unreserved, c) >= 0:
			b.WriteByte('%')
			b.WriteByte(m.pick("0123456789ABCDEF"[c>>4 : c>>4+1])[0])
			b.WriteString(m.pick(strings.ToLower("0123456789ABCDEF"[c&15:c&15+1]), "0123456789ABCDEF"[c&15:c&15+1]))
		default:
			b.WriteByte(c)
		}
	}
	if hasQuery {
		b.WriteString("?" + query)
	}
	return b.String()
}

// checkRespelling holds the verdicts of two spellings of one target against
// each other. An Allow with an escape or a backslash may name one of them alone.
func checkRespelling(t *testing.T, p *rules.Policy, file, header, target, other string) {
	t.Helper()
	agent := rules.Identify(header)
	before, after := p.Decide(agent, rules.NewTarget(target)), p.Decide(agent, rules.NewTarget(other))
	must.Need(t, before.Verdict != rules.Refuse || after.Verdict == rules.Refuse || strings.ContainsAny(after.Rule, "%\\"),
		"%q: %s is refused (%+v), and allowed as %s (%+v); file:\n%s", header, target, before, other, after, file)
}

func TestHeed_AnotherSpellingLoosensNothing(t *testing.T) {
	t.Parallel()
	m := propertyMaker(t, 12)
	for range times(20_000) {
		file := m.file()
		p := standard(file)
		header, _ := m.agent()
		for range 8 {
			if target := m.path(false); plainPath(target) && target != "/robots.txt" {
				checkRespelling(t, p, file, header, target, m.respell(target))
			}
		}
	}
}

func FuzzHeed_AnotherSpellingLoosensNothing(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a/b?c\nAllow: /*%2F", "/a/b?c=/d", uint64(1))
	f.Fuzz(func(t *testing.T, file, target string, seed uint64) {
		p := standard(file)
		if p.Source().State != rules.Available || !plainPath(target) || target == "/robots.txt" {
			return
		}
		m := maker{rand.New(rand.NewPCG(seed, 13))}
		checkRespelling(t, p, file, "", target, m.respell(target))
	})
}

// checkDisallow adds a Disallow line at the end of a group that has a rule.
func checkDisallow(t *testing.T, file, path, header, target string) {
	t.Helper()
	p, q := standard(file), standard(file+"\nDisallow: "+path+"\n")
	agent := rules.Identify(header)
	before, after := p.Decide(agent, rules.NewTarget(target)), q.Decide(agent, rules.NewTarget(target))
	must.Need(t, before.Verdict != rules.Refuse || after.Verdict == rules.Refuse || strings.ContainsAny(after.Rule, "%\\"),
		"%q: %s is refused (%+v), and allowed with Disallow: %s (%+v); file:\n%s", header, target, before, path, after, file)
}

func TestHeed_AnotherDisallowLoosensNothing(t *testing.T) {
	t.Parallel()
	m := propertyMaker(t, 14)
	for range times(20_000) {
		file := m.file() + "Disallow: " + m.path(true) + "\n"
		path := m.path(true) + m.pick("", "", " /b", "#", "$", " x")
		for range 4 {
			header, _ := m.agent()
			checkDisallow(t, file, path, header, m.path(false))
		}
	}
}

func FuzzHeed_AnotherDisallowLoosensNothing(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /a", "/b /c", "foo", "/a")
	f.Fuzz(func(t *testing.T, file, path, header, target string) {
		if strings.ContainsAny(path, "\r\n:") {
			return // more than one line, or a line within the line
		}
		checkDisallow(t, file+"\nUser-agent: *\nDisallow: /z", path, header, target)
	})
}
