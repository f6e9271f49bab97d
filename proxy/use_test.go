package proxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"heed/cache"
	"heed/internal/audit/counts"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/fetch"
	"heed/internal/tools/testkit/must"
	"heed/proxy/usage"
	"heed/rules"
)

// purposeOf makes clients state purposes.
func purposeOf(purposes ...signal.Purpose) func(*Config) {
	return func(c *Config) {
		c.Rules = &acl.Rules{Clients: []acl.Client{{Name: "bot", Terms: acl.Terms{Purpose: purposes}}}}
		if policies, ok := c.Policies.(*cache.Cache); ok {
			c.Signals.Documents = &fetch.Documents{Site: policies}
		}
	}
}

// profile makes policies be read in another way.
func profile(p rules.Profile) func(*Config) {
	return func(c *Config) {
		policies := cache.New(cache.Config{Transport: c.Upstream.(http.RoundTripper), UserAgent: "heed-rig", Profile: p})
		c.Policies, c.Signals.Documents = policies, &fetch.Documents{Site: policies}
	}
}

// managed is a robots.txt as a network adds it to the files of its sites.
const managed = `# BEGIN Managed content
User-Agent: *
Content-signal: search=yes,ai-train=no
Allow: /

# END Managed Content
User-agent: *
Disallow: /private
`

// usageSite serves html at every path but robots.txt, with header fields.
func usageSite(t testing.TB, robots, html string, fields ...string) *site {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Add(name, value)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(html))
	})
	s.robots = cmp.Or(robots, "User-agent: *\nDisallow: /private\n")
	return s
}

// problemOf returns the body of a refusal.
func problemOf(t *testing.T, got *reply) (p struct {
	Reason, Purpose, Detail string
	Line                    int
	Statement               string            `json:"statement_url"`
	Quoted                  map[string]string `json:"quoted_from_site"`
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatalf("%v: %.200q", err, got.body)
	}
	return p
}

