package daemon

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/pace"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// turnsDesk is turns in a file, and what is logged of it.
type turnsDesk struct {
	*turnsFile
	log strings.Builder
}

func openTurnsDesk(path string) *turnsDesk {
	d := &turnsDesk{}
	d.turnsFile = openTurnsFile(path, nil, slog.New(slog.NewTextHandler(&d.log, nil)))
	return d
}

var quietSite = rules.Origin{Scheme: "https", Host: "site.test", Port: 443}

// wait has a request take its turn at a site that asks for 10 s, and returns how
// long it waited.
func (d *turnsDesk) wait(t *testing.T) time.Duration {
	t.Helper()
	p := rules.New(rules.Source{Origin: quietSite, State: rules.Available}, []byte("User-agent: *\nCrawl-delay: 10\n"))
	a := d.turns.Take(t.Context(), &pace.Ask{
		Settings: &pace.Settings{MaxDelay: time.Hour, MaxWait: 2 * time.Hour},
		Origin:   quietSite, Hints: p.RateHints(rules.Identify("TestBot/1.0")),
	})
	must.Need(t, !a.Refused, "%+v", a)
	a.Turn.Started()
	a.Turn.End()
	return a.Waited
}

func TestHeed_AHeedThatEndedWellGoesOnWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turns.json")
	synctest.Test(t, func(t *testing.T) {
		first := openTurnsDesk(path)
		must.Equal(t, first.wait(t), 0, "the first request ever waited")
		first.close()
		testkit.Advance(4 * time.Second)
		second := openTurnsDesk(path)
		must.Equal(t, second.wait(t), 6*time.Second, "after a restart of 4s waited")
		second.close()
		testkit.Advance(time.Minute)
		third := openTurnsDesk(path)
		must.Equal(t, third.wait(t), 0, "after a minute waited")
		third.close()
	})
}

// What was written last is older than what was done last, perhaps.
func TestHeed_AHeedThatWasKilledKeepsEachDelayOnceFromItsStart(t *testing.T) {
	dir := t.TempDir()
	path, killed := filepath.Join(dir, "turns.json"), filepath.Join(dir, "killed.json")
	synctest.Test(t, func(t *testing.T) {
		first := openTurnsDesk(path)
		other := rules.Origin{Scheme: "https", Host: "busy.test", Port: 443}
		first.turns.Answered(other, http.StatusServiceUnavailable, http.Header{"Retry-After": {"600"}}, time.Now())
		testkit.Advance(5 * time.Second) // by now it is written
		first.wait(t)
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(killed, data, 0o600)
		}
		must.OK(t, err)
		first.close()
		second := openTurnsDesk(killed)
		held := time.Duration(0)
		for _, s := range second.turns.List() {
			held = max(held, s.Pause)
		}
		must.Equal(t, held, 595*time.Second, "what holds a site holds for another")
		must.Equal(t, second.wait(t), 10*time.Second, "after a kill waited")
		second.close()
	})
}

func TestHeed_AFailureToSaveTurnsIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openTurnsDesk(filepath.Join(t.TempDir(), "missing", "turns.json"))
		d.wait(t)
		testkit.Advance(5 * time.Second)
		d.wait(t)
		testkit.Advance(5 * time.Second)
		d.close()
		must.Equal(t, strings.Count(d.log.String(), "cannot be saved for a restart"), 1, "times the log says it")
	})
}
