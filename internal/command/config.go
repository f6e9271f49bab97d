package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/config/access"
	"heed/internal/config/route"
	"heed/internal/control"
	"heed/internal/daemon"
	"heed/internal/output/console"
)

// ConfigCmd is `heed config`: the settings, checked or shown.
type ConfigCmd struct {
	Check ConfigCheckCmd `cmd:"" default:"withargs" help:"Check the settings without starting (also plain heed config)."`
	Show  ConfigShowCmd  `cmd:"" help:"Print the settings in use and where they come from."`

	Pinned ConfigPinnedCmd `cmd:"" help:"Print the list of hosts known to pin certificates."`

	Password ConfigPasswordCmd `cmd:"" help:"Print a line for the file of users and passwords."`
}

// ConfigCheckCmd is `heed config check`.
type ConfigCheckCmd struct {
	servedAt
	config.FileFlags
	Quiet bool `short:"q" help:"Print nothing when the settings are valid."`
	JSON  bool `name:"json" help:"Print the mistakes and remarks as a JSON object."`
	Try   bool `help:"Also connect to the fleet's store, and use each right that heed needs."`
}

// Run checks the settings and the files they name.
func (c *ConfigCheckCmd) Run(a *console.App) error {
	cfg, which, err := c.load(&c.FileFlags, a)
	if err == nil {
		err = daemon.CheckSettings(cfg, a)
	}
	if err == nil && c.Try {
		if bad := route.TryFleet(context.Background(), cfg, a.Environ); bad != nil {
			err = config.Mistakes{cfg.Find("fleet.url", "fleet.url: %v", bad)}
		}
	}
	if c.JSON {
		return c.printJSON(a, cfg, err)
	}
	if cfg != nil {
		for _, f := range remarks(cfg, err) {
			fmt.Fprintf(a.Stderr, "heed: %s\n", console.Printable(f.String()))
		}
	}
	if err != nil {
		return err
	}
	a.Remark(cfg.Notices(a.Now())...)
	if !c.Quiet {
		fmt.Fprintf(a.Stdout, "%s: well%s\n", cfg.Source(), which)
	}
	return nil
}

// remarks returns the remarks on settings, and where err has mistakes in them only those
// that do not depend on other settings.
func remarks(cfg *config.Config, err error) []config.Finding {
	if err != nil {
		return config.MissingDirectories(cfg)
	}
	return config.Remarks(cfg)
}

// printJSON prints the result of the check. cfg is nil when it could not be read because of
// err.
func (c *ConfigCheckCmd) printJSON(a *console.App, cfg *config.Config, err error) error {
	out := struct {
		Source   string           `json:"source,omitempty"`
		Valid    bool             `json:"valid"`
		Mistakes config.Mistakes  `json:"mistakes"`
		Remarks  []config.Finding `json:"remarks"`
		Notices  []string         `json:"notices"` // that every start prints
	}{Valid: err == nil, Mistakes: config.Mistakes{}, Remarks: []config.Finding{}, Notices: []string{}}
	if cfg != nil {
		out.Source = cfg.Source()
		out.Remarks = append(out.Remarks, remarks(cfg, err)...)
	}
	if err != nil {
		out.Mistakes = config.MistakesOf(err, out.Source)
		out.Source = out.Mistakes[0].File
	} else {
		out.Notices = append(out.Notices, cfg.Notices(a.Now())...)
	}
	if bad := console.NewJSON(a.Stdout).Encode(out); bad != nil || err == nil {
		return bad
	}
	return console.Exit(console.ExitUsage)
}

// servedAt contains the settings that `heed serve` takes from flags or the
// environment instead of its file.
type servedAt struct {
	Listen  string   `short:"l" env:"HEED_LISTEN" placeholder:"ADDR" help:"Check as with heed serve --listen ADDR."`
	Clients []string `env:"HEED_CLIENTS" placeholder:"NETWORK,..." help:"Check as with heed serve --clients NETWORK,..."`
}

// keys returns the keys of the settings that do not come from the file.
func (s *servedAt) keys() []string {
	keys := []string{}
	if s.Listen != "" {
		keys = append(keys, "listen")
	}
	if len(s.Clients) > 0 {
		keys = append(keys, "access.clients")
	}
	return keys
}

// load returns the settings that flags select, changed by s; where they select none, those of
// the file that the running heed would reload. which completes a sentence about that choice.
// Beside an error the settings are nil or only fit for remarks.
func (s *servedAt) load(flags *config.FileFlags, a *console.App) (cfg *config.Config, which string, err error) {
	cfg, err = flags.Load(a)
	if !flags.Chosen(a) {
		dir, found := state.Find(a.Stderr)
		if found != nil && cfg != nil && cfg.File == "" {
			return nil, "", found
		}
		running, failed := control.Serving(context.Background(), dir)
		switch {
		case found != nil || failed != nil:
		case running != nil && running.ConfigFile != "":
			which = ", as the running heed reads it"
			cfg, err = flags.LoadRunning(a, running.ConfigFile, nil)
		case running != nil:
			which = "; the running heed has the built-in settings"
		case cfg != nil && cfg.File == "":
			which = "; no heed runs, and there is no proxy.toml here" + state.ServiceAdvice(dir)
		default:
			which = "; no heed runs that would reload it"
		}
	}
	if err != nil {
		return cfg, which, err
	}
	return cfg, which, cfg.ServeAt(s.Listen, s.Clients)
}

