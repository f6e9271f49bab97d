package run

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/counts"
	"heed/internal/control"
	usage "heed/internal/judge/signal"
	"heed/internal/output/console"
	"heed/internal/sealed"
	"heed/rules"
)

// maxSummaryLines is the greatest number of lines in each part of the summary; the rest is
// counted in one line.
const maxSummaryLines = 12

// runReport is the summary of `heed run --json`.
type runReport struct {
	Command []string `json:"command"`
	Exit    int      `json:"exit"`
	Remarks []string `json:"remarks"`
	// Complete is false when heed ended before the command; then all counts are 0.
	Complete bool          `json:"complete"`
	Bypass   *bypassReport `json:"went_round"`
	Sealed   *sealedReport `json:"sealed,omitempty"` // nil: the run was not sealed
	counts.Summary
}

// report prints the summary of the run.
func (r *run) report(status int, s *counts.Summary, remarks []string) {
	switch {
	case r.cmd.JSON:
		report := runReport{Command: r.args, Exit: status, Remarks: remarks, Complete: s != nil, Bypass: r.bypass, Sealed: r.sealed}
		if remarks == nil {
			report.Remarks = []string{}
		}
		if s != nil {
			report.Summary = *s
		}
		_ = console.NewJSON(r.app.Stderr).Encode(report) // there is no other place for the error
	case r.cmd.Quiet:
	case s == nil:
		fmt.Fprintln(r.app.Stderr, "heed: the heed that judged this run ended before it: later requests failed, and there is no summary")
	default:
		r.printReport(r.app.Stderr, s)
	}
}

// printReport writes the summary for a person. A sealed run has no bypass.
func (r *run) printReport(w io.Writer, s *counts.Summary) {
	if s.Requests > 0 {
		printSummary(w, s)
		printSigned(w, s, r.join.Sign != nil)
		printTimeoutHints(w, s, r.args[0])
	}
	r.bypass.print(w)
	switch {
	case s.Requests == 0 && r.sealed != nil:
		fmt.Fprintf(w, "heed: no request came through: %s sent none\n", console.Printable(filepath.Base(r.args[0])))
	case s.Requests == 0:
		printHints(w, r.bypass, s, r.args, sealed.Probe)
	default:
		printMixedHints(w, s, r.bypass, r.args[0])
		if r.sealed == nil {
			printSealHint(w, r.bypass, s, sealed.Probe)
		}
	}
	if r.sealed != nil {
		r.printNoEnvHint(w, s)
		fmt.Fprintln(w, r.sealed.words())
	}
}

// maxBypassed is the greatest number of destinations in a bypassReport.
const maxBypassed = 5

// bypassReport counts the connections of a run's processes that bypassed heed. It is
// based on samples: connections that are shorter than sampleLongest can be missed.
type bypassReport struct {
	// Watched is false on systems that do not list the connections of processes.
	Watched     bool       `json:"watched"`
	Connections uint64     `json:"connections"`
	To          []bypassed `json:"to"` // most connections first, at most maxBypassed
	// Ignoring are the programs of the run that ignore the proxy variables, whether a
	// connection of theirs was seen or not.
	Ignoring []ignoring `json:"ignoring"`
}

// ignoring is a program that ignores the proxy variables.
type ignoring struct {
	Program string `json:"program"`           // its path
	Version string `json:"version,omitempty"` // where that matters
}

// suspects reports whether something of the run bypassed heed, or probably did. Nil is of a
// run that had no other way.
func (r *bypassReport) suspects() bool {
	return r != nil && (r.Connections > 0 || len(r.Ignoring) > 0)
}

// bypassed is one destination of one command.
type bypassed struct {
	Command     string `json:"command"`
	To          string `json:"to"`       // address:port
	Protocol    string `json:"protocol"` // tcp or udp
	Connections uint64 `json:"connections"`
}

