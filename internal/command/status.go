package command

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"heed/internal/audit/counts"
	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/pace/fleet"
	"heed/proxy/limit"
)

// StatusCmd is `heed status`: prints the health of the running heed.
type StatusCmd struct {
	Quiet bool `short:"q" help:"Print nothing; only set the exit status."`
	Ready bool `help:"Exit with 0 whenever heed serves requests, as /readyz."`
	JSON  bool `name:"json" help:"Print the status as JSON."`
}

// Run prints the status of the running heed.
func (c *StatusCmd) Run(a *console.App) error {
	say := a.Stderr
	if c.Quiet {
		say = io.Discard
	}
	_, s, err := findRunning(say, "")
	if err != nil {
		return c.printNone(a, err)
	}
	unwell := append(s.NotReady(), s.Unwell()...)
	no := len(unwell) > 0
	if c.Ready {
		no = len(s.NotReady()) > 0
	}
	switch {
	case c.Quiet:
	case c.JSON:
		err = console.NewJSON(a.Stdout).Encode(struct {
			Well bool     `json:"well"`
			Why  []string `json:"why_not"`
			*control.Status
			Ready bool `json:"ready"` // as /readyz of the admin listener
		}{len(unwell) == 0, unwell, s, len(s.NotReady()) == 0})
	default:
		printStatus(a.Stdout, s, a.Now())
		for _, why := range s.NotReady() {
			fmt.Fprintln(a.Stdout, "not ready:", why)
		}
		for _, why := range s.Unwell() {
			fmt.Fprintln(a.Stdout, "not well:", why)
		}
	}
	if err == nil && no {
		return console.Exit(console.ExitNo)
	}
	return err
}

// printNone prints why there is no status, and returns ExitNo.
func (c *StatusCmd) printNone(a *console.App, why error) error {
	switch {
	case c.Quiet:
	case c.JSON:
		_ = console.NewJSON(a.Stdout).Encode(struct {
			Well bool     `json:"well"`
			Why  []string `json:"why_not"`
		}{false, []string{why.Error()}}) // the exit status is the error
	default:
		a.Complain(why)
	}
	return console.Exit(console.ExitNo)
}

// printStatus writes the status for a person.
func printStatus(w io.Writer, s *control.Status, now time.Time) {
	row := func(name, format string, values ...any) {
		fmt.Fprintf(w, "%-14s %s\n", name, fmt.Sprintf(format, values...))
	}
	kind := "started by hand"
	if s.Background {
		kind = "started by heed run"
	}
	row("heed", "%s, pid %d, %s, up %v", s.Version, s.PID, kind, now.Sub(s.Since).Round(time.Second))
	row("configuration", "%s (%.12s)", cmp.Or(s.ConfigFile, "built-in settings"), s.ConfigHash)
	if len(s.Listeners) > 0 {
		row("listens on", "%s", strings.Join(s.Listeners, ", "))
	}
	for _, l := range s.Redirected {
		if l.Trust != "" {
			row("asked at", "%s", l)
			continue
		}
		row("redirected to", "%s", l)
	}
	if len(s.Runs) > 0 {
		row("runs", "%d: %s", len(s.Runs), strings.Join(s.Runs, ", "))
	}
	row("mode", "%s", s.Mode)
	for i := range s.Breaks {
		row("only observed", "%s", s.Breaks[i].Text())
	}
	for i := range s.Exceptions {
		name := "allowed"
		if s.Exceptions[i].Refuse {
			name = "stopped"
		}
		row(name, "%s", s.Exceptions[i].Text())
	}
	row("profile", "%s", s.Profile)
	for _, text := range s.Unjudged {
		row("not seen", "%s", text)
	}
	printKeys(row, s)
	if s.Fleet != nil {
		row("fleet", "%s", fleetWords(s.Fleet, now))
	}
	row("open now", "%s", loadWords(&s.Load))
	if reached := reachedWords(s.Load.Reached); reached != "" {
		row("limits reached", "%s", reached)
	}
	if turns := turnsWords(&s.Turns); turns != "" {
		row("turns", "%s", turns)
	}
	printLost(row, s)
	row("last hour", "%s", shares(&s.Hour))
	row("last 5 minutes", "%s", shares(&s.Five))
	printTraffic(row, s, now)
	printBusiest(row, &s.Busiest, now)
	printRoom(row, &s.Room)
	printReach(row, &s.Reach, s.Troubles)
	for _, t := range s.Troubles {
		row("in trouble", "%s: robots.txt %s: %s", t.Origin, t.State, console.Quoted(t.Err))
	}
}