func TestUse_ATrainingCrawlerIsRefusedBeforeItsRequestLeaves(t *testing.T) {
	eachMode(t, allModes, func(t *testing.T, m mode) {
		t.Parallel()
		r := newRigBefore(t, usageSite(t, managed, "<p>hello"), purposeOf(signal.PurposeTraining))
		got := r.ask(m, question{path: "/article", header: []string{"User-Agent: NewsBot/1.0"}})
		p := problemOf(t, got)
		if got.StatusCode != http.StatusForbidden || p.Reason != "signal" || p.Purpose != "training" || p.Line != 3 ||
			p.Quoted["rule"] != "Content-Signal: search=yes,ai-train=no" && p.Quoted["rule"] != "Content-signal: search=yes,ai-train=no" ||
			!strings.HasSuffix(p.Statement, "/robots.txt") {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
		for _, a := range r.site.requests() {
			must.True(t, !strings.HasPrefix(a.Target, "/article"), "the site saw %+v", a)
		}
		e := r.records.target(t, "/article")
		if e.Decision.Reason != rules.ReasonSignal || e.Decision.Line != 3 || e.Signals == "" || len(e.Purposes) != 1 || e.Said == "" {
			t.Errorf("recorded: %+v", e)
		}
	})
}

func TestUse_WhatASiteStatesCountsForThePurposeAlone(t *testing.T) {
	noindex := `<html><head><meta name="robots" content="noindex"><title>x</title></head><body>hello</body></html>`
	tests := []struct {
		name, robots, html string
		fields             []string
		purposes           []signal.Purpose
		refused            bool
	}{
		{"managed block, search", managed, "<p>hi", nil, []signal.Purpose{"search"}, false},
		{"managed block, no purpose", managed, "<p>hi", nil, nil, false},
		{"managed block, search and training", managed, "<p>hi", nil, []signal.Purpose{"search", "training"}, true},
		{"noindex, no purpose", "", noindex, nil, nil, false},
		{"noindex, agent", "", noindex, nil, []signal.Purpose{"agent"}, false},
		{"noindex, search", "", noindex, nil, []signal.Purpose{"search"}, true},
		{"noindex in the header, search", "", "<p>hi", []string{"X-Robots-Tag: noindex"}, []signal.Purpose{"search"}, true},
		{"noindex for another, search", "", "<p>hi", []string{"X-Robots-Tag: otherbot: noindex"}, []signal.Purpose{"search"}, false},
		{"noarchive, archive", "", strings.Replace(noindex, "noindex", "noarchive", 1), nil, []signal.Purpose{"archive"}, true},
		{"noarchive, search", "", strings.Replace(noindex, "noindex", "noarchive", 1), nil, []signal.Purpose{"search"}, false},
		{"noindex in the body, search", "", "<head></head><body>" + noindex, nil, []signal.Purpose{"search"}, false},
		{"noindex in the header of a picture", "", "x", []string{"Content-Type: image/png", "X-Robots-Tag: noindex"}, []signal.Purpose{"search"}, true},
		{"Content-Usage in the header, training", "", "<p>hi", []string{"Content-Usage: train-ai=n"}, []signal.Purpose{"training"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRigBefore(t, usageSite(t, tt.robots, tt.html, tt.fields...), purposeOf(tt.purposes...))
			got := r.ask(plain, question{path: "/page", header: []string{"User-Agent: NewsBot/1.0"}})
			if refused := got.StatusCode == http.StatusForbidden; refused != tt.refused {
				t.Fatalf("%d %.300s", got.StatusCode, got.body)
			}
			must.True(t, tt.refused || got.body == tt.html, "another body: %.300q", got.body)
		})
	}
}

// A page that is withheld is recorded with the site's status and the client's; nothing of it
// reaches the client.
func TestUse_AWithheldPageIsARefusal(t *testing.T) {
	eachMode(t, allModes, func(t *testing.T, m mode) {
		t.Parallel()
		html := `<head><meta name="robots" content="noindex"></head>SECRET` + strings.Repeat("x", 500<<10)
		r := newRigBefore(t, usageSite(t, "", html, "Set-Cookie: a=b", "Trailer: X-Sum"), purposeOf(signal.PurposeSearch))
		got := r.ask(m, question{path: "/page"})
		p := problemOf(t, got)
		if got.StatusCode != http.StatusForbidden || p.Reason != "signal" || !strings.Contains(p.Quoted["rule"], "noindex") ||
			strings.Contains(got.body, "SECRET") || got.Header.Get("Set-Cookie") != "" || len(got.Trailer) > 0 {
			t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
		}
		e := r.records.target(t, "/page")
		o := &e.Outcome
		if e.Decision.Verdict != rules.Allow || o.Late == nil || o.Late.Verdict != rules.Refuse || o.Late.Reason != rules.ReasonSignal ||
			o.SiteStatus != 200 || o.Status != 403 || o.FromSite || o.Signals == "" || e.Became() != "refused-by-heed" {
			t.Errorf("recorded: %+v", e)
		}
		var counts counts.Tally
		counts.Ended(&e)
		c := counts.Summary().Counts
		must.True(t, c.Allowed == 0 && c.Refused == 1 && c.ByPath == 1, "counted: %+v", c)
	})
}

// An RSL licence that asks for money refuses, with its terms, unless there is a contract.
func TestUse_APricedLicenceIsNeverAccepted(t *testing.T) {
	const licence = `<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>
<permits type="usage">ai-train</permits><payment type="use"><amount currency="USD">0.015</amount></payment>
</license></content></rsl>`
	for _, contract := range []bool{false, true} {
		t.Run(fmt.Sprint("contract=", contract), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/licence.xml" {
					_, _ = io.WriteString(w, licence)
					return
				}
				w.Header().Set("Content-Type", "text/plain")
				_, _ = io.WriteString(w, "hello")
			})
			s.robots = "License: http://site.test/licence.xml\nUser-agent: *\nDisallow: /private\n"
			r := newRigBefore(t, s, purposeOf(signal.PurposeTraining), func(c *Config) {
				if contract {
					match, _ := acl.ParseHostPattern("site.test")
					c.Rules.Hosts = []acl.Host{{Match: []acl.HostPattern{match}, Licence: &acl.Licence{Reference: "contract 4711"}}}
				}
			})
			for range 3 {
				got := r.ask(plain, question{path: "/page", header: []string{"Cookie: id=1", "Authorization: Bearer x"}})
				if contract {
					must.Equal(t, got.StatusCode, http.StatusOK, got.body)
					continue
				}
				if p := problemOf(t, got); got.StatusCode != http.StatusForbidden || p.Reason != "licence" || !strings.Contains(p.Quoted["rule"], "0.015") {
					t.Errorf("%d %s", got.StatusCode, got.body)
				}
			}
			fetches := 0
			for _, a := range r.site.requests() {
				if a.Target == "/licence.xml" {
					fetches++
					if ua := a.Header.Get("User-Agent"); ua != "heed-rig" || a.Header.Get("Cookie") != "" || a.Header.Get("Authorization") != "" {
						t.Errorf("the licence was requested with %v", a.Header)
					}
				}
			}
			must.Equal(t, fetches, 1, "fetches of the licence")
		})
	}
}

