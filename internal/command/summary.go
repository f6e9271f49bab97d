package command

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"

	"heed/internal/audit"
	"heed/rules"
)

// maxSummaryLines bounds each part of the summary; the rest is counted in one line.
const maxSummaryLines = 12

// maxQuoted is how many characters of one text from a site are printed.
const maxQuoted = 120

// runReport is the summary of `heed run --json`.
type runReport struct {
	Command []string `json:"command"`
	Exit    int      `json:"exit"`
	Remarks []string `json:"remarks"`
	// Complete is false when heed ended before the command did: then nothing
	// was counted.
	Complete  bool       `json:"complete"`
	WentRound *wentRound `json:"went_round"`
	audit.Summary
}

// report prints what became of the run's requests.
func (r *run) report(status int, s *audit.Summary, remarks []string) {
	switch {
	case r.cmd.JSON:
		report := runReport{Command: r.args, Exit: status, Remarks: remarks, Complete: s != nil, WentRound: r.round}
		if remarks == nil {
			report.Remarks = []string{}
		}
		if s != nil {
			report.Summary = *s
		}
		_ = newJSON(r.app.Stderr).Encode(report) // no other place to say that it failed
	case r.cmd.Quiet:
	case s == nil:
		fmt.Fprintln(r.app.Stderr, "heed: the heed that judged this run ended before it; requests after that could not leave, and there is no summary")
	case s.Requests == 0:
		r.round.print(r.app.Stderr)
		printCures(r.app.Stderr, r.args[0])
	default:
		printSummary(r.app.Stderr, s)
		printPatience(r.app.Stderr, s, r.args[0])
		r.round.print(r.app.Stderr)
	}
}

// printSummary writes s for a person.
func printSummary(w io.Writer, s *audit.Summary) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	fmt.Fprintf(out, "heed: %s to %s: %d allowed, %d refused", plural(s.Requests, "request"), hostsOf(s), s.Allowed, s.Refused)
	if s.WouldRefuse > 0 {
		fmt.Fprintf(out, ", %d let through that enforcing would refuse", s.WouldRefuse)
	}
	if s.Counts.NotJudged > 0 {
		fmt.Fprintf(out, ", %d not judged", s.Counts.NotJudged)
	}
	fmt.Fprintln(out)
	if len(s.Hosts) > 1 {
		part(out, s.Hosts, func(h audit.HostCount) string {
			return fmt.Sprintf("  %s: %s, %d allowed, %d refused", quoted(h.Host), plural(h.Requests, "request"), h.Allowed, h.Refused)
		})
	}
	if s.ByPath == s.Requests {
		fmt.Fprintln(out, "  judged by path: all of them")
	} else {
		fmt.Fprintf(out, "  judged %s\n", coverage(&s.Counts))
	}
	part(out, s.Refusals, func(c audit.RuleCount) string {
		verb := "refused"
		if c.Observed {
			verb = "would refuse"
		}
		return fmt.Sprintf("  %s %d x %s: %s", verb, c.Count, quoted(c.Host), because(c))
	})
	part(out, s.Sites, func(c audit.SiteCount) string {
		if c.Status == 0 {
			return fmt.Sprintf("  refused by sites themselves: %d x %s", c.Count, quoted(c.Host))
		}
		return fmt.Sprintf("  refused by the site itself: %d x %s with status %d", c.Count, quoted(c.Host), c.Status)
	})
	part(out, s.Pages, func(c audit.PageCount) string {
		return fmt.Sprintf("  page %s: %d of %s refused%s", pageName(c.Page), c.Refused, plural(c.Parts, "part"), andBySite(c.SiteRefused))
	})
	part(out, s.Unjudged, func(c audit.ReasonCount) string {
		return fmt.Sprintf("  not judged %d x %s: %s", c.Count, quoted(c.Host), explain(c.Reason))
	})
	if s.Waited.Requests > 0 {
		fmt.Fprintf(out, "  waited: %s, %v in all, %v at most\n", plural(s.Waited.Requests, "request"),
			s.Waited.Total.Round(time.Millisecond), s.Waited.Longest.Round(time.Millisecond))
	}
	part(out, s.Paced, pacedWords)
}

