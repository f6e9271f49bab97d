package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"heed/internal/base/state"
	"heed/internal/control"
	"heed/internal/output/console"
)

// AllowCmd is `heed allow`: grants exceptions for a limited time.
type AllowCmd struct {
	Client string `placeholder:"NAME" help:"Grant the exception to the [[client]] NAME; required with PATTERN."`
	Reason string `placeholder:"TEXT" help:"Give the reason or who agreed; the record quotes it. Required with PATTERN."`
	For    string `placeholder:"TIME" help:"Grant it for this time: 2h, 14d; at most 366 days. Required with PATTERN."`
	End    string `placeholder:"ID" help:"End the exception ID now."`
	JSON   bool   `name:"json" help:"Print JSON."`

	Pattern string `arg:"" optional:"" help:"What may be fetched: https://example.org/api/, *.example.org/api/; the path may contain * and a final $."`
}

// Run grants, lists or ends exceptions of the running heed.
func (c *AllowCmd) Run(a *console.App) error {
	switch {
	case c.End != "":
		return endException(a, c.End, c.Pattern, false)
	case c.Pattern != "":
		return c.allow(a)
	case c.Client != "" || c.Reason != "" || c.For != "":
		return errors.New("there is no pattern to allow\nWrite it first: heed allow https://example.org/api/ --client NAME --reason TEXT --for 14d")
	}
	return listExceptions(a, false, c.JSON, "no exceptions were granted: those of the settings hold")
}

func (c *AllowCmd) allow(a *console.App) error {
	var client error
	if c.Client == "" {
		client = errors.New("--client is needed: the name of the [[client]] that the exception is for")
	}
	if err := missing("heed allow "+c.Pattern+" --client NAME --reason TEXT --for 14d", client, control.CheckReason(c.Reason), checkFor(c.For)); err != nil {
		return err
	}
	q := &control.GrantRequest{Reason: c.Reason, Client: c.Client, Pattern: c.Pattern}
	return except(a, q, c.For, c.JSON, func(e *control.Exception) string {
		return fmt.Sprintf("%s  %s\nEnd it before with `heed allow --end %s`\n", e.ID, e.Text(), e.ID)
	})
}

// RefuseCmd is `heed refuse`: blocks a client or a host immediately.
type RefuseCmd struct {
	Client string `placeholder:"NAME" help:"Block only the [[client]] NAME; without a pattern, at every host."`
	Reason string `placeholder:"TEXT" help:"Give the reason or who asked; the record quotes it. Required for a block."`
	For    string `placeholder:"TIME" help:"Block for this time: 2h, 14d (default: until lifted)."`
	End    string `placeholder:"ID" help:"Lift the block ID now."`
	JSON   bool   `name:"json" help:"Print JSON."`

	Pattern string `arg:"" optional:"" help:"What is refused: example.org, *.example.org, https://example.org/api/; the path may contain * and a final $."`
}

// Run blocks, lists or lifts blocks at the running heed.
func (c *RefuseCmd) Run(a *console.App) error {
	switch {
	case c.End != "":
		return endException(a, c.End, c.Pattern, true)
	case c.Pattern != "" || c.Client != "":
		return c.refuse(a)
	case c.Reason != "" || c.For != "":
		return errors.New("nothing is named that is to be refused\nWrite a host first: heed refuse example.org --reason TEXT, or --client NAME")
	}
	return listExceptions(a, true, c.JSON, "there are no blocks: the settings apply")
}

func (c *RefuseCmd) refuse(a *console.App) error {
	q := &control.GrantRequest{Reason: c.Reason, Client: c.Client, Pattern: c.pattern(), Refuse: true}
	return except(a, q, c.For, c.JSON, func(e *control.Exception) string {
		return fmt.Sprintf("%s  refused from now on: %s\nEnd it with `heed refuse --end %s`\n", e.ID, e.Text(), e.ID)
	})
}

// pattern returns the complete pattern: a host without a path means all of its paths,
// and no pattern means all hosts.
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

// ModeCmd is `heed mode`: switches to observe mode for a limited time.
type ModeCmd struct {
	For    string `placeholder:"TIME" help:"Observe for this time: 30m, 2h, 3d; at most 7 days. Required."`
	Reason string `placeholder:"TEXT" help:"Give the reason; the record quotes it. Required."`
	Client string `placeholder:"NAME" help:"Observe only the [[client]] NAME."`
	Host   string `placeholder:"PATTERN" help:"Observe only these hosts: example.org, *.example.org."`
	JSON   bool   `name:"json" help:"Print JSON."`

	Mode string `arg:"" optional:"" enum:",observe,enforce" default:"" help:"observe (for a limited time) or enforce; without it the observations are listed."`
}

// Run begins, lists or ends the observe mode of the running heed.
func (c *ModeCmd) Run(a *console.App) error {
	if c.Mode == "observe" {
		return c.observe(a)
	}
	if flagged := c.For != "" || c.Reason != "" || c.Client != "" || c.Host != ""; flagged && c.Mode == "enforce" {
		return errors.New("heed mode enforce ends observe mode for every client and host, and takes no --for, --reason, --client or --host\nLeave them out, or let a single observation end by its time")
	} else if flagged {
		return errors.New("--for, --reason, --client and --host are for observe mode\nWrite: heed mode observe --for 2h --reason TEXT")
	}
	client, err := runningHeed(a, "")
	if err != nil {
		return err
	}
	if c.Mode == "enforce" {
		ended, err := control.Grant[int](client, http.MethodDelete, "/breaks", nil)
		if err != nil {
			return err
		}
		if ended == 0 {
			fmt.Fprintln(a.Stdout, "observe mode was not granted: the settings apply")
			return nil
		}
		fmt.Fprintln(a.Stdout, "observe mode ended: the settings apply again")
		return nil
	}
	g, err := client.Granted()
	if err != nil {
		return err
	}
	return printList(a, c.JSON, g.Breaks, "observe mode is not granted: the settings hold", func(b *control.Break) string { return "only observed: " + b.Text() })
}

