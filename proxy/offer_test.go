package proxy

import (
	"net/http"
	"strings"
	"testing"

	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/proxy/usage"
	"heed/rules"
)

// A site is offered what heed can read, by the clients whose pages it reads; the fields of
// others arrive as they came, and so do those that a signature of the client covers.
func TestUse_ASiteIsOfferedWhatCanBeRead(t *testing.T) {
	fields := []string{"Accept-Encoding: gzip, zstd, dcz", "Available-Dictionary: :pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:", `Dictionary-ID: "a"`}
	const signature = `Signature-Input: a=("@authority" "accept-encoding" "available-dictionary");created=1`
	for name, c := range map[string]struct {
		settings func(*Config)
		header   []string
		want     string
	}{
		"a purpose":          {purposeOf(signal.PurposeSearch), fields, "gzip, zstd||"},
		"no purpose":         {purposeOf(), fields, "gzip, zstd, dcz|:pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:|\"a\""},
		"all pages":          {func(c *Config) { c.Signals.Pages = usage.AllPages }, fields, "gzip, zstd||"},
		"no pages":           {func(c *Config) { purposeOf(signal.PurposeSearch)(c); c.Signals.Pages = usage.NoPages }, fields, "gzip, zstd, dcz|:pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:|\"a\""},
		"as it came":         {purposeOf(signal.PurposeSearch), []string{"Accept-Encoding: GZip ;q=1,deflate"}, "GZip ;q=1,deflate||"},
		"any":                {purposeOf(signal.PurposeSearch), []string{"Accept-Encoding: *"}, "gzip, deflate, br, zstd||"},
		"nothing else":       {purposeOf(signal.PurposeSearch), []string{"Accept-Encoding: dcz, identity;q=0"}, "identity||"},
		"none":               {purposeOf(signal.PurposeSearch), nil, "||"},
		"covered":            {purposeOf(signal.PurposeSearch), append([]string{signature}, fields...), "gzip, zstd, dcz|:pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:|"},
		"signed in another":  {purposeOf(signal.PurposeSearch), append([]string{"Authorization: X-SIG SignedHeaders=accept-encoding;host, Signature=1"}, fields...), "gzip, zstd, dcz||"},
		"a signature beside": {purposeOf(signal.PurposeSearch), append([]string{`Signature-Input: a=("@authority")`}, fields...), "gzip, zstd||"},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, allModes, func(t *testing.T, m mode) {
				got := make(chan string, 4)
				s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
					h := r.Header
					got <- strings.Join(h["Accept-Encoding"], "#") + "|" + h.Get("Available-Dictionary") + "|" + h.Get("Dictionary-ID")
				})
				s.robots = "User-agent: *\nDisallow: /private\n"
				r := newRigBefore(t, s, c.settings)
				r.ask(m, question{path: "/page", header: append([]string{"User-Agent: NewsBot/1.0"}, c.header...)})
				must.Equal(t, <-got, c.want)
			})
		})
	}
}

// The beginning of a page is read as the page is; another part of one is unread, which strict
// refuses, and has the verdict of the page where heed has read that.
func TestUse_PartsOfPages(t *testing.T) {
	const hidden = "<html><head><meta name=robots content=noindex></head><body>text of the page</body></html>"
	for _, c := range []struct {
		ranges           string
		known            bool // the whole page was requested before
		standard, strict int
	}{
		{"bytes=0-", false, 403, 403},
		{"bytes=0-60", false, 403, 403},
		{"bytes=0-20", false, 206, 403}, // the head does not end in it
		{"bytes=60-", false, 206, 403},
		{"bytes=0-5,60-70", false, 206, 403},
		{"bytes=60-", true, 403, 403},
	} {
		for p, want := range map[rules.Profile]int{rules.Standard: c.standard, rules.Strict: c.strict} {
			r := newRigBefore(t, usageSite(t, "", hidden, `ETag: "1"`), purposeOf(signal.PurposeSearch), profile(p))
			if c.known {
				r.ask(plain, question{path: "/page", header: []string{"User-Agent: NewsBot/1.0"}})
			}
			got := r.ask(plain, question{path: "/page", header: []string{"User-Agent: NewsBot/1.0", "Range: " + c.ranges}})
			must.True(t, got.StatusCode == want, "%s under %v: %d, want %d: %.200s", c.ranges, p, got.StatusCode, want, got.body)
		}
	}
}
