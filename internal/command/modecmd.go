package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// ModeCmd is `heed mode`: the break-glass.
type ModeCmd struct {
	For    string `placeholder:"TIME" help:"How long to observe: 30m, 2h, 3d; at most 7 days."`
	Reason string `placeholder:"TEXT" help:"Why; the record quotes it."`
	Client string `placeholder:"NAME" help:"Observe the [[client]] of that name alone."`
	Host   string `placeholder:"PATTERN" help:"Observe these hosts alone: example.org, *.example.org."`
	JSON   bool   `name:"json" help:"Print JSON."`

	Mode string `arg:"" optional:"" enum:",observe,enforce" default:"" help:"observe: refuse nothing for a while; enforce: end that now. Without it: what is observed this way."`
}

// Help says what becomes of it.
func (ModeCmd) Help() string {
	return `For when enforcing is in the way of something urgent: the running heed refuses
nothing for a while, and judges and records all the same. It ends by itself, also
over a restart, is told by heed status, and each record names it.

  heed mode observe --for 2h --reason 'shop is down, ticket 4711' --client shop
  heed mode
  heed mode enforce`
}

// Run asks the running heed.
func (c *ModeCmd) Run(a *App) error {
	client, err := askable()
	if err != nil {
		return err
	}
	if c.Mode != "observe" && (c.For != "" || c.Reason != "" || c.Client != "" || c.Host != "") {
		return errors.New("--for, --reason, --client and --host say how to observe\nWrite: heed mode observe --for 2h --reason TEXT")
	}
	switch c.Mode {
	case "observe":
		return c.observe(a, client)
	case "enforce":
		var ended int
		if err := client.grant(context.Background(), http.MethodDelete, "/breaks", nil, &ended); err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "%s ended: the settings hold again\n", plural(uint64(ended), "break"))
		return nil
	}
	g, err := client.granted(context.Background())
	if err != nil {
		return err
	}
	if c.JSON {
		return newJSON(a.Stdout).Encode(g.Breaks)
	}
	if len(g.Breaks) == 0 {
		fmt.Fprintln(a.Stdout, "nothing is observed for a while: the settings hold")
	}
	for i := range g.Breaks {
		fmt.Fprintf(a.Stdout, "only observed: %s\n", g.Breaks[i].words())
	}
	return nil
}

func (c *ModeCmd) observe(a *App, client *controlClient) error {
	if c.For == "" {
		return errors.New("--for is needed: it ends by itself" + anotherTime)
	}
	lasting, err := parseFor(c.For, maxBreak)
	if err == nil {
		err = checkReason(c.Reason)
	}
	if err != nil {
		return err
	}
	var b grantedBreak
	q := &grantAsk{For: lasting, Reason: c.Reason, Client: c.Client, Host: c.Host}
	if err := client.grant(context.Background(), http.MethodPost, "/breaks", q, &b); err != nil {
		return err
	}
	if c.JSON {
		return newJSON(a.Stdout).Encode(b)
	}
	fmt.Fprintf(a.Stdout, "only observed from now on: %s\nEnd it before with `heed mode enforce`\n", b.words())
	return nil
}

// askable returns a client for the heed of the state directory.
func askable() (*controlClient, error) {
	state, err := StateDir()
	if err != nil {
		return nil, err
	}
	if _, err := readStatus(context.Background(), state); errors.Is(err, errNotRunning) {
		return nil, fmt.Errorf("heed is not running in %s\nStart it with `heed serve`", state)
	} else if err != nil {
		return nil, err
	}
	return newControlClient(state), nil
}
