package command

import (
	"strings"
	"testing"
	"time"

	"heed/internal/audit"
)

// A summary says what turns cost, and whoever ran a client that left too early
// learns which setting of it to raise.
func TestHeed_TheSummaryNamesTheTimeoutToRaise(t *testing.T) {
	s := &audit.Summary{Paced: []audit.PaceCount{
		{Host: "slow.test", Waits: audit.Waits{Requests: 3, Total: 12 * time.Second, Longest: 6 * time.Second}, Refused: 1, Left: 2, Owed: 8 * time.Second},
	}}
	if got, want := pacedWords(s.Paced[0]), "  turns at slow.test: 3 requests waited for 12s in all, 6s at most; told when to come back: 1; left before their turn: 2, up to 8s too early"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for command, want := range map[string]string{
		"/usr/bin/curl": "--max-time", "wget": "--timeout", "scrapy": "DOWNLOAD_TIMEOUT", "./crawl.sh": "DOWNLOAD_TIMEOUT",
	} {
		var out strings.Builder
		printPatience(&out, s, command)
		if !strings.HasPrefix(out.String(), "  2 requests left before their turn came: have the client wait at least 9s longer (") || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %q", command, out.String())
		}
	}
	var out strings.Builder
	if printPatience(&out, &audit.Summary{}, "curl"); out.Len() > 0 {
		t.Errorf("nobody left: %q", out.String())
	}
}