// print writes the lines of the summary; nothing where there is nothing to report.
func (r *bypassReport) print(w io.Writer) {
	if r == nil {
		return
	}
	for _, p := range r.Ignoring {
		fmt.Fprintf(w, "heed: %s ran, which ignores the proxy variables: what it requested was not judged, unless the program sets the proxy itself\n", p.words())
	}
	if r.Connections == 0 {
		return
	}
	var named []string
	var count uint64
	for _, to := range r.To {
		text := console.Quoted(to.Command) + " to " + to.To
		if to.Protocol == "udp" {
			text += " by UDP"
		}
		if to.Connections > 1 {
			text += fmt.Sprintf(" (%d)", to.Connections)
		}
		named, count = append(named, text), count+to.Connections
	}
	if more := r.Connections - count; more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	fmt.Fprintf(w, "heed: at least %s bypassed heed (not judged): %s\n", console.Plural(r.Connections, "connection"), strings.Join(named, ", "))
}

// ended returns r for the record of the run.
func (r *bypassReport) ended() *control.RunEnd {
	end := &control.RunEnd{}
	if r == nil {
		return end
	}
	rest := r.Connections
	for _, to := range r.To {
		end.Bypassed = append(end.Bypassed, control.Bypassed{Program: to.Command, Count: int64(to.Connections), Detail: "to " + to.To + map[bool]string{true: " by UDP"}[to.Protocol == "udp"]})
		rest -= to.Connections
	}
	if rest > 0 {
		end.Bypassed = append(end.Bypassed, control.Bypassed{Count: int64(rest), Detail: "to other addresses"})
	}
	for _, p := range r.Ignoring {
		end.Bypassed = append(end.Bypassed, control.Bypassed{Program: filepath.Base(p.Program), Detail: strings.TrimSuffix("ignores the proxy variables; version "+p.Version, "; version ")})
	}
	return end
}

// words returns the name and version of a program.
func (p *ignoring) words() string {
	return strings.TrimSpace(console.Quoted(filepath.Base(p.Program)) + " " + p.Version)
}

// hostName returns a host for a person. A request that is not valid HTTP has none.
func hostName(host string) string { return cmp.Or(console.Quoted(host), "(no host)") }

// printSigned writes how many requests were signed, when some were or wanted is true.
func printSigned(w io.Writer, s *counts.Summary, wanted bool) {
	if s.Allowed == 0 || !wanted && s.Signed == 0 {
		return
	}
	why := ""
	if s.Signed < s.Allowed {
		why = "; over http only those to a host with sign_http (heed help identity)"
	}
	fmt.Fprintf(w, "  signed: %d of %s%s\n", s.Signed, console.Plural(s.Allowed, "allowed request"), why)
}

// printSummary writes s for a person.
func printSummary(w io.Writer, s *counts.Summary) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	fmt.Fprintf(out, "heed: %s came through, to %s: %s\n", console.Plural(s.Requests, "request"), hostsOf(s), s.Classes.Words(plain))
	if observed := s.WouldBe.OnlyWords(plain); observed != "" {
		fmt.Fprintf(out, "  only observed; in enforce mode they would be: %s\n", observed)
	}
	if len(s.Hosts) > 1 {
		part(out, s.Hosts, func(h counts.HostCount) string {
			return fmt.Sprintf("  %s: %s, %s", hostName(h.Host), console.Plural(h.Requests, "request"), h.Classes.Words(plain))
		})
	}
	if s.ByPath == s.Requests {
		fmt.Fprintln(out, "  judged by path: all of the requests that came through heed")
	} else {
		fmt.Fprintf(out, "  judged, of the requests that came through heed: %s\n", s.Coverage())
	}
	part(out, s.Refusals, func(c counts.RuleCount) string {
		class := cmp.Or(c.Class, "not allowed")
		if c.Observed {
			class = "would be " + class
		}
		return fmt.Sprintf("  %s %d x %s: %s", class, c.Count, hostName(c.Host), because(c))
	})
	part(out, s.Failed, func(c counts.SiteCount) string {
		return fmt.Sprintf("  failed %d x %s: allowed, and answered by heed with an error", c.Count, hostName(c.Host)) + withStatus(c.Status)
	})
	part(out, s.Sites, func(c counts.SiteCount) string {
		if c.Status == 0 {
			return fmt.Sprintf("  refused by sites themselves: %d x %s", c.Count, hostName(c.Host))
		}
		return fmt.Sprintf("  refused by the site itself: %d x %s with status %d", c.Count, hostName(c.Host), c.Status)
	})
	part(out, s.Answers, func(c counts.AnswerCount) string {
		return fmt.Sprintf("  answered by the site: %d x %s: %s", c.Count, hostName(c.Host), answerWords(c.Answer))
	})
	part(out, s.Pages, func(c audit.PageCount) string {
		return fmt.Sprintf("  page %s: %d of %s refused%s", cmp.Or(console.Quoted(c.Page), "(unnamed)"), c.Refused, console.Plural(c.Parts, "part"), andBySite(c.SiteRefused))
	})
	part(out, s.Unjudged, func(c counts.ReasonCount) string {
		if c.Host == audit.Other {
			return fmt.Sprintf("  not judged %d x %s: for various reasons", c.Count, c.Host)
		}
		text := fmt.Sprintf("  %s %d x %s: %s", cmp.Or(c.Class, "not judged"), c.Count, hostName(c.Host), console.ReasonText(c.Reason))
		switch {
		case wrongClock(c):
			return fmt.Sprintf("  %s %d x %s: %s", c.Class, c.Count, hostName(c.Host), c.Detail)
		case c.Detail != "":
			text += ": " + console.Printable(c.Detail)
		}
		return text
	})
	if s.Waited.Requests > 0 {
		fmt.Fprintf(out, "  waited: %s, %v in all, %v at most\n", console.Plural(s.Waited.Requests, "request"),
			s.Waited.Total.Round(time.Millisecond), s.Waited.Longest.Round(time.Millisecond))
	}
	part(out, s.Paced, pacedWords)
}

