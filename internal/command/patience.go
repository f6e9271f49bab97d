package command

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"heed/internal/audit"
)

// patience is how a kind of client is told to wait for longer.
type patience struct {
	command string // the beginning of the name such clients are started by
	setting string
}

// patiences are named to who runs a client that leaves before its turn comes.
var patiences = []patience{
	{"curl", "curl --max-time SECONDS, or none"},
	{"wget", "wget --timeout=SECONDS, or --read-timeout"},
	{"scrapy", "Scrapy's DOWNLOAD_TIMEOUT"},
	{"python", "the timeout of requests, httpx or urllib, or Scrapy's DOWNLOAD_TIMEOUT"},
	{"node", "the signal of fetch (AbortSignal.timeout), or undici's headersTimeout"},
	{"npm", "npm --fetch-timeout=MILLISECONDS"},
	{"pip", "pip --timeout=SECONDS"},
	{"perl", "the timeout of LWP::UserAgent"},
	{"go", "the Timeout of http.Client, or its ResponseHeaderTimeout"},
}

// pacedWords says what taking turns cost at one host.
func pacedWords(c audit.PaceCount) string {
	text := fmt.Sprintf("  turns at %s: %s waited for %v in all, %v at most", quoted(c.Host), plural(c.Requests, "request"),
		c.Total.Round(time.Millisecond), c.Longest.Round(time.Millisecond))
	if c.Refused > 0 {
		text += fmt.Sprintf("; told when to come back: %d", c.Refused)
	}
	if c.Left > 0 {
		text += fmt.Sprintf("; left before their turn: %d, up to %v too early", c.Left, c.Owed.Round(time.Second))
	}
	return text
}

// printPatience names the timeout to raise when clients left before their turns,
// and the setting when they were told to come back.
func printPatience(w io.Writer, s *audit.Summary, command string) {
	var left, refused uint64
	var owed time.Duration
	for _, c := range s.Paced {
		left, refused, owed = left+c.Left, refused+c.Refused, max(owed, c.Owed)
	}
	if left > 0 {
		fmt.Fprintf(w, "  %s left before their turn came: have the client wait at least %v longer (%s), or let it ask for less at a time\n",
			plural(left, "request"), owed.Round(time.Second)+time.Second, patienceOf(command))
	}
	if refused > 0 {
		fmt.Fprintf(w, "  %s told to come back later (429): with pacing.max_wait above the site's delay times what is asked for at a time, all of them wait\n",
			wereTold(refused))
	}
}

// wereTold is n requests, and the verb that goes with them.
func wereTold(n uint64) string {
	if n == 1 {
		return "1 request was"
	}
	return plural(n, "request") + " were"
}

// patienceOf names the setting of a command; all that are known for others.
func patienceOf(command string) string {
	name := strings.ToLower(filepath.Base(command))
	var all []string
	for _, p := range patiences {
		if strings.HasPrefix(name, p.command) {
			return p.setting
		}
		all = append(all, p.setting)
	}
	return strings.Join(all, "; ")
}
