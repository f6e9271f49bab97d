package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"heed/internal/clientenv"
	"heed/internal/console"
	"heed/internal/counts"
	"heed/internal/memo"
	"heed/internal/sealed"
	"heed/rules"
)

// printSealHint names the sealed run where connections bypassed heed, or where a program does not
// trust its CA. probe returns why this machine cannot seal.
func printSealHint(w io.Writer, bypass *bypassReport, s *counts.Summary, probe func() error) {
	bypassed := bypass != nil && bypass.Connections > 0
	if !bypassed && !untrusting(s) {
		return
	}
	what := "holds it"
	switch {
	case !bypassed:
		what = "makes the libraries of the system trust it"
	case untrusting(s):
		what = "holds it, and makes the libraries of the system trust heed's CA"
	}
	switch err := probe(); {
	case err == nil:
		fmt.Fprintf(w, "  `heed run --sealed -- CMD` %s; works on this machine\n", what)
	case errors.Is(err, sealed.ErrUnsupported):
	default:
		why, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintf(w, "  `heed run --sealed -- CMD` %s; %s (heed doctor)\n", what, why)
	}
}

// untrusting reports whether a client rejected heed's CA and was not judged later.
func untrusting(s *counts.Summary) bool {
	return slices.ContainsFunc(s.Unjudged, func(c counts.ReasonCount) bool { return c.Reason == rules.ReasonUntrusted && c.Count > c.Before })
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
func printMixedHints(w io.Writer, s *counts.Summary, bypass *bypassReport, command string) {
	hints := bypassHints(bypass)
	if untrusting(s) {
		who := "a program of the run"
		p, known := clientenv.ProgramOf(command)
		if known && !p.Wraps {
			who = console.Printable(filepath.Base(command)) + ", or a program that it started,"
		}
		hints[who+" does not trust heed's CA: "] = cmp.Or(setByRun().ReplaceAllString(cmp.Or(p.Trust, clientenv.OtherPrograms.Trust), ""), "`heed ca install`")
	}
	if len(hints) > 0 {
		printSorted(w, hints)
	}
}

// setByRun matches the variables at the beginning of a hint that the environment of the
// command has already.
var setByRun = memo.Expression(`^([A-Z_]+=BUNDLE ?)+(; )?`)

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