func (c *ModeCmd) observe(a *console.App) error {
	if err := missing("heed mode observe --for 2h --reason TEXT", control.CheckReason(c.Reason), checkFor(c.For)); err != nil {
		return err
	}
	lasting, err := console.ParseFor(c.For, control.MaxBreak)
	if err != nil {
		return err
	}
	q := &control.GrantRequest{For: lasting, Reason: c.Reason, Client: c.Client, Host: c.Host}
	return grant(a, "/breaks", q, c.JSON, func(b *control.Break) string {
		return fmt.Sprintf("only observed from now on: %s\nEnd it before with `heed mode enforce`\n", b.Text())
	})
}

// checkFor returns an error when the flag --for, which is required, has no value.
func checkFor(value string) error {
	if value == "" {
		return errors.New("--for is needed: the time after which it ends, such as --for 2h, --for 14d")
	}
	return nil
}

// missing returns the errors of all flags that are required, and how to write the command;
// nil when there is none.
func missing(command string, flags ...error) error {
	if err := errors.Join(flags...); err != nil {
		return fmt.Errorf("%w\nWrite: %s", err, command)
	}
	return nil
}

// findRunning returns the state directory and the status of its heed. say takes which
// directory is used, unless it is the user's own. hint ends the error when none runs.
func findRunning(say io.Writer, hint string) (dir string, s *control.Status, err error) {
	if dir, err = state.Find(say); err != nil {
		return "", nil, err
	}
	if s, err = control.ReadStatus(context.Background(), dir); errors.Is(err, control.ErrNotRunning) {
		err = fmt.Errorf("heed is not running in %s\nStart it with `heed serve`%s%s", dir, hint, state.ServiceAdvice(dir))
	}
	return dir, s, err
}

// runningHeed returns a client for the heed of the state directory. hint is as in findRunning.
func runningHeed(a *console.App, hint string) (*control.Client, error) {
	dir, _, err := findRunning(a.Stderr, hint)
	if err != nil {
		return nil, err
	}
	return control.NewClient(dir), nil
}

// except makes the running heed add the exception or block q, for the time that lasting
// names; empty: until it is ended.
func except(a *console.App, q *control.GrantRequest, lasting string, asJSON bool, text func(*control.Exception) string) (err error) {
	if lasting != "" {
		if q.For, err = console.ParseFor(lasting, control.MaxGrant); err != nil {
			return err
		}
	}
	if _, _, err := control.ParsePattern(q.Pattern); err != nil {
		return err
	}
	return grant(a, "/exceptions", q, asJSON, text)
}

// grant makes the running heed grant q and prints the result, a *T: its text or JSON.
func grant[T any](a *console.App, path string, q *control.GrantRequest, asJSON bool, text func(*T) string) error {
	if err := control.CheckReason(q.Reason); err != nil {
		return err
	}
	client, err := runningHeed(a, "")
	if err != nil {
		return err
	}
	made, err := control.Grant[T](client, http.MethodPost, path, q)
	if err != nil {
		return err
	}
	if asJSON {
		return console.NewJSON(a.Stdout).Encode(made)
	}
	_, err = io.WriteString(a.Stdout, text(&made))
	return err
}

// endException ends an exception, or with block a block. An id of the other kind is an
// error, and so is a pattern.
func endException(a *console.App, id, pattern string, block bool) error {
	kind, other, verb := "exception", "a block", "refuse"
	if block {
		kind, other, verb = "block", "an exception", "allow"
	}
	if pattern != "" {
		return fmt.Errorf("--end ends the %s with an ID, a pattern begins a new one\nLeave one of them out", kind)
	}
	client, err := runningHeed(a, "")
	if err != nil {
		return err
	}
	g, err := client.Granted()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(g.Exceptions, func(e control.Exception) bool { return e.ID == id && e.Refuse != block }) {
		return fmt.Errorf("%s is %s\nEnd it with `heed %s --end %[1]s`", console.Quoted(id), other, verb)
	}
	ended, err := control.Grant[string](client, http.MethodDelete, "/exceptions/"+url.PathEscape(id), nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "the %s %s has ended\n", kind, console.Printable(ended))
	return nil
}

// listExceptions prints the exceptions that were granted, or the blocks.
func listExceptions(a *console.App, blocks, asJSON bool, none string) error {
	client, err := runningHeed(a, "")
	if err != nil {
		return err
	}
	g, err := client.Granted()
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(g.Exceptions, func(e control.Exception) bool { return e.Refuse != blocks })
	return printList(a, asJSON, list, none, func(e *control.Exception) string { return e.ID + "  " + e.Text() })
}

// printList prints a line for each element of list, none when there are none, or the list
// as JSON.
func printList[T any](a *console.App, asJSON bool, list []T, none string, line func(*T) string) error {
	if asJSON {
		return console.NewJSON(a.Stdout).Encode(list)
	}
	if len(list) == 0 {
		fmt.Fprintln(a.Stdout, none)
	}
	for i := range list {
		fmt.Fprintln(a.Stdout, line(&list[i]))
	}
	return nil
}
