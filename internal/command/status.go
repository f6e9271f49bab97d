package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"heed/internal/audit"
	"heed/proxy"
)

// StatusCmd is `heed status`: is it well?
type StatusCmd struct {
	Quiet bool `short:"q" help:"Print nothing; the exit status tells."`
	JSON  bool `name:"json" help:"Print the status as JSON."`
}

// Help is what `heed status --help` prints at the end.
func (StatusCmd) Help() string {
	return `Exit status: 0 when heed is running and well; 1 when it is not running, is about to end, its log or its record cannot be written, its CA has 30 days left or less, its fleet's store is away, policies cannot be saved, or the robots.txt of a site asked for in the last hour cannot be had or is an old copy.

  heed status --quiet || echo "look after heed"`
}

// Run asks the running heed how it is.
func (c *StatusCmd) Run(a *App) error {
	state, err := StateDir()
	if err != nil {
		return err
	}
	s, err := readStatus(context.Background(), state)
	if err != nil {
		if errors.Is(err, errNotRunning) {
			err = fmt.Errorf("heed is not running in %s\nStart it with `heed serve`", state)
		}
		return c.sayNone(a, err)
	}
	ills := s.ills()
	switch {
	case c.Quiet:
	case c.JSON:
		err = newJSON(a.Stdout).Encode(struct {
			Well bool     `json:"well"`
			Why  []string `json:"why_not"`
			*Status
		}{len(ills) == 0, ills, s})
	default:
		s.print(a.Stdout, a.Now())
		for _, ill := range ills {
			fmt.Fprintln(a.Stdout, "not well:", ill)
		}
	}
	if err == nil && len(ills) > 0 {
		return Exit(exitNo)
	}
	return err
}

// sayNone says why there is no status; that is not well.
func (c *StatusCmd) sayNone(a *App, why error) error {
	switch {
	case c.Quiet:
	case c.JSON:
		_ = newJSON(a.Stdout).Encode(struct {
			Well bool     `json:"well"`
			Why  []string `json:"why_not"`
		}{false, []string{why.Error()}}) // the exit status says it too
	default:
		a.complain(why)
	}
	return Exit(exitNo)
}

// ills are the reasons why not all is well; empty when it is.
func (s *Status) ills() []string {
	ills := []string{}
	if s.Ending {
		ills = append(ills, "heed is about to end")
	}
	if s.Log != "" {
		ills = append(ills, "decisions cannot be logged, so requests are refused: "+quoted(s.Log))
	}
	if s.Record != "" {
		ills = append(ills, "decisions cannot be recorded: "+quoted(s.Record))
	}
	if s.CA.DaysLeft <= caRemarkDays {
		ills = append(ills, "the CA certificate"+daysLeft(s.CA.DaysLeft))
	}
	if n := len(s.Troubles); n > 0 {
		ills = append(ills, "the robots.txt of "+plural(uint64(n), "site")+" cannot be had")
	}
	if s.Kept != nil && s.Kept.Why != "" {
		ills = append(ills, "policies cannot be saved for a restart: "+quoted(s.Kept.Why))
	}
	if s.Fleet != nil && s.Fleet.Away {
		ills = append(ills, "the fleet's store is away: "+quoted(s.Fleet.Why))
	}
	return ills
}

// print writes the status for a person.
func (s *Status) print(w io.Writer, now time.Time) {
	row := func(name, format string, values ...any) {
		fmt.Fprintf(w, "%-14s %s\n", name, fmt.Sprintf(format, values...))
	}
	kind := "started by hand"
	if s.Background {
		kind = "started by heed run"
	}
	row("heed", "%s, pid %d, %s, up %v", s.Version, s.PID, kind, now.Sub(s.Since).Round(time.Second))
	file := s.ConfigFile
	if file == "" {
		file = "built-in settings"
	}
	row("configuration", "%s (%.12s)", file, s.ConfigHash)
	if len(s.Listeners) > 0 {
		row("listens on", "%s", strings.Join(s.Listeners, ", "))
	}
	if len(s.Runs) > 0 {
		row("runs", "%d: %s", len(s.Runs), strings.Join(s.Runs, ", "))
	}
	row("mode", "%s", s.Mode)
	for i := range s.Breaks {
		row("only observed", "%s", s.Breaks[i].words())
	}
	for i := range s.Exceptions {
		name := "allowed"
		if s.Exceptions[i].Refuse {
			name = "stopped"
		}
		row(name, "%s", s.Exceptions[i].words())
	}
	row("profile", "%s", s.Profile)
	for _, text := range s.Unjudged {
		row("not seen", "%s", text)
	}
	row("CA", "%s, %d days left", s.CA.Path, s.CA.DaysLeft)
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
	if s.Kept != nil && s.Kept.Unsaved > 0 {
		row("not saved", "%s since the start", policies(s.Kept.Unsaved))
	}
	if s.Unrecorded > 0 {
		row("not recorded", "%s since the start", plural(uint64(s.Unrecorded), "decision"))
	}
	row("last hour", "%s", shares(&s.Hour))
	for _, t := range s.Troubles {
		row("in trouble", "%s: robots.txt %s: %s", t.Origin, t.State, quoted(t.Err))
	}
}

func policies(n uint64) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}

// shares puts counts into words, with percentages.
func shares(c *audit.Counts) string {
	if c.Requests == 0 {
		return "no requests"
	}
	percent := func(n uint64) string { return share(n, c) }
	text := fmt.Sprintf("%s: %s allowed, %s refused, %s not judged", plural(c.Requests, "request"),
		percent(c.Allowed), percent(c.Refused), percent(c.NotJudged))
	if c.WouldRefuse > 0 {
		text += ", " + percent(c.WouldRefuse) + " would be refused"
	}
	if c.SiteRefused > 0 {
		text += ", " + percent(c.SiteRefused) + " refused by sites themselves"
	}
	return text + "; judged " + coverage(c)
}

// loadWords says what clients hold.
func loadWords(l *proxy.LoadStatus) string {
	return fmt.Sprintf("%s of %s, %s, %s under way", plural(uint64(l.Connections), "connection"),
		plural(uint64(l.Clients), "client"), plural(uint64(l.Tunnels), "tunnel"), plural(uint64(l.Requests), "request"))
}

// reachedWords says how often each limit was reached; empty when none was.
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
