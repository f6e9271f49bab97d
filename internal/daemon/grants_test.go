package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/fixture"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// grantDesk is grants over a clock of its own and rules that shop is known to.
type grantDesk struct {
	*grants
	at    time.Time
	rules *acl.Rules
	log   strings.Builder
}

func openGrantDesk(t *testing.T, path string, at time.Time) *grantDesk {
	t.Helper()
	d := &grantDesk{at: at}
	base := &acl.Rules{Clients: []acl.Client{{Name: "shop"}}}
	d.rules = base
	g, err := openGrants(&grants{
		path: path, log: slog.New(slog.NewTextHandler(&d.log, nil)), now: func() time.Time { return d.at },
		amend: func(add func(*acl.Rules) *acl.Rules) { d.rules = add(base) },
	})
	must.OK(t, err)
	t.Cleanup(g.close)
	d.grants = g
	return d
}

// terms is what holds for a client at https://www.example.org.
func (d *grantDesk) terms(t *testing.T, client string) acl.Effective {
	t.Helper()
	o := must.Get(rules.ParseOrigin("https", "www.example.org"))(t)
	return d.rules.For(d.rules.ClientNamed(client), o, d.at)
}

// A machine that sleeps does not make what was granted last longer than was told.
func TestHeed_WhatIsGrantedEndsByTheWallClock(t *testing.T) {
	now := time.Now()
	d := openGrantDesk(t, filepath.Join(t.TempDir(), grantsFile), now)
	must.Get(d.observe(acl.ModeOverride{Mode: acl.Observe, Until: now.Add(time.Hour), Reason: "outage"}))(t)
	host := must.Get(acl.ParseHostPattern("example.org"))(t)
	must.Get(d.allow(control.Exception{Host: host, Path: "/", Client: "shop", Reason: "agreed", Expires: now.Add(time.Hour)}))(t)
	for _, end := range []time.Time{d.current.Breaks[0].Until, d.current.Exceptions[0].Expires} {
		must.True(t, end == end.Round(0) && end.Equal(now.Add(time.Hour)), "it ends at %v", end)
	}
}

var aMorning = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// The break-glass survives a restart and ends by itself.
func TestHeed_ABreakSurvivesARestartAndEndsByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), grantsFile)
	d := openGrantDesk(t, path, aMorning)
	host := must.Get(acl.ParseHostPattern("*.example.org"))(t)
	must.Get(d.observe(acl.ModeOverride{Mode: acl.Observe, Client: "shop", Host: host, Since: d.at, Until: d.at.Add(2 * time.Hour), Reason: "outage"}))(t)
	d.close()
	info, err := os.Stat(path)
	must.True(t, err == nil && info.Mode() == 0o600, "%v, %v", info.Mode(), err)

	d = openGrantDesk(t, path, aMorning.Add(time.Hour))
	got := d.terms(t, "shop")
	must.True(t, got.Mode == acl.Observe && got.ModeOverride.Reason == "outage", "after a restart: %+v", got)
	must.Equal(t, d.terms(t, "").Mode, acl.Enforce, "for others")
	d.at = aMorning.Add(2 * time.Hour)
	got = d.terms(t, "shop")
	must.True(t, got.Mode == acl.Enforce && len(d.list().Breaks) == 0, "after its end: %v, %+v", got.Mode, d.list())
	d.expire() // as the timer does
	must.Contain(t, d.log.String(), "a grant has expired", "nothing is said of the end")
	d = openGrantDesk(t, path, aMorning.Add(time.Hour))
	must.True(t, len(d.list().Breaks) == 0, "what has ended is kept")
}