func TestUse_AnExceptionAndObserveModeLetPagesThrough(t *testing.T) {
	html := `<head><meta name="robots" content="noindex"></head>hello`
	observe, match := acl.Observe, acl.HostPattern{}
	match, _ = acl.ParseHostPattern("*")
	allowAll := must.Get(acl.NewException(acl.Exception{Patterns: []string{"/"}, Reason: "agreed"}))(t)
	tests := []struct {
		name    string
		purpose signal.Purpose
		change  func(*Config)
		verdict rules.Verdict
		late    bool
	}{
		{"observed, by its page", "search", func(c *Config) { c.Rules.Clients[0].Mode = &observe }, rules.WouldRefuse, true},
		{"observed, by robots.txt", "training", func(c *Config) { c.Rules.Clients[0].Mode = &observe }, rules.WouldRefuse, false},
		{"exception, by its page", "search", func(c *Config) {
			c.Rules.Hosts = []acl.Host{{Match: []acl.HostPattern{match}, Exceptions: []*acl.Exception{allowAll}}}
		}, rules.Allow, false},
		{"exception, by robots.txt", "training", func(c *Config) {
			c.Rules.Hosts = []acl.Host{{Match: []acl.HostPattern{match}, Exceptions: []*acl.Exception{allowAll}}}
		}, rules.Allow, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRigBefore(t, usageSite(t, managed, html), purposeOf(tt.purpose), tt.change)
			got := r.ask(plain, question{path: "/page"})
			must.True(t, got.StatusCode == http.StatusOK && got.body == html, "%d %s", got.StatusCode, got.body)
			e := r.records.target(t, "/page")
			final := e.Decision
			must.Need(t, (e.Outcome.Late != nil) == tt.late, "recorded: %+v", e)
			if tt.late {
				final = *e.Outcome.Late
			}
			must.Equal(t, final.Verdict, tt.verdict, "recorded: %+v", final)
		})
	}
}

// What a client gets of a page is the same with every purpose that the site allows, and
// with none.
func TestUse_PagesAreDeliveredAsTheyAre(t *testing.T) {
	var long bytes.Buffer
	for i := range 4000 {
		fmt.Fprintf(&long, "<p>paragraph %d\n", i)
	}
	head := "<!doctype html><html><head><title>t</title><meta name=description content='" + strings.Repeat("d", 5<<10) + "'></head>"
	pages := map[string]string{
		"short": head, "long": head + long.String(), "no head": long.String(), "empty": "",
		"endless head": "<html><head><meta content='" + strings.Repeat("x", 600<<10),
	}
	for name, html := range pages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachMode(t, []mode{plain, mitmH2}, func(t *testing.T, m mode) {
				for _, ask := range []question{
					{path: "/page"}, {path: "/page", header: []string{"Range: bytes=5-900"}}, {method: "HEAD", path: "/page"},
				} {
					var first *reply
					for _, p := range [][]signal.Purpose{nil, {"search"}, {"training", "archive"}} {
						r := newRigBefore(t, usageSite(t, "", html, `ETag: "1"`), purposeOf(p...))
						got := r.ask(m, ask)
						must.OK(t, got.err, p)
						if first == nil {
							first = got
							continue
						}
						got.Header.Del("Date")
						first.Header.Del("Date")
						got.Header.Del("Via")
						first.Header.Del("Via")
						if got.StatusCode != first.StatusCode || got.body != first.body || fmt.Sprint(got.Header) != fmt.Sprint(first.Header) ||
							got.ContentLength != first.ContentLength || fmt.Sprint(got.TransferEncoding) != fmt.Sprint(first.TransferEncoding) {
							t.Errorf("%v %v: %d %v, %d octets; without a purpose %d %v, %d octets",
								ask, p, got.StatusCode, got.Header, len(got.body), first.StatusCode, first.Header, len(first.body))
						}
					}
				}
			})
		})
	}
}

// A redirect is followed and an error is shown, whatever their headers state: where the
// redirect leads is judged anew.
func TestUse_ARedirectIsNotAPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Robots-Tag", "noindex")
		switch r.URL.Path {
		case "/old":
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		}
	})
	s.robots = "User-agent: *\nDisallow: /private\n"
	r := newRigBefore(t, s, purposeOf(signal.PurposeSearch))
	for path, want := range map[string]int{"/old": http.StatusMovedPermanently, "/gone": http.StatusGone, "/new": http.StatusForbidden} {
		must.Status(t, r.ask(plain, question{path: path}).Response, want, path)
		must.Contain(t, r.records.target(t, path).Outcome.Signals, "noindex", "%s: recorded", path)
	}
}

