package auditcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/acl"
	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/signal"
)

// layout2 is a record of a crawler for training and search, and of one without a purpose.
func layout2(t *testing.T) *store.Record {
	t.Helper()
	data, err := os.ReadFile("../audit/store/testdata/layout2.db")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "audit.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	record, err := store.OpenRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func unpainted(_, text string) string { return text }

// flat returns a text with one blank between words.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// noRules are the settings of that record.
func noRules(string) (*acl.Rules, error) { return &acl.Rules{}, nil }

func TestList_WithheldPagesAndAnswersOfSites(t *testing.T) {
	t.Parallel()
	lines := map[string]string{}
	err := replay.List(t.Context(), []*store.Record{layout2(t)}, store.Filter{}, func(_ int, d *replay.Decision) error {
		var out strings.Builder
		err := printLine(&out, unpainted, d)
		lines[d.URL+" "+strings.Join(d.Purposes, ",")] = out.String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]string{
		"https://plain.example/draft training,search": "; page withheld: ",
		"https://plain.example/paid training,search":  "; the site's answer: the site asks for money (priced)\n",
		"https://managed.example/a training,search":   ": Content-Signal: search=yes, ai-train=no (line 3)\n",
		"https://managed.example/a ":                  " allow ",
	} {
		if line := lines[request]; !strings.Contains(line, want) || strings.Count(line, "\n") != 1 {
			t.Errorf("%s: the line is %q, want %q in it", request, line, want)
		}
	}
	if line := lines["https://plain.example/draft training,search"]; !strings.Contains(line, " 403 ") || !strings.Contains(line, "<meta name=robots content=noindex> (line 2)") {
		t.Errorf("the withheld page is %q", line)
	}
	if line := lines["https://plain.example/x training,search"]; strings.Contains(line, ";") {
		t.Errorf("a page that was delivered is %q", line)
	}
}

func TestWhy_StatementsPurposeAndAnswerOfTheSite(t *testing.T) {
	t.Parallel()
	record := layout2(t)
	printed := map[string]string{}
	err := replay.List(t.Context(), []*store.Record{record}, store.Filter{}, func(_ int, d *replay.Decision) error {
		x, err := replay.ExplainID(t.Context(), record, noRules, d.ID)
		if err != nil {
			return err
		}
		var out strings.Builder
		err = printWhy(&out, unpainted, "audit.db", x)
		printed[d.URL+" "+strings.Join(d.Purposes, ",")] = flat(out.String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for request, wants := range map[string][]string{
		"https://plain.example/draft training,search": {
			"Purpose training, search", "Use search: disallow (agreed)",
			"Stated https://plain.example/draft, line 2 <meta name=robots content=noindex> search disallow",
			"the verdict that followed: refuse (", "Outcome status 403 from heed", "the site answered with status 200, and its page was withheld",
			"it comes out the same",
		},
		"https://managed.example/a training,search": {
			"train-ai: disallow (agreed)", "Stated https://managed.example/robots.txt, line 3 Content-Signal: search=yes, ai-train=no",
			"line 3, byte for byte: Content-Signal: search=yes, ai-train=no", "it comes out the same",
		},
		"https://plain.example/paid training,search": {"Outcome status 402 from the site", "the site's answer: the site asks for money (priced)"},
	} {
		for _, want := range wants {
			if !strings.Contains(printed[request], want) {
				t.Errorf("%s: %q is missing:\n%s", request, want, printed[request])
			}
		}
	}
	if text := printed["https://managed.example/a "]; strings.Contains(text, "Purpose") || strings.Contains(text, "Use ") {
		t.Errorf("without a purpose and a statement:\n%s", text)
	}
	if text := printed["https://plain.example/draft training,search"]; strings.Contains(text, "byte for byte") {
		t.Errorf("a line of the page is taken for one of robots.txt:\n%s", text)
	}
}

func TestReplay_ForAPurposeIsPrintedBySite(t *testing.T) {
	t.Parallel()
	r, err := replay.Judge(t.Context(), layout2(t), replay.Options{ParseRules: noRules, Purposes: []signal.Purpose{signal.PurposeTraining, signal.PurposeArchive}})
	if err != nil {
		t.Fatal(err)
	}
	p := &replayPrinter{paint: unpainted}
	p.result("audit.db", r)
	p.uses(r.Uses)
	text := flat(p.text.String())
	for _, want := range []string{
		"same audit.db: 7 decisions",
		"if the clients had stated the purpose training, archive, of 6 requests that robots.txt allows: 3 refused by what the site states",
		"training (train-ai): 2 refused", "archive (archive): 1 refused",
		"https://managed.example: 2 of 2 requests refused 2 train-ai is disallowed: Content-Signal: search=yes, ai-train=no (https://managed.example/robots.txt, line 3)",
		"https://plain.example: 1 of 4 requests refused 1 archive is disallowed: X-Robots-Tag: noarchive (https://plain.example/marked)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, p.text.String())
		}
	}
}
