package rules

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"heed/internal/tools/testkit/must"
)

// blanks are what servers cut from the end of a target, as octets: the blanks of Unicode and
// those that were some, alone and as they are in ISO 8859-1.
func blanks() (all []string) {
	for r := range rune(0x10000) {
		if trimmed(r) {
			all = append(all, string(r))
			if r >= utf8.RuneSelf && r < 0x100 {
				all = append(all, string([]byte{byte(r)}))
			}
		}
	}
	return all
}

// escapedAll returns the octets of text as escapes.
func escapedAll(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "%%%02X", text[i])
	}
	return b.String()
}

// A rule that ends in "$" refuses a page whatever blanks are added to its URL, in every
// profile that knows "$"; octets that are followed by others, and other pages, are not.
func TestHeed_BlanksAtTheEndLoosenNothing(t *testing.T) {
	t.Parallel()
	file := "User-agent: *\nDisallow: /*.pdf$\nDisallow: /dir/$\nDisallow: /list?view=secret$\nDisallow: /item?id=\n"
	refused := []string{"/a.pdf_", "/x/../a.pdf_", "/dir/_", "/dir/._", "/dir/x/.._", "/dir%2F_", "/list?view=secret_", "/list_?view=secret", "/list_?view=secret_", "/item_?id=7"}
	allowed := []string{"/a.pdf_x", "/a.pd_", "/x_", "/_a.pdfx", "/list?view=secret_x"}
	all := blanks()
	must.Need(t, len(all) >= 50, "%d blanks", len(all))
	for _, profile := range []Profile{Standard, Strict, Google} {
		p := NewAs(profile, Source{State: Available}, []byte(file))
		for _, blank := range all {
			for _, end := range []string{blank, escapedAll(blank), blank + blank, escapedAll(blank + blank), "%20" + blank, "\x85\xa0" + blank} {
				for i, target := range append(refused, allowed...) {
					target = strings.ReplaceAll(target, "_", end)
					d := p.Decide(nil, NewTarget(target))
					must.True(t, (d.Verdict == Refuse) == (i < len(refused)), "%s: %q: %+v", profile, target, d)
				}
			}
		}
	}
}

// Octets that are no blanks by themselves, or are no UTF-8, are part of a page's name: a page
// that the rules allow by that name is allowed, and one that a server serves for it is not
// when they refuse that.
func TestHeed_NamesThatEndInOctetsOfBlanks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules, target string
		want          Verdict
		variant       string
	}{
		{"Disallow: /*.pdf$", "/voilà", Allow, ""},
		{"Disallow: /\nAllow: /voilà", "/voilà", Allow, ""},
		{"Disallow: /\nAllow: /voilà$", "/voilà", Allow, ""},
		{"Disallow: /\nAllow: /*à$", "/voilà", Allow, ""},
		{"Disallow: /\nAllow: /*à", "/voil%C3%A0", Allow, ""},
		{"Disallow: /\nAllow: /a%20$", "/a%20", Allow, ""},
		{"Disallow: /*.pdf$\nAllow: /", "/a.pdf\xa0", Refuse, "v6"},
		{"Disallow: /*.pdf$\nAllow: /public/", "/public/../a.pdf\xa0", Refuse, "v1"},
		{"Disallow: /*.pdf$\nAllow: /public/", "/public/a.pdf\xa0", Allow, ""},
		{"Disallow: /caf%C3%A9/", "/caf\xe9/x", Refuse, "v7"},
		{"Disallow: /caf%C3%A9/", "/x/../caf\xe9/", Refuse, "v1"},
		{"Disallow: /caf%C3%A9/", "/caf\xc3\xa9/x", Refuse, ""},
		{"Disallow: /stra%C3%9F$", "/stra\xdf\xa0", Refuse, "v7"},
		{"Disallow: /caf%C3%A9$", "/caf\xe9\xa0", Refuse, "v7"},
		{"Disallow: /caf%C3%83", "/café", Allow, ""},
		{"Disallow: /\nAllow: /caf\xe9", "/caf\xe9", Allow, ""},
		{"Disallow: /*.pdf$", "/a.pdf%25A0", Allow, ""},
		{"Disallow: /*.pdf$", "/a.pdf\x80", Allow, ""},
		{"Disallow: /*.pdf$", "/a.pdf?x=\xa0", Allow, ""},
	} {
		p := policyOf("User-agent: *\n" + c.rules)
		if d := p.Decide(nil, NewTarget(c.target)); d.Verdict != c.want || d.Variant != c.variant {
			t.Errorf("%q for %q: %+v, want %v in %q", c.rules, c.target, d, c.want, c.variant)
		}
		x := p.Explain(nil, NewTarget(c.target))
		last := x.Readings[len(x.Readings)-1]
		must.Equal(t, last.Results[len(last.Results)-1].Verdict, c.want, "%q for %q: the explanation ends with", c.rules, c.target)
	}
}

// A statement about pages with a suffix counts for the URL with blanks behind it, too.
func TestHeed_StatementsCountForTrimmedTargets(t *testing.T) {
	t.Parallel()
	p := NewPaths([]string{"/", "/*.pdf$", "/*à"})
	for target, want := range map[string]string{
		"/a.pdf\xa0": "[0] [1]", "/a.pdf%20%20": "[0] [1]", "/voilà": "[2]", "/a.pdfà": "[2]", "/é": "[0]",
	} {
		var got []string
		for _, s := range p.Select(NewTarget(target), Standard, Longest, nil) {
			got = append(got, fmt.Sprint(s.Of))
		}
		must.Equal(t, strings.Join(got, " "), want, "%q: %s, want %s", target, got, want)
	}
}
