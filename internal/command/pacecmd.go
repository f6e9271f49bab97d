package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"heed/internal/pace"
)

// PaceCmd is `heed pace`: who waits where.
type PaceCmd struct {
	List    PaceListCmd    `cmd:"" help:"List the sites at which requests take turns, or which are held."`
	Release PaceReleaseCmd `cmd:"" help:"End what holds a host: pauses that it asked for, or brought about by failing."`
}

// PaceListCmd is `heed pace list`.
type PaceListCmd struct {
	JSON bool `name:"json" help:"Print one JSON object per line."`
}

// Help says what the columns are.
func (PaceListCmd) Help() string {
	return `A row for each group of a robots.txt that asks for a delay: the delay that is kept,
how many requests wait for their turn, and when the next may start. A site that asked
everybody to wait (Retry-After), or fails, is held. What is not listed waits for nothing.

  heed pace list
  heed pace release example.org`
}

// Run asks the running heed.
func (c *PaceListCmd) Run(a *App) error {
	client, err := askable()
	if err != nil {
		return err
	}
	var list []pace.SiteStatus
	if err := client.grant(context.Background(), http.MethodGet, "/pace", nil, &list); err != nil {
		return err
	}
	if c.JSON {
		for i := range list {
			if err := newJSON(a.Stdout).Encode(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(a.Stderr, "nobody takes turns at the moment")
		return nil
	}
	return printPace(a.Stdout, list)
}

// printPace writes a row per group, and one for a site that is held only.
func printPace(w io.Writer, list []pace.SiteStatus) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "SITE\tGROUP\tDELAY\tWAITING\tNEXT\tHELD")
	for _, s := range list {
		held := "-"
		switch {
		case s.Held > 0 && s.Asked:
			held = "for " + shown(s.Held) + ", as it asked"
		case s.Held > 0:
			held = "for " + shown(s.Held) + ", since it fails"
		}
		if len(s.Lanes) == 0 {
			fmt.Fprintf(out, "%s\t-\t-\t%d\t-\t%s\n", quoted(s.Origin), s.Waiting, held)
		}
		for _, l := range s.Lanes {
			group := quoted(l.Group)
			if group == "" {
				group = "(all)"
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%d\tin %s\t%s\n", quoted(s.Origin), group, shown(l.Delay), l.Waiting, shown(l.Next), held)
		}
	}
	return out.Flush()
}

// shown writes a duration no finer than a person reads it.
func shown(d time.Duration) string {
	if d > 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// PaceReleaseCmd is `heed pace release`.
type PaceReleaseCmd struct {
	Host string `arg:"" help:"A host, host:port, or origin: example.org, https://example.org."`
	JSON bool   `name:"json" help:"Print the origins as a JSON list."`
}

// Help says what stays.
func (PaceReleaseCmd) Help() string {
	return `For a site whose Retry-After was a mistake, or which works again. Delays that its
robots.txt asks for stay in force. Exit status: 0 when something was released, 1 when
nothing held the host.

  heed pace release example.org`
}

// Run asks the running heed.
func (c *PaceReleaseCmd) Run(a *App) error {
	if strings.TrimSpace(c.Host) == "" {
		return errors.New("which host?\nWrite: heed pace release example.org")
	}
	client, err := askable()
	if err != nil {
		return err
	}
	var released []string
	if err := client.grant(context.Background(), http.MethodDelete, "/pace?of="+url.QueryEscape(c.Host), nil, &released); err != nil {
		return err
	}
	switch {
	case c.JSON:
		err = newJSON(a.Stdout).Encode(released)
	case len(released) == 0:
		fmt.Fprintf(a.Stderr, "nothing holds %s; see `heed pace list`\n", quoted(c.Host))
	}
	for _, origin := range released {
		if !c.JSON {
			fmt.Fprintf(a.Stdout, "released: %s\n", quoted(origin))
		}
	}
	if err == nil && len(released) == 0 {
		return Exit(exitNo)
	}
	return err
}

// On the control socket, `heed pace` asks:
//
//	GET    /pace      who waits where
//	DELETE /pace?of=  end what holds a host
func (d *daemon) paceRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /pace", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, d.turns.List()) })
	mux.HandleFunc("DELETE /pace", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, d.turns.Release(r.FormValue("of")))
	})
}

// turnsWords says what turns have come to; empty when nobody took any.
func turnsWords(c *pace.Counts) string {
	if c.Turns+c.Refused+c.Left+c.Holds == 0 {
		return ""
	}
	text := fmt.Sprintf("%d given, %d waited %v in all, %d told when to come back, %d left before, %d waiting now",
		c.Turns, c.Waits, c.Waited.Round(time.Second), c.Refused, c.Left, c.Waiting)
	if c.Holds > 0 {
		text += fmt.Sprintf("; %d answers held a site", c.Holds)
	}
	return text
}
