package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/pace"
)

// PaceCmd is `heed pace`: lists the sites where requests wait or that are paused, and ends
// pauses.
type PaceCmd struct {
	List    PaceListCmd    `cmd:"" help:"List the sites where requests wait or are paused."`
	Release PaceReleaseCmd `cmd:"" help:"End the pauses of a host."`
}

// PaceListCmd is `heed pace list`.
type PaceListCmd struct {
	JSON bool `name:"json" help:"Print one JSON object per line."`
}

// Run asks the running heed.
func (c *PaceListCmd) Run(a *console.App) error {
	client, err := runningHeed(a, "")
	if err != nil {
		return err
	}
	list, err := control.Grant[[]pace.SiteStatus](client, http.MethodGet, "/pace", nil)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(a.Stdout, list)
	}
	if len(list) == 0 {
		fmt.Fprintln(a.Stderr, "no requests wait and no site is paused")
		return nil
	}
	if err := printPace(a.Stdout, list); err != nil {
		return err
	}
	return printWaiters(a.Stdout, list)
}

// printPace writes one row per group, and one for a site that is only paused.
func printPace(w io.Writer, list []pace.SiteStatus) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "SITE\tGROUP\tDELAY\tWAITING\tNEXT\tHELD")
	for _, s := range list {
		pause := "-"
		switch {
		case s.Pause > 0 && s.Asked:
			pause = "for " + shown(s.Pause) + ", as it asked"
		case s.Pause > 0:
			pause = "for " + shown(s.Pause) + ", since it fails"
		}
		if len(s.Lanes) == 0 {
			fmt.Fprintf(out, "%s\t-\t-\t%d\t-\t%s\n", console.Quoted(s.Place()), s.Waiting, pause)
		}
		for _, l := range s.Lanes {
			group := cmp.Or(console.Quoted(l.Group), "(all)")
			fmt.Fprintf(out, "%s\t%s\t%s\t%d\tin %s\t%s\n", console.Quoted(s.Place()), group, shown(l.Delay), l.Waiting, shown(l.Next), pause)
		}
	}
	return out.Flush()
}

// maxWaiters bounds the waiting requests that are printed for a person.
const maxWaiters = 100

// printWaiters writes one row per request that waits, in the order of their turns at each
// site.
func printWaiters(w io.Writer, list []pace.SiteStatus) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	printed, waiting := 0, 0
	for _, s := range list {
		waiting += s.Waiting
		for _, k := range s.Waiters[:min(len(s.Waiters), maxWaiters-printed)] {
			if printed++; printed == 1 {
				fmt.Fprintln(out, "\nSITE\tCLIENT\tREQUEST\tWAITS SINCE\tSTARTS")
			}
			client := console.Quoted(k.Who.String())
			if k.Run {
				client += " of the run at " + k.Listener
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s (%s)\tin %s\n", console.Quoted(s.Place()), client, console.Quoted(k.Request),
				k.Since.Local().Format(time.TimeOnly), shown(k.Waited), shown(k.Next))
		}
	}
	if err := out.Flush(); err != nil || printed == waiting {
		return err
	}
	_, err := fmt.Fprintf(w, "and %s\n", console.Plural(uint64(waiting-printed), "further request"))
	return err
}

// shown returns a duration rounded for people.
func shown(d time.Duration) string {
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	if d > time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// PaceReleaseCmd is `heed pace release`.
type PaceReleaseCmd struct {
	Host string `arg:"" help:"A host, host:port, or origin: example.org, https://example.org."`
	JSON bool   `name:"json" help:"Print the origins as a JSON list."`
}

// Run asks the running heed.
func (c *PaceReleaseCmd) Run(a *console.App) error {
	if strings.TrimSpace(c.Host) == "" {
		return errors.New("which host?\nWrite: heed pace release example.org")
	}
	client, err := runningHeed(a, "")
	if err != nil {
		return err
	}
	released, err := control.Grant[[]string](client, http.MethodDelete, "/pace?of="+url.QueryEscape(c.Host), nil)
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		err = console.NewJSON(a.Stdout).Encode(released)
	case len(released) == 0:
		fmt.Fprintf(a.Stderr, "nothing holds %s; see `heed pace list`\n", console.Quoted(c.Host))
	}
	for _, origin := range released {
		if !c.JSON {
			fmt.Fprintf(a.Stdout, "released: %s\n", console.Quoted(origin))
		}
	}
	if err == nil && len(released) == 0 {
		return console.Exit(console.ExitNo)
	}
	return err
}

// turnsWords returns the counts of turns; empty when there were none.
func turnsWords(c *pace.Counts) string {
	if c.Turns+c.Refused+c.Left+c.Holds == 0 {
		return ""
	}
	text := fmt.Sprintf("%d given, %d waited %s in all, %d refused with a Retry-After, %d left before theirs came, %d waiting now",
		c.Turns, c.Waits, shown(c.Waited), c.Refused, c.Left, c.Waiting)
	if c.Holds > 0 {
		text += fmt.Sprintf("; %s paused a site", console.Plural(c.Holds, "answer"))
	}
	return text
}
