package auditcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/config"
	"heed/internal/judge/signal"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// layout2 is a record of crawlers for training, for search and for an agent, and of one
// without a purpose, which request the same five pages.
func layout2(t *testing.T) *store.Record {
	t.Helper()
	data := must.Get(os.ReadFile("../../audit/store/testdata/layout2.db"))(t)
	path := testkit.Write(t, filepath.Join(t.TempDir(), "audit.db"), string(data))
	return must.Get(store.OpenRecord(path))(t)
}

func unpainted(_, text string) string { return text }

// flat returns a text with one blank between words.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestList_WithheldPagesAndAnswersOfSites(t *testing.T) {
	t.Parallel()
	lines := map[string]string{}
	must.OK(t, replay.List(t.Context(), []*store.Record{layout2(t)}, store.Filter{}, func(d *replay.Decision) error {
		var out strings.Builder
		err := printLine(&out, unpainted, d)
		lines[d.URL+" "+d.ClientName] = out.String()
		return err
	}))
	for request, want := range map[string]string{
		"http://site.test/hidden.html finder":    "; page withheld: ",
		"http://guarded.test/page.html answerer": "; the site's answer: the site gives legal reasons (legal)\n",
		"http://site.test/page.html trainer":     ": line 3, Content-Signal: search=yes,ai-train=no, group *\n",
		"http://site.test/page.html ":            " allow ",
	} {
		if line := lines[request]; !strings.Contains(line, want) || strings.Count(line, "\n") != 1 {
			t.Errorf("%s: the line is %q, want %q in it", request, line, want)
		}
	}
	if line := lines["http://site.test/hidden.html finder"]; !strings.Contains(line, " 403 ") || !strings.Contains(line, ": line 2, <meta name=\"robots\" content=\"noindex, follow\">") {
		t.Errorf("the withheld page is %q", line)
	}
	must.Lack(t, lines["http://site.test/page.html answerer"], ";", "a page that was delivered")
}

func TestWhy_StatementsPurposeAndAnswerOfTheSite(t *testing.T) {
	t.Parallel()
	record := layout2(t)
	printed := map[string]string{}
	must.OK(t, replay.List(t.Context(), []*store.Record{record}, store.Filter{}, func(d *replay.Decision) error {
		x, err := replay.ExplainID(t.Context(), record, config.RecordedRules, d.ID)
		if err != nil {
			return err
		}
		var out strings.Builder
		x.File = "audit.db"
		err = printWhy(&out, unpainted, x)
		printed[d.URL+" "+d.ClientName] = flat(out.String())
		return err
	}))
	for request, wants := range map[string][]string{
		"http://site.test/hidden.html finder": {
			"Purpose search", "Use search: disallow (disallow-wins)",
			"Stated http://site.test/hidden.html, line 2 <meta name=\"robots\" content=\"noindex, follow\"> search disallow",
			"the verdict that followed: refuse (", "Outcome status 403 from heed", "the site answered with status 200, and its page was withheld",
			"it comes out the same",
		},
		"http://site.test/page.html trainer": {
			"train-ai: disallow (agreed)", "Stated http://site.test/robots.txt, line 3 Content-Signal: search=yes,ai-train=no",
			"line 3, byte for byte: Content-signal: search=yes,ai-train=no", "it comes out the same",
		},
		"http://guarded.test/page.html answerer": {"Outcome status 451 from the site", "the site's answer: the site gives legal reasons (legal)"},
	} {
		for _, want := range wants {
			must.Contain(t, printed[request], want, request)
		}
	}
	if text := printed["http://site.test/page.html "]; strings.Contains(text, "Purpose") || strings.Contains(text, "Use ") {
		t.Errorf("without a purpose and a statement:\n%s", text)
	}
	must.Lack(t, printed["http://site.test/hidden.html finder"], "byte for byte", "a line of the page is taken for one of robots.txt")
}

func TestReplay_ForAPurposeIsPrintedBySite(t *testing.T) {
	t.Parallel()
	r := must.Get(replay.Judge(t.Context(), layout2(t), replay.Options{ParseRules: config.RecordedRules, Purposes: []signal.Purpose{signal.PurposeTraining, signal.PurposeArchive}}))(t)
	p := &replayPrinter{paint: unpainted}
	r.File = "audit.db"
	p.result(r)
	p.uses(r.Uses)
	text := flat(p.text.String())
	for _, want := range []string{
		"same audit.db: 20 decisions", "21 came out the same",
		"if the clients had stated the purpose training, archive, of 16 requests that robots.txt allows: 12 refused by what the site states",
		"training (train-ai): 12 refused, 0 allowed, 1 silent, 3 unknown, 0 not recorded",
		"archive (archive): 0 refused, 4 allowed, 3 silent, 8 unknown, 1 not recorded",
		"http://site.test: 8 of 8 requests refused 8 train-ai is disallowed: Content-Signal: search=yes,ai-train=no (http://site.test/robots.txt, line 3)",
	} {
		must.Contain(t, text, want, "%q is missing:\n%s", want, p.text.String())
	}
}