// ConfigShowCmd is `heed config show`.
type ConfigShowCmd struct {
	servedAt
	config.FileFlags
	JSON    bool `name:"json" help:"Print the settings as JSON."`
	Changed bool `help:"Print only what differs from the defaults."`
	Hash    bool `help:"Print only the hash of the settings, as logged (shortened) in config."`
}

// Run prints the settings.
func (c *ConfigShowCmd) Run(a *console.App) error {
	cfg, which, err := c.load(&c.FileFlags, a)
	if err != nil {
		return err
	}
	hash := cfg.Hash()
	if c.Hash {
		_, err := fmt.Fprintln(a.Stdout, hash)
		return err
	}
	cfg.Redact()
	tree := cfg.Tree()
	if c.Changed {
		base, err := config.BuiltIn(a.Defaults)
		if err != nil {
			return err
		}
		tree = cfg.Changed(base)
	}
	if c.JSON {
		return console.NewJSON(a.Stdout).Encode(map[string]any{"source": cfg.Source(), "over": c.keys(), "hash": hash, "settings": tree})
	}
	over := ""
	if keys := c.keys(); len(keys) > 0 {
		over = "\n# but from a flag or the environment: " + strings.Join(keys, ", ")
	}
	text := config.TreeText(tree)
	if text == "" {
		text = "# nothing differs from the defaults\n"
	}
	_, err = fmt.Fprintf(a.Stdout, "# from %s%s%s\n# hash %s\n%s", cfg.Source(), strings.ReplaceAll(which, "\n", "\n# "), over, hash, text)
	return err
}

// ConfigPinnedCmd is `heed config pinned`.
type ConfigPinnedCmd struct{}

// Run prints the list.
func (ConfigPinnedCmd) Run(a *console.App) error {
	_, err := io.WriteString(a.Stdout, config.PinnedText)
	return err
}

// ConfigPasswordCmd is `heed config password`.
type ConfigPasswordCmd struct {
	Name string `arg:"" help:"The name of the user."`
}

// Run reads the password and prints the line.
func (c *ConfigPasswordCmd) Run(a *console.App) error {
	password, err := typedPassword(a, c.Name)
	if err != nil {
		return err
	}
	line, err := access.Line(c.Name, password)
	if err == nil {
		_, err = fmt.Fprintln(a.Stdout, line)
	}
	return err
}

// typedPassword reads the password of a user: from a terminal twice, without showing it,
// else the only line of the standard input.
func typedPassword(a *console.App, name string) (string, error) {
	f, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		data, err := io.ReadAll(io.LimitReader(a.Stdin, 4<<10))
		line, rest, _ := strings.Cut(string(data), "\n")
		if err == nil && rest != "" {
			err = errors.New("the password has more than one line\nWrite it on one line of the standard input, or type it at the prompt")
		}
		return strings.TrimSuffix(line, "\r"), err
	}
	before, err := term.MakeRaw(int(f.Fd())) // before the prompt: what is typed early is not shown either
	if err != nil {
		return "", err
	}
	defer term.Restore(int(f.Fd()), before)
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{f, a.Stderr}, "")
	typed, err := screen.ReadPassword("Password of " + console.Printable(name) + ": ")
	if err != nil {
		return "", err
	}
	again, err := screen.ReadPassword("The same again: ")
	if err == nil && again != typed {
		err = errors.New("the two passwords are not the same\nNothing was printed; start again")
	}
	return typed, err
}

// ReloadCmd is `heed reload`: makes the running heed read its settings again.
type ReloadCmd struct {
	Quiet bool `short:"q" help:"Print nothing when the settings are in force."`
}

// reloadTimeout bounds a reload, which reads files and does not check passwords.
const reloadTimeout = time.Minute

// Run makes the running heed reload and prints the result.
func (c *ReloadCmd) Run(a *console.App) error {
	dir, err := state.Find(a.Stderr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), reloadTimeout)
	defer cancel()
	done, err := control.NewClient(dir).Reload(ctx)
	if err != nil {
		refused := (*control.Refusal)(nil)
		switch {
		case errors.Is(err, control.ErrNotRunning):
			err = fmt.Errorf("heed is not running in %s\nIt reads its settings when it is started with `heed serve`%s", dir, state.ServiceAdvice(dir))
		case errors.As(err, &refused):
			err = fmt.Errorf("%s\nThe running heed stays with the settings it has", refused.Message)
		}
		a.Complain(err)
		return console.Exit(console.ExitNo)
	}
	a.Remark(done.Notices...)
	what := "in force"
	if done.Same {
		what = "in force, unchanged"
	}
	if !c.Quiet {
		fmt.Fprintf(a.Stdout, "%s: %s (%s)\n", done.Source, what, control.ShortHash(done.Hash))
		if text := refreshed(done); text != "" {
			fmt.Fprintln(a.Stdout, text)
		}
	}
	return nil
}

// refreshed states what a reload has read and dropped beside the settings; empty when
// that is nothing.
func refreshed(done *control.ReloadReply) string {
	var parts []string
	if len(done.Read) > 0 {
		parts = append(parts, "read again: "+console.Printable(strings.Join(done.Read, ", ")))
	}
	if done.Dropped > 0 {
		parts = append(parts, "dropped: "+console.Plural(uint64(done.Dropped), "cached failure"))
	}
	return strings.Join(parts, "; ")
}
