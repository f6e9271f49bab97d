package cache

import (
	"io"
	"net/http"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// What is kept is the file, not what a profile made of it: after a restart with
// another one the same file is read anew, and the site is not asked.
func TestHeed_AKeptFileIsJudgedUnderTheProfileInForce(t *testing.T) {
	t.Parallel()
	const tie = "User-agent: *\nAllow: /tie\nDisallow: /tie\n"
	for profile, want := range map[rules.Profile]rules.Verdict{
		rules.Standard: rules.Allow, rules.Strict: rules.Refuse, rules.Google: rules.Allow, rules.REP1994: rules.Refuse,
	} {
		d := newDrawer()
		site, o := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tie) })
		before, _ := newCache(t, Config{Store: d})
		got := before.Policy(t.Context(), o, "").Decide(nil, rules.NewTarget("/tie")).Verdict
		must.Need(t, got == rules.Allow, "standard: %v", got)
		after, _ := newCache(t, Config{Store: d, Profile: profile})
		p := after.Policy(t.Context(), o, "")
		if got := p.Decide(nil, rules.NewTarget("/tie")).Verdict; got != want || p.Profile() != profile || site.count.Load() != 1 {
			t.Errorf("%v: %v under %v, %d requests", profile, got, p.Profile(), site.count.Load())
		}
	}
}

// An answer that profiles take differently is no fact but a judgement: under
// another profile the site is asked again.
func TestHeed_AKeptDenialIsAskedAboutAgainUnderAnotherProfile(t *testing.T) {
	t.Parallel()
	d := newDrawer()
	site, o := newSite(t, status(403))
	for i, c := range []struct {
		profile rules.Profile
		want    rules.Verdict
	}{{rules.Standard, rules.Allow}, {rules.Standard, rules.Allow}, {rules.Strict, rules.Refuse}, {rules.Standard, rules.Allow}} {
		asked := site.count.Load()
		cache, _ := newCache(t, Config{Store: d, Profile: c.profile})
		got := cache.Policy(t.Context(), o, "").Decide(nil, rules.NewTarget("/")).Verdict
		again := site.count.Load() > asked
		must.True(t, got == c.want && again != (i == 1), "start %d, %v: %v, asked again: %v", i+1, c.profile, got, again)
	}
}

// Whether a failing site's old copy is used depends on the profile in force. A profile
// that uses none does not delete it.
func TestHeed_TheProfileInForceDecidesWhetherAnOldCopyIsUsed(t *testing.T) {
	t.Parallel()
	d := newDrawer()
	site, o := newSite(t, status(200, "Cache-Control", "max-age=300"))
	cache, clock := newCache(t, Config{Store: d})
	cache.Policy(t.Context(), o, "")
	site.turn(status(503))
	clock.step(2 * time.Hour)
	stale := cache.Policy(t.Context(), o, "").Source()
	for _, c := range []struct {
		profile rules.Profile
		stale   bool
	}{{rules.Standard, true}, {rules.Strict, false}, {rules.Google, false}, {rules.Standard, true}} {
		again, at := newCache(t, Config{Store: d, Profile: c.profile})
		at.step(2 * time.Hour)
		src := again.Policy(t.Context(), o, "").Source()
		must.True(t, stale.Stale && src.Stale == c.stale && src.Stale == (src.State == rules.Available),
			"%v: %+v", c.profile, src)
	}
}
