package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// RefuseCmd is `heed refuse`: an immediate stop.
type RefuseCmd struct {
	Client string `placeholder:"NAME" help:"Stop that [[client]] alone; without a pattern everywhere."`
	Reason string `placeholder:"TEXT" help:"Who asked for it, or why; the record quotes it."`
	For    string `placeholder:"TIME" help:"How long: 2h, 14d; without it until it is ended."`
	End    string `placeholder:"ID" help:"End the stop with that id now."`
	JSON   bool   `name:"json" help:"Print JSON."`

	Pattern string `arg:"" optional:"" help:"What is refused whatever robots.txt says: example.org, *.example.org, https://example.org/api/, with * and a final $ in the path."`
}

// Help says what becomes of it.
func (RefuseCmd) Help() string {
	return `Has the running heed refuse a host, a part of it, or all that one client asks for:
from the next request on, in observe mode too, over restarts, and without asking
the site for anything. Requests and tunnels under way go on to their end, people
who are exempt are not touched, and /robots.txt may always be asked for. Each
refusal is recorded as override, with the reason. Without arguments it lists what
is stopped.

  heed refuse shop.example --reason 'mail of their admin, 3 May'
  heed refuse --client newsbot --reason 'it loops' --for 2h
  heed refuse
  heed refuse --end 1`
}

// Run asks the running heed.
func (c *RefuseCmd) Run(a *App) error {
	client, err := askable()
	if err != nil {
		return err
	}
	switch {
	case c.End != "" && c.Pattern != "":
		return errors.New("--end ends a stop, a pattern begins one\nLeave one of them out")
	case c.End != "":
		var id string
		if err := client.grant(context.Background(), http.MethodDelete, "/exceptions/"+url.PathEscape(c.End), nil, &id); err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "the stop %s holds no more\n", printable(id))
		return nil
	case c.Pattern != "" || c.Client != "":
		return c.stop(a, client)
	case c.Reason != "" || c.For != "":
		return errors.New("nothing is named that is to be refused\nWrite a host first: heed refuse example.org --reason TEXT, or --client NAME")
	}
	g, err := client.granted(context.Background())
	if err != nil {
		return err
	}
	return listGrants(a, g, true, c.JSON, "nothing is stopped: the settings hold")
}

func (c *RefuseCmd) stop(a *App, client *controlClient) error {
	var lasting time.Duration
	err := checkReason(c.Reason)
	if err == nil && c.For != "" {
		lasting, err = parseFor(c.For, maxGrant)
	}
	pattern := c.pattern()
	if err == nil {
		_, _, err = parsePattern(pattern)
	}
	if err != nil {
		return err
	}
	var e grantedException
	q := &grantAsk{For: lasting, Reason: c.Reason, Client: c.Client, Pattern: pattern, Refuse: true}
	if err := client.grant(context.Background(), http.MethodPost, "/exceptions", q, &e); err != nil {
		return err
	}
	if c.JSON {
		return newJSON(a.Stdout).Encode(e)
	}
	fmt.Fprintf(a.Stdout, "%s  refused from now on: %s\nEnd it with `heed refuse --end %s`\n", e.ID, e.words(), e.ID)
	return nil
}

// pattern returns the pattern whole: a host alone is all of it, and a client
// alone is stopped everywhere.
func (c *RefuseCmd) pattern() string {
	_, rest, named := strings.Cut(c.Pattern, "://")
	if !named {
		rest = c.Pattern
	}
	switch {
	case c.Pattern == "":
		return "*/"
	case !strings.Contains(rest, "/"):
		return c.Pattern + "/"
	}
	return c.Pattern
}