// What cannot be saved is not granted, and a broken file is no empty one.
func TestHeed_AGrantThatWouldBeLostIsNone(t *testing.T) {
	dir := t.TempDir()
	d := openGrantDesk(t, filepath.Join(dir, "gone", grantsFile), aMorning)
	_, err := d.observe(acl.ModeOverride{Mode: acl.Observe, Until: d.at.Add(time.Hour), Reason: "x"})
	must.True(t, err != nil && d.terms(t, "").Mode == acl.Enforce, "granted: %v", err)
	path := filepath.Join(dir, grantsFile)
	testkit.Write(t, path, "{")
	must.Fail(t, must.Err(openGrants(&grants{path: path, now: time.Now})), "Remove the file", "a broken file")
}

func TestHeed_PatternsAndTimesOfGrants(t *testing.T) {
	for text, want := range map[string]string{
		"example.org/api/":             "example.org /api/",
		"*.example.org/api/*.json$":    "*.example.org /api/*.json$",
		"http://example.org:8080/":     "example.org:8080 /",
		"http://example.org/":          "example.org:80 /",
		"https://*.example.org/feed":   "*.example.org:443 /feed",
		"https://example.org":          `"https://example.org" names no path`,
		"ftp://example.org/":           "is no address",
		"example.org/a b":              "write a blank as %20",
		"https://u:p@example.org/":     "is no address",
		"https://exa mple.org/private": "is no address",
	} {
		host, path, err := control.ParsePattern(text)
		got := host.String() + " " + path
		if err != nil {
			got = err.Error()
		}
		must.True(t, got == want || err != nil && strings.Contains(got, want), "%s: %s, want %s", text, got, want)
	}
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "7d": 7 * 24 * time.Hour, "8d": 0, "-1h": 0, "0": 0, "": 0, "d": 0, "99999999999d": 0} {
		got, err := console.ParseFor(text, control.MaxBreak)
		must.True(t, got == want && (err == nil) == (want > 0), "%q: %v, %v", text, got, err)
	}
}

// agreedBy returns what rules say, without what it would read from files.
func agreedBy(r *acl.Rules) *acl.Rules {
	plain := r.With(nil, nil)
	plain.Hash, plain.Text, plain.Users = "", "", nil
	for i := range plain.Hosts {
		plain.Hosts[i].Robots = nil
	}
	return plain
}

// A year later, the text in the record makes the same terms: of the settings,
// of what was granted while heed ran, and of what a run asked for.
func TestHeed_TheRecordedSettingsMakeTheSameTerms(t *testing.T) {
	settled := must.Get(fixture.Agreed(t).Rules(time.Now))(t)
	host := must.Get(acl.ParseHostPattern("shop.test"))(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	g := &grants{path: filepath.Join(t.TempDir(), grantsFile), log: slog.New(slog.DiscardHandler), now: func() time.Time { return now }}
	inForce := settled
	g.amend = func(add func(*acl.Rules) *acl.Rules) { inForce = add(settled) }
	must.Get(g.allow(control.Exception{Host: host, Path: "/api/", Client: "news", Reason: "by phone", Since: now, Expires: now.Add(time.Hour)}))(t)
	granted := inForce
	must.Get(g.observe(acl.ModeOverride{Mode: acl.Observe, Since: now, Until: now.Add(time.Minute), Reason: "outage"}))(t)
	broken := inForce
	g.close()
	run := rulesForRun(broken, acl.Flags{
		Agent: []string{"LabBot"}, UserAgent: "LabBot/2.1", Observe: true, Services: []acl.HostPattern{host},
	})
	hashes := map[string]bool{}
	for name, b := range map[string]*acl.Rules{"settings": settled, "an exception granted": granted, "a break": broken, "a run": run} {
		again, err := config.RecordedRules(b.Text)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, b.Text)
			continue
		}
		got, want := agreedBy(again), agreedBy(b)
		must.True(t, reflect.DeepEqual(got, want), "%s:\ngot  %+v\nwant %+v", name, got, want)
		must.True(t, !hashes[b.Hash] && strings.HasPrefix(b.Hash, settled.Hash), "%s: the hash is %s", name, b.Hash)
		hashes[b.Hash] = true
	}
}
