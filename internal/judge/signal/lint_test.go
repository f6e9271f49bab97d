package signal_test

import (
	"fmt"
	"strings"
	"testing"

	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// findings returns the kinds of the findings about a file, with their lines; those that
// lose a reservation have a "!".
func findings(robots string) string {
	var all []string
	for _, f := range signal.Lint(rules.New(rules.Source{State: rules.Available}, []byte(robots))) {
		mark := ""
		if f.Serious {
			mark = "!"
		}
		all = append(all, fmt.Sprintf("%d %s%s", f.Line, f.Kind, mark))
	}
	return strings.Join(all, ", ")
}

func TestLint_LostReservations(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"Content-Usage: train-ai=n, search=y":      "",
		"Content-Usage: /press/ train-ai=y":        "",
		"Content-Usage: train-ai=n;exc=research":   "",
		"Content-Usage: Train-AI=n":                "2 usage-key-case!",
		"Content-Usage: train-ai=n,":               "2 usage-comma!",
		"Content-Usage: /x train-ai=n,":            "2 usage-comma!",
		"Content-Usage: *.pdf train-ai=n":          "2 usage-path!",
		"Content-Usage: train-ai=n search=y":       "2 usage-unreadable!",
		"Content-Usage: train-ai=no":               "2 usage-value!",
		"Content-Usage: train-ai=N":                "2 usage-value!",
		"Content-Usage: train-ai":                  "2 usage-value!",
		"Content-Usage: trainai=n":                 "2 usage-label",
		"Content-Usage: /press/":                   "2 usage-value!",
		"Content-Usage:":                           "2 usage-value!",
		"Content-Signal: search=yes,ai-train=no":   "",
		"Content-Signal: search=yes, ai-train=no":  "",
		"Content-Signal: ai-train=false":           "2 signal-value!",
		"Content-Signal: AI-Train = No":            "2 signal-case",
		"Content-Signal: ai-training=no":           "2 signal-key",
		"Content-Signal: ai-train: no":             "2 signal-list!",
		"Content-Signal: /a search=no":             "2 signal-list!",
		"Content-Signal: ai-train=disallow":        "2 signal-value!",
		"Content-Signal: Search=Yes":               "2 signal-case",
		"Content-Signals: ai-train=no":             "2 signal-name!",
		"Content-Signal: use=reference":            "",
		"Content-Signal: search=no,":               "",
		"Content-Signal:":                          "2 signal-list!",
		"License: https://site.example/l.xml":      "",
		"License: /license.xml":                    "2 licence-url!",
		"License: CC-BY-4.0":                       "2 licence-url!",
		"License: ftp://site.example/l.xml":        "2 licence-url!",
		"License: https://u:p@site.example/l.xml":  "2 licence-url!",
		"Crawl-delay: soon\nContent-Signal: maybe": "3 signal-list!",
	} {
		must.Equal(t, findings("User-agent: *\n"+line+"\nDisallow: /x\n"), want, line)
	}
	robots := "Content-Usage: search=N\nUser-agent: a\nLicense: x\nUser-agent: b\nContent-Signal: y\n"
	must.Equal(t, findings(robots), "1 usage-value!, 3 licence-url!, 5 signal-list!", "in all groups")
}

// What is found follows from what the judge reads: of a Content-Signal the readable members
// count, and the finding names the one that does not.
func TestLint_SaysWhatTheJudgeReads(t *testing.T) {
	t.Parallel()
	robots := "User-agent: *\nContent-Signal: /news/ ai-train=yes, ai-input=no\n"
	all := signal.Lint(rules.New(rules.Source{State: rules.Available}, []byte(robots)))
	if len(all) != 1 || all[0].Kind != signal.SignalList || !strings.Contains(all[0].Means, "takes no path") || !strings.Contains(all[0].Means, "the others count") {
		t.Errorf("%+v", all)
	}
	v := request{robots: robots, path: "/other"}.judge(t)
	must.True(t, v.Of(signal.AIInput) == signal.Disallow && v.Of(signal.TrainAI) == signal.Unknown,
		"ai-input %s, train-ai %s", v.Of(signal.AIInput), v.Of(signal.TrainAI))
}

// Every finding says what it means and what to write instead.
func TestLint_FindingsAreSentences(t *testing.T) {
	t.Parallel()
	robots := "Content-Usage: Train-AI=n\nContent-Usage: a=n,\nContent-Usage: *x a=n\nContent-Usage: a b\nContent-Usage: search=1\nContent-Usage: a=n\n" +
		"Content-Signal: search=1\nContent-Signal: Search=no\nContent-Signal: a=no\nContent-Signal: a\nLicense: a\nContent-Signals: a\n"
	kinds := map[signal.FindingKind]bool{}
	for _, f := range signal.Lint(rules.New(rules.Source{State: rules.Available}, []byte(robots))) {
		kinds[f.Kind] = true
		must.True(t, strings.HasSuffix(f.Means, ".") && strings.HasSuffix(f.Instead, ".") && f.Text != "", "%+v", f)
	}
	must.Equal(t, len(kinds), 12, "kinds: %v", kinds)
}
