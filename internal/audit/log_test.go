package audit

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func newEntry(target string) *Entry {
	return &Entry{
		ID: NewID(), Time: time.Now(), Client: "127.0.0.1:5", Method: "GET", Scheme: "http", Host: "site.test", Target: target,
		UserAgent: "ExampleBot/1.0", Agent: rules.Identify("ExampleBot/1.0"), Judged: ByPath,
		Decision: rules.Decision{Verdict: rules.Refuse, Reason: rules.ReasonRule, Group: "*", Rule: "Disallow: /x", Line: 2},
	}
}

// lines are the log's lines as values.
func lines(t *testing.T, log *bytes.Buffer) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var m map[string]any
		must.OK(t, json.Unmarshal([]byte(line), &m), "%q", line)
		all = append(all, m)
	}
	return all
}

func TestHeed_ADecisionIsOneLineWhenItsExchangeHasEnded(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(slog.NewJSONHandler(&out, nil), nil)
	e := newEntry("/x\n\x1b[31mred")
	err := l.Decided(e)
	must.Need(t, err == nil && out.Len() == 0, "%v, %q", err, out.String())
	e.Outcome = Outcome{Status: 403, BytesOut: 7, Duration: time.Second}
	l.Ended(e)
	all := lines(t, &out)
	must.Need(t, len(all) == 1, "%d lines", len(all))
	for key, want := range map[string]any{
		"msg": "decision", "agent": "examplebot", "agent_from": "user-agent", "verdict": "refuse", "reason": "rule", "group": "*",
		"rule": "Disallow: /x", "line": 2.0, "status": 403.0, "by": "heed", "bytes_out": 7.0, "duration_ms": 1000.0, "judged": "path",
	} {
		must.Equal(t, all[0][key], want, key)
	}
}

// What is odd in rules is logged with the first decisions by them: lines without effect, a value
// that cannot be understood.
func TestHeed_WhatIsOddInNewRulesIsLogged(t *testing.T) {
	for age, want := range map[time.Duration]any{0: "line 1 (orphan-rule), line 3 (bad-value), line 4 (hidden-character) have no effect", time.Minute: nil} {
		var out bytes.Buffer
		l := NewLog(slog.NewJSONHandler(&out, nil), nil)
		e := newEntry("/x")
		e.Policy = rules.New(rules.Source{State: rules.Available}, []byte("Disallow: /a\nUser-agent: *\nCrawl-delay: soon\n\ufeffDisallow: /b\nDisallow: /x\n"))
		e.PolicyAge = age
		must.OK(t, l.Decided(e))
		if l.Ended(e); lines(t, &out)[0]["robots_note"] != want {
			t.Errorf("after %v: %s", age, out.String())
		}
	}
}

// An exchange of over ten seconds is logged when it has lasted that long, and again when
// it ends, with one id.
func TestHeed_ALongExchangeHasTwoLines(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(slog.NewJSONHandler(&out, nil), nil)
	short, long := newEntry("/short"), newEntry("/long")
	long.Time = long.Time.Add(-LongExchange)
	_, _ = l.Decided(short), l.Decided(long)
	l.tick(time.Now())
	l.tick(time.Now())
	l.Ended(long)
	l.Ended(short)
	all := lines(t, &out)
	must.True(t, len(all) == 3 && all[0]["msg"] == "decision" && all[1]["msg"] == "ended" && all[0]["id"] == all[1]["id"],
		"%v", all)
	_, early := all[0]["status"]
	must.True(t, !early, "the first line cannot know the outcome: %v", all[0])
}

// An exchange that is open when heed stops is logged as well, once.
func TestHeed_NothingOpenIsLostAtTheEnd(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(slog.NewJSONHandler(&out, nil), nil)
	e := newEntry("/open")
	_ = l.Decided(e)
	l.Close("stopped")
	l.Ended(e) // its handler was slower
	all := lines(t, &out)
	must.True(t, len(all) == 1 && all[0]["error"] == "stopped" && all[0]["truncated"] == true, "%v", all)
	must.True(t, l.Decided(newEntry("/late")) != nil, "a decision was accepted after the end")
}