// printLost writes what has been lost since the start.
func printLost(row func(name, format string, values ...any), s *control.Status) {
	if s.Kept != nil && s.Kept.Unsaved > 0 {
		row("not saved", "%s since the start", policies(s.Kept.Unsaved))
	}
	if s.LogLost > 0 {
		row("not logged", "%s since the start", console.Plural(s.LogLost, "line"))
	}
	if s.Healings != nil {
		row("record", "%s", s.Healings.Text())
	}
	if s.Unrecorded > 0 {
		row("not recorded", "%s since the start", console.Plural(uint64(s.Unrecorded), "decision"))
	}
}

// printKeys writes the certificates and keys.
func printKeys(row func(name, format string, values ...any), s *control.Status) {
	row("CA", "%s, %d days left", s.CA.Path, s.CA.DaysLeft)
	for _, r := range s.CA.Beside {
		if r.Replaced {
			row("CA beside", "%s was replaced, and is in the bundles until %s", r.File, r.NotAfter.UTC().Format(time.DateOnly))
		} else {
			row("CA beside", "%s is to follow: `heed ca renew --now`, and a restart, once the clients trust it", r.File)
		}
	}
	for i := range s.Keys {
		row("signs", "%s", keyWords(&s.Keys[i]))
	}
}

// keyWords returns whose requests are signed, and with what.
func keyWords(k *control.KeyStatus) string {
	whose, end := "heed's own requests", "no end"
	if k.Client != "" {
		whose = "client " + console.Quoted(k.Client)
	}
	if !k.NotAfter.IsZero() {
		end = "until " + k.NotAfter.UTC().Format(time.DateOnly)
	}
	return fmt.Sprintf("%s as %s (key %s, %s)", whose, console.Quoted(k.Agent), k.Key, end)
}

func policies(n uint64) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}

// shares returns counts in words, with percentages.
func shares(c *counts.Counts) string {
	if c.Requests == 0 {
		return "no requests"
	}
	percent := func(n int64) string { return c.Share(uint64(n)) }
	text := console.Plural(c.Requests, "request") + ": " + c.Classes.Words(percent)
	if observed := c.WouldBe.OnlyWords(percent); observed != "" {
		text += "; only observed, would be: " + observed
	}
	if c.SiteRefused > 0 {
		text += "; " + c.Share(c.SiteRefused) + " refused by sites themselves"
	}
	return text + "; judged " + c.Coverage()
}

// loadWords returns the resources that clients use.
func loadWords(l *limit.Status) string {
	return fmt.Sprintf("%s of %s, %s, %s under way", console.Plural(uint64(l.Connections), "connection"),
		console.Plural(uint64(l.Clients), "client"), console.Plural(uint64(l.Tunnels), "tunnel"), console.Plural(uint64(l.Requests), "request"))
}

// reachedWords returns how often each limit was reached; empty when none was.
func reachedWords(reached map[string]uint64) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		words = append(words, fmt.Sprintf("%s %s", name, times(reached[name])))
	}
	return strings.Join(words, ", ")
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// fleetWords returns the state of the store and its past outages.
func fleetWords(h *fleet.Health, now time.Time) string {
	text, where := h.Hosts+", shared", ""
	switch {
	case h.Unreached && !h.Away:
		text = h.Hosts + ", not reached yet"
	case len(h.Nodes) > 0:
		text = fmt.Sprintf("%s, shared, but %s away for %v: %s", h.Hosts, nodes(h.Nodes), now.Sub(h.Since).Round(time.Second), console.Quoted(h.Why))
		where = " whose keys are there"
	case h.Away:
		text = fmt.Sprintf("%s, away for %v: %s", h.Hosts, now.Sub(h.Since).Round(time.Second), console.Quoted(h.Why))
	}
	switch {
	case h.Unreached && h.Away:
		text += "; no turns are given at sites" + where + " until it was reached once"
	case h.Heeds > 0 && h.Away:
		text += fmt.Sprintf("; every delay of a site%s is kept once for each of %s until it is back", where, console.Plural(uint64(h.Heeds), "heed"))
	case h.Heeds > 0 && !h.Unreached:
		text += "; turns at sites are taken together by " + console.Plural(uint64(h.Heeds), "heed")
	}
	if h.Outages > 0 {
		text += fmt.Sprintf("; found away %s, %s not answered", console.Plural(h.Outages, "time"), console.Plural(h.Missed, "question"))
	}
	return text
}

// nodes names nodes of a Cluster that are away, as the subject of a clause.
func nodes(all []string) string {
	if len(all) == 1 {
		return "its node " + all[0] + " is"
	}
	return "its nodes " + strings.Join(all, ", ") + " are"
}