// A 304 confirms the page that was judged.
func TestUse_AConfirmedPageKeepsItsVerdict(t *testing.T) {
	t.Parallel()
	html := `<head><meta name="robots" content="noindex"></head>hello`
	r := newRigBefore(t, usageSite(t, "", html, `ETag: "1"`), purposeOf(signal.PurposeSearch))
	for _, fields := range [][]string{nil, {`If-None-Match: "1"`}} {
		got := r.ask(plain, question{path: "/page", header: fields})
		must.True(t, got.StatusCode == http.StatusForbidden, "%v: %d %s", fields, got.StatusCode, got.body)
	}
	must.Status(t, r.ask(plain, question{path: "/other", header: []string{`If-None-Match: "1"`}}).Response, http.StatusNotModified, "of a page that was not judged")
}

// The head of a page that does not come is not waited for longer than maxWait; what has
// come by then is delivered. Under the profile strict the page is withheld.
func TestUse_ASlowHead(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprint("strict=", strict), func(t *testing.T) {
			t.Parallel()
			goOn := make(chan struct{})
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<html><head><title>")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-goOn:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "slow</title>")
			})
			s.robots = "User-agent: *\nDisallow: /private\n"
			changes := []func(*Config){purposeOf(signal.PurposeSearch)}
			if strict {
				changes = append(changes, profile(rules.Strict))
			}
			r := newRigBefore(t, s, changes...)
			c, prefix := r.raw(plain)
			began := time.Now()
			c.Send(get(prefix, "/page"))
			resp := c.Head("GET")
			waited := time.Since(began)
			must.True(t, waited >= 4*time.Second, "the answer came after %v", waited)
			if strict {
				must.Equal(t, resp.StatusCode, http.StatusForbidden, "status")
				close(goOn)
				return
			}
			first := make([]byte, len("<html><head><title>"))
			must.Get(io.ReadFull(resp.Body, first))(t)
			close(goOn)
			rest, err := io.ReadAll(resp.Body)
			must.True(t, err == nil && string(first)+string(rest) == "<html><head><title>slow</title>",
				"%q %q %v", first, rest, err)
			must.Contain(t, r.records.target(t, "/page").Outcome.Signals, `"unfinished"`, "recorded")
		})
	}
}

// Where the settings have no page read, a page is delivered, even under the profile strict,
// and the record says that its head was not read: nothing is known of it.
func TestUse_PagesThatAreNotReadAreNotTakenForAllowed(t *testing.T) {
	t.Parallel()
	s := usageSite(t, "", `<head><meta name="robots" content="noindex"></head>`)
	r := newRigBefore(t, s, purposeOf(signal.PurposeSearch), profile(rules.Strict), func(c *Config) { c.Signals.Pages = usage.NoPages })
	got := r.ask(plain, question{path: "/page"})
	must.True(t, got.StatusCode == 200 && strings.Contains(got.body, "noindex"), "%d %s", got.StatusCode, got.body)
	must.Contain(t, r.records.target(t, "/page").Outcome.Signals, `"page":"unwanted"`, "recorded")
}

func TestUse_AnnotatedAnswersNameTheVerdict(t *testing.T) {
	t.Parallel()
	s := usageSite(t, managed, "<p>hi", "Robots-Verdict: train-ai=allow", "X-Robots-Tag: noindex")
	r := newRigBefore(t, s, func(c *Config) { c.Signals = usage.Settings{Annotate: true} })
	got := r.ask(plain, question{path: "/page"})
	values := got.Header.Values("Robots-Verdict")
	if got.StatusCode != 200 || len(values) != 1 || !strings.Contains(values[0], "train-ai=disallow;src=robots") || !strings.Contains(values[0], "search=") {
		t.Errorf("%d %q", got.StatusCode, values)
	}
}

func TestUse_RefusalsOfTheSiteAreClassified(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Crawler-Price", "USD 0.01")
		w.WriteHeader(http.StatusPaymentRequired)
	})
	r.ask(plain, question{path: "/page"})
	e := r.records.target(t, "/page")
	must.True(t, e.Outcome.SiteAnswer == string(signal.Priced) && e.Outcome.Status == http.StatusPaymentRequired,
		"recorded: %+v", e.Outcome)
	var counts counts.Tally
	counts.Ended(&e)
	got := counts.Summary().Answers
	must.True(t, len(got) == 1 && got[0].Answer == "priced" && got[0].Count == 1, "counted: %+v", got)
}