// part prints a line per element, up to a bound, and how many more there are.
func part[T any](w io.Writer, list []T, line func(T) string) {
	for i, x := range list {
		if i == maxSummaryLines {
			fmt.Fprintf(w, "  ... and %d more; --json prints them all\n", len(list)-i)
			return
		}
		fmt.Fprintln(w, line(x))
	}
}

// coverage says how many requests were judged, and by what was seen of them.
func coverage(c *audit.Counts) string {
	return fmt.Sprintf("by path %s, by host only %s, not at all %s", share(c.ByPath, c), share(c.ByHost, c), share(c.NotJudged, c))
}

// share is a number of requests with its percentage.
func share(n uint64, c *audit.Counts) string {
	return fmt.Sprintf("%d (%.1f%%)", n, 100*float64(n)/float64(max(1, c.Requests)))
}

func pageName(page string) string {
	if page == "" {
		return "(unnamed)"
	}
	return quoted(page)
}

// andBySite is what a page's line says of refusals that are not heed's.
func andBySite(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d by the site itself", n)
}

// because says which rule refused, or which reason when none did.
func because(c audit.RuleCount) string {
	if c.Host == audit.Other {
		return "by various rules"
	}
	if c.Line == 0 {
		return explain(c.Reason)
	}
	return fmt.Sprintf("robots.txt line %d %s (group %s)", c.Line, quoted(c.Rule), quoted(c.Group))
}

// explain puts a reason into words and names it, for the log.
func explain(reason rules.Reason) string {
	text, ok := explanations[reason]
	if !ok {
		return string(reason)
	}
	return text + " [" + string(reason) + "]"
}

var explanations = map[rules.Reason]string{
	rules.ReasonRobotsUnreachable: "its robots.txt could not be had, so nothing may be fetched for now",
	rules.ReasonOriginUnreachable: "the site cannot be reached",
	rules.ReasonDestination:       "heed may not reach that address; see [access] in proxy.toml",
	rules.ReasonPaced:             "its turn was too far off",
	rules.ReasonLeft:              "the client left before the site's rules were here, or before its turn came",
	rules.ReasonLimit:             "more at a time than [limits] in proxy.toml allows",
	rules.ReasonOverride:          "an exception that the operator wrote down",
	rules.ReasonPart:              "a part of a page that may be read",
	rules.ReasonNotACrawl:         "a service that is called and not crawled",
	rules.ReasonExempt:            "people, who are not judged",
	rules.ReasonLate:              "only observed, and its robots.txt did not come in time",
	rules.ReasonUnnamed:           "it sends no User-Agent, and has to",
	rules.ReasonHostMismatch:      "the request names two different hosts",
	rules.ReasonMalformed:         "no valid HTTP request",
	rules.ReasonLoop:              "the request came through this heed already",
	rules.ReasonHostOnly:          "a tunnel, judged by its host alone",
	rules.ReasonTunnel:            "the settings let its tunnels pass unjudged",
	rules.ReasonAccess:            "the settings refuse it",
	rules.ReasonNotHTTP:           "bytes in a tunnel that are neither TLS nor HTTP",
	rules.ReasonUntrusted:         "the command does not trust heed's CA; see the Clients table of the README for its flag",
	rules.ReasonHandshake:         "the TLS handshake with the command came to no end",
	rules.ReasonRecord:            "the decision could not be recorded",
	rules.ReasonInternal:          "a fault in heed",
}

func hostsOf(s *audit.Summary) string {
	if len(s.Hosts) == 1 {
		return quoted(s.Hosts[0].Host)
	}
	return plural(uint64(len(s.Hosts)), "host")
}

func plural(n uint64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.FormatUint(n, 10) + " " + word + "s"
}

// quoted is text from a site or a client, fit for a terminal: bounded, and
// with what a terminal would obey written as escapes.
func quoted(s string) string { return atMost(s, maxQuoted) }

// atMost returns s printable, and not more of it than most characters.
func atMost(s string, most int) string {
	s = printable(s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return s
}