// answerWords returns a kind of a site's answers with what it means.
func answerWords(kind string) string {
	if kind == "" {
		return "in various ways"
	}
	return kind + ": " + usage.SiteAnswer(kind).Words()
}

// part prints a line per element, up to maxSummaryLines, and the number of the others.
func part[T any](w io.Writer, list []T, line func(T) string) {
	for i, x := range list {
		if i == maxSummaryLines {
			fmt.Fprintf(w, "  ... and %d more; --json prints them all\n", len(list)-i)
			return
		}
		fmt.Fprintln(w, line(x))
	}
}

// andBySite returns the part of a page's line about refusals by the site; empty for 0.
func andBySite(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d by the site itself", n)
}

// because returns the rule that refused, or the reason when no rule did.
func because(c counts.RuleCount) string {
	if c.Host == audit.Other {
		return "for various reasons"
	}
	switch {
	case c.Reason == rules.ReasonSignal || c.Reason == rules.ReasonLicence:
		return console.ReasonText(c.Reason) + ": " + console.Quoted(c.Rule)
	case c.Line == 0:
		return console.ReasonText(c.Reason)
	}
	return fmt.Sprintf("robots.txt line %d %s (group %s)", c.Line, console.Quoted(c.Rule), console.Quoted(c.Group))
}

// withStatus returns the part of a line about heed's status; empty for 0.
func withStatus(status int) string {
	if status == 0 {
		return ""
	}
	return fmt.Sprintf(" (status %d)", status)
}

// plain returns a number without any separators.
func plain(n int64) string { return strconv.FormatInt(n, 10) }

func hostsOf(s *counts.Summary) string {
	if len(s.Hosts) == 1 {
		return hostName(s.Hosts[0].Host)
	}
	return console.Plural(uint64(len(s.Hosts)), "host")
}

// timeoutHints are the timeout settings of kinds of clients, by the prefix of the command's name.
// They are printed when a client closed requests before their turn.
var timeoutHints = []struct{ command, setting string }{
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

// pacedWords returns the line about pacing at one host.
func pacedWords(c counts.PaceCount) string {
	text := fmt.Sprintf("  turns at %s: %s waited for %v in all, %v at most", hostName(c.Host), console.Plural(c.Requests, "request"),
		c.Total.Round(time.Millisecond), c.Longest.Round(time.Millisecond))
	if c.Refused > 0 {
		text += fmt.Sprintf("; refused with a Retry-After: %d", c.Refused)
	}
	if c.Left > 0 {
		text += fmt.Sprintf("; left before their turn: %d, up to %v too early", c.Left, c.Owed.Round(time.Second))
	}
	return text
}

// printTimeoutHints prints which timeout to raise when clients closed requests before
// their turn, and which setting when requests were refused with 429.
func printTimeoutHints(w io.Writer, s *counts.Summary, command string) {
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
