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

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/base/memo"
	"heed/internal/config/clientenv"
	"heed/internal/output/console"
	"heed/internal/sealed"
	"heed/rules"
)

// printSealHint names the sealed run, which holds what no variable does. probe returns why
// this machine cannot seal.
func printSealHint(w io.Writer, bypass *bypassReport, s *counts.Summary, probe func() error) {
	if slices.ContainsFunc(s.Unjudged, wrongClock) {
		fmt.Fprintln(w, "  set the client's clock: by it a certificate of heed is not valid now, and its requests are not judged")
		return
	}
	what := "holds it"
	switch {
	case s.Requests == 0 && !untrusting(s):
		what = "holds every program"
	case !bypass.suspects() && untrusting(s):
		what = "makes the libraries of the system trust it"
	case untrusting(s):
		what = "holds it, and makes the libraries of the system trust heed's CA"
	case !bypass.suspects():
		what = "leaves no other way out: this run was not sealed, and what bypasses the proxy variables is not judged"
	}
	switch err := probe(); {
	case err == nil:
		fmt.Fprintf(w, "  `heed run --sealed -- CMD` %s; works on this machine\n", what)
	case errors.Is(err, sealed.ErrUnsupported) && s.Requests > 0:
	case errors.Is(err, sealed.ErrUnsupported):
		fmt.Fprintln(w, "  a container or virtual machine whose only exit is heed holds every program (heed help containers)")
	case s.Requests > 0 && !bypass.suspects() && !untrusting(s): // it is no advice
	default:
		why, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprintf(w, "  `heed run --sealed -- CMD` %s; %s (heed doctor)\n", what, why)
	}
}

// printNoEnvHint names --no-env in a sealed run where a client began TLS with the proxy, or left
// it without having sent anything, as some do whose proxy support is broken, or where nothing
// came through.
func (r *run) printNoEnvHint(w io.Writer, s *counts.Summary) {
	broken := slices.ContainsFunc(s.Unjudged, func(c counts.ReasonCount) bool {
		return c.Reason == rules.ReasonMalformed && strings.HasPrefix(c.Detail, audit.TLSForHTTP)
	})
	switch {
	case r.cmd.NoEnv:
	case broken:
		fmt.Fprintln(w, "  a program began TLS with the proxy: its proxy support is broken; `heed run --sealed --no-env -- CMD` sets no variables, and holds it all the same")
	case s.Silent > 0:
		fmt.Fprintf(w, "  %s to the proxy ended before anything was sent: the proxy support of a program may be broken, as that of WhatWeb for https; `heed run --sealed --no-env -- CMD` sets no variables, and holds it all the same\n", console.Plural(s.Silent, "connection"))
	case s.Requests == 0:
		fmt.Fprintln(w, "  if it should have sent some, its proxy support may be broken: `heed run --sealed --no-env -- CMD` sets no variables, and holds it all the same")
	}
}

// untrusting reports whether a client rejected heed's CA and was not judged later.
func untrusting(s *counts.Summary) bool {
	return slices.ContainsFunc(s.Unjudged, func(c counts.ReasonCount) bool {
		return c.Reason == rules.ReasonUntrusted && c.Count > c.Before && !wrongClock(c)
	})
}

// wrongClock reports whether a client rejected the time of a certificate of heed.
func wrongClock(c counts.ReasonCount) bool {
	return c.Reason == rules.ReasonUntrusted && c.Detail == audit.WrongClock
}

// printHints reports that nothing was judged and prints what makes the command use heed:
// the sealed run, then the settings of the programs that bypassed it. Where connections are
// watched and none was seen, that is the setting of the command, if it is known, except for
// a command that has others send requests. Else it prints the setting of the command, with
// that of the program that it runs, and for one that is not known those of the usual kinds.
func printHints(w io.Writer, bypass *bypassReport, s *counts.Summary, command []string, probe func() error) {
	own, known := clientenv.ProgramOf(command[0])
	fmt.Fprintf(w, "heed: no request came through: if %s, or a program that it started, sent any, nothing of it was judged\n", console.Printable(filepath.Base(command[0])))
	printSealHint(w, bypass, s, probe)
	if hints := bypassHints(bypass); len(hints) > 0 {
		printSorted(w, hints)
		return
	}
	if bypass != nil && bypass.Watched && bypass.Connections == 0 && !own.Wraps {
		advice := "heed help clients"
		if known {
			advice = own.Proxy
		}
		fmt.Fprintf(w, "  heed saw no connection of it, but can miss one of less than 0.2 s; if it should have opened one: %s\n", advice)
		return
	}
	fmt.Fprintln(w, "If it should have sent requests, they bypassed the proxy:")
	if known {
		fmt.Fprintf(w, "  %s: %s\n", own.Kind, own.Proxy)
	}
	inner := clientenv.Program{}
	for _, word := range command[1:] {
		if p, found := clientenv.ProgramOf(word); own.Wraps && found && inner.Kind == "" && !p.Wraps {
			inner = p
		}
	}
	for _, p := range clientenv.Programs() {
		if p.Usual && !known || p.Kind == inner.Kind {
			fmt.Fprintf(w, "  %s: %s\n", p.Kind, p.Proxy)
		}
	}
	fmt.Fprintf(w, "  %s: %s\n", clientenv.OtherPrograms().Kind, clientenv.OtherPrograms().Proxy)
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
		hints[who+" does not trust heed's CA: "] = cmp.Or(setByRun().ReplaceAllString(cmp.Or(p.Trust, clientenv.OtherPrograms().Trust), ""), "`heed ca install`")
	}
	if len(hints) > 0 {
		printSorted(w, hints)
	}
}

// setByRun matches the variables at the beginning of a hint that the environment of the
// command has already.
var setByRun = memo.Expression(`^([A-Z_]+=BUNDLE ?)+(; )?`)

// bypassHints returns the settings of the programs that bypassed heed, or that ignore the
// proxy variables.
func bypassHints(bypass *bypassReport) map[string]string {
	hints := map[string]string{}
	if bypass == nil {
		return hints
	}
	for _, to := range bypass.To {
		p, _ := clientenv.ProgramOf(to.Command)
		hints[console.Quoted(to.Command)+" bypassed heed: "] = p.Proxy
	}
	for _, ran := range bypass.Ignoring {
		name := console.Quoted(filepath.Base(ran.Program))
		if p, _ := clientenv.ProgramOf(ran.Program); hints[name+" bypassed heed: "] == "" {
			hints[name+": "] = p.Proxy
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
