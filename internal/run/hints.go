package run

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/clientenv"
	"heed/internal/console"
)

// printTimeoutHints prints which timeout to raise when clients closed requests before
// their turn, and which setting when requests were refused with 429.
func printTimeoutHints(w io.Writer, s *audit.Summary, command string) {
	var left, refused uint64
	var owed time.Duration
	for _, c := range s.Paced {
		left, refused, owed = left+c.Left, refused+c.Refused, max(owed, c.Owed)
	}
	if left > 0 {
		fmt.Fprintf(w, "  %s left before their turn came: have the client wait at least %v longer (%s), or let it ask for less at a time\n",
			console.Plural(left, "request"), owed.Round(time.Second)+time.Second, timeoutHintFor(command))
	}
	if refused > 0 {
		fmt.Fprintf(w, "  %s refused with a Retry-After (429): with pacing.max_wait above the site's delay times what is asked for at a time, all of them wait\n",
			requestsWere(refused))
	}
}

// requestsWere returns the number of requests and the matching verb.
func requestsWere(n uint64) string {
	if n == 1 {
		return "1 request was"
	}
	return console.Plural(n, "request") + " were"
}

// timeoutHintFor returns the timeout setting of a command; all settings for an unknown one.
func timeoutHintFor(command string) string {
	name := strings.ToLower(filepath.Base(command))
	var all []string
	for _, p := range timeoutHints {
		if strings.HasPrefix(name, p.command) {
			return p.setting
		}
		all = append(all, p.setting)
	}
	return strings.Join(all, "; ")
}

// printHints reports that nothing was judged and prints what makes the command use heed:
// the settings of the programs that bypassed it. Where connections are watched and none was
// seen, that is one line, except for a command that has others send requests. Else it prints
// the setting of the command, and for one that is not known or runs others those of the usual
// kinds.
func printHints(w io.Writer, bypass *bypassReport, command string) {
	own, known := clientenv.ProgramOf(command)
	if bypass != nil && bypass.Watched && bypass.Connections == 0 && !own.Wraps {
		advice := "heed help clients"
		if known { // a connection of a few milliseconds can be missed
			advice = own.Proxy
		}
		fmt.Fprintf(w, "heed: no request came through, and %s opened no connection that heed saw; if it should have: %s\n", console.Printable(filepath.Base(command)), advice)
		return
	}
	fmt.Fprintf(w, "heed: no request came through, so nothing %s did was judged\n", console.Printable(filepath.Base(command)))
	if hints := bypassHints(bypass); len(hints) > 0 {
		printSorted(w, hints)
		return
	}
	fmt.Fprintln(w, "If it should have sent requests, they bypassed the proxy:")
	if known {
		fmt.Fprintf(w, "  %s: %s\n", own.Kind, own.Proxy)
	}
	for _, p := range clientenv.Programs {
		if p.Usual && (!known || own.Wraps && p.Kind != own.Kind) {
			fmt.Fprintf(w, "  %s: %s\n", p.Kind, p.Proxy)
		}
	}
	fmt.Fprintf(w, "  %s: %s\n", clientenv.OtherPrograms.Kind, clientenv.OtherPrograms.Proxy)
	explainPlaceholder(w)
}

// explainPlaceholder explains the placeholders in hints.
func explainPlaceholder(w io.Writer) {
	fmt.Fprintln(w, "  HEED is the address in http_proxy, and BUNDLE the file in SSL_CERT_FILE, in the environment of the command")
}

// printMixedHints prints the settings of the programs that bypassed heed, and of the
// command when it rejected heed's CA, although other requests came through.
func printMixedHints(w io.Writer, s *audit.Summary, bypass *bypassReport, command string) {
	hints := bypassHints(bypass)
	if untrusting(s) {
		who := "a program of the run"
		p, known := clientenv.ProgramOf(command)
		if known && !p.Wraps {
			who = console.Printable(filepath.Base(command)) + ", or a program that it started,"
		}
		hints[who+" does not trust heed's CA: "] = cmp.Or(setByRun.ReplaceAllString(cmp.Or(p.Trust, clientenv.OtherPrograms.Trust), ""), "`heed ca install`")
	}
	if len(hints) > 0 {
		printSorted(w, hints)
	}
}

// setByRun matches the variables at the beginning of a hint that the environment of the
// command has already.
var setByRun = regexp.MustCompile(`^([A-Z_]+=BUNDLE ?)+(; )?`)

// bypassHints returns the settings of the programs that bypassed heed.
func bypassHints(bypass *bypassReport) map[string]string {
	hints := map[string]string{}
	if bypass != nil {
		for _, to := range bypass.To {
			p, _ := clientenv.ProgramOf(to.Command)
			hints[console.Quoted(to.Command)+" bypassed heed: "] = p.Proxy
		}
	}
	return hints
}

// printSorted prints hints in the order of their keys.
func printSorted(w io.Writer, hints map[string]string) {
	for _, what := range slices.Sorted(maps.Keys(hints)) {
		fmt.Fprintf(w, "  %s%s\n", what, hints[what])
	}
	explainPlaceholder(w)
}
