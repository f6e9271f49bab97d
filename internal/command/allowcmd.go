package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// AllowCmd is `heed allow`: exceptions for a while.
type AllowCmd struct {
	Client string `placeholder:"NAME" help:"The [[client]] that it is for."`
	Reason string `placeholder:"TEXT" help:"Who agreed to it, or why; the record quotes it."`
	For    string `placeholder:"TIME" help:"How long it holds: 2h, 14d; at most 366 days."`
	End    string `placeholder:"ID" help:"End the exception with that id now."`
	JSON   bool   `name:"json" help:"Print JSON."`

	Pattern string `arg:"" optional:"" help:"What may be fetched whatever robots.txt says: https://example.org/api/ or *.example.org/api/, with * and a final $ in the path."`
}

// Help says what becomes of it.
func (AllowCmd) Help() string {
	return `Adds an exception to the settings of the running heed. It ends by itself, also over
a restart; each use is recorded as override, with the reason. Hosts with never_allow
stay as they are. Without arguments it lists what was granted.

  heed allow https://example.org/api/ --client newsbot --reason 'mail of 3 May' --for 14d
  heed allow
  heed allow --end 1`
}

// Run asks the running heed.
func (c *AllowCmd) Run(a *App) error {
	client, err := askable()
	if err != nil {
		return err
	}
	switch {
	case c.End != "" && c.Pattern != "":
		return errors.New("--end ends an exception, a pattern begins one\nLeave one of them out")
	case c.End != "":
		var id string
		if err := client.grant(context.Background(), http.MethodDelete, "/exceptions/"+url.PathEscape(c.End), nil, &id); err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "the exception %s holds no more\n", printable(id))
		return nil
	case c.Pattern != "":
		return c.allow(a, client)
	case c.Client != "" || c.Reason != "" || c.For != "":
		return errors.New("there is no pattern to allow\nWrite it first: heed allow https://example.org/api/ --client NAME --reason TEXT --for 14d")
	}
	g, err := client.granted(context.Background())
	if err != nil {
		return err
	}
	return listGrants(a, g, false, c.JSON, "no exceptions were granted: those of the settings hold")
}

// listGrants prints the exceptions that were granted, or what was stopped.
func listGrants(a *App, g granted, stops, asJSON bool, none string) error {
	list := slices.DeleteFunc(g.Exceptions, func(e grantedException) bool { return e.Refuse != stops })
	if asJSON {
		return newJSON(a.Stdout).Encode(list)
	}
	if len(list) == 0 {
		fmt.Fprintln(a.Stdout, none)
	}
	for i := range list {
		fmt.Fprintf(a.Stdout, "%s  %s\n", list[i].ID, list[i].words())
	}
	return nil
}

func (c *AllowCmd) allow(a *App, client *controlClient) error {
	if c.Client == "" {
		return errors.New("--client is needed: the name of the [[client]] that the exception is for")
	}
	if c.For == "" {
		return errors.New("--for is needed: it ends by itself" + anotherTime)
	}
	lasting, err := parseFor(c.For, maxGrant)
	if err == nil {
		err = checkReason(c.Reason)
	}
	if err == nil {
		_, _, err = parsePattern(c.Pattern)
	}
	if err != nil {
		return err
	}
	var e grantedException
	q := &grantAsk{For: lasting, Reason: c.Reason, Client: c.Client, Pattern: c.Pattern}
	if err := client.grant(context.Background(), http.MethodPost, "/exceptions", q, &e); err != nil {
		return err
	}
	if c.JSON {
		return newJSON(a.Stdout).Encode(e)
	}
	fmt.Fprintf(a.Stdout, "%s  %s\nEnd it before with `heed allow --end %s`\n", e.ID, e.words(), e.ID)
	return nil
}
