package command

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"heed/internal/ca"
)

// ConfigCmd is `heed config`: the settings, checked or shown.
type ConfigCmd struct {
	Check ConfigCheckCmd `cmd:"" default:"withargs" help:"Say what is wrong with the settings, without starting (also plain heed config)."`
	Show  ConfigShowCmd  `cmd:"" help:"Print the settings in use, and where they are from."`

	Pinned ConfigPinnedCmd `cmd:"" help:"Print the hosts that are known to pin certificates."`
}

// ConfigCheckCmd is `heed config check`.
type ConfigCheckCmd struct {
	servedAt
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	Quiet  bool   `short:"q" help:"Print nothing when all is well."`
}

// Help says what the check covers.
func (c *ConfigCheckCmd) Help() string {
	return `Finds what would keep heed from starting with these settings: unknown keys, wrong
values, contradictions, and files that are missing or do not fit. It starts
nothing and changes nothing. Exit status 0 when all is well, else 2.

Example:

    heed config check --config /etc/heed/proxy.toml`
}

// Run checks the settings and the files they name.
func (c *ConfigCheckCmd) Run(a *App) error {
	cfg, err := c.load(c.Config, a.Defaults)
	if err != nil {
		return err
	}
	if err := cfg.amiss(a); err != nil {
		return err
	}
	for _, notice := range cfg.notices(a.Now()) {
		fmt.Fprintf(a.Stderr, "heed: %s\n", notice)
	}
	if !c.Quiet {
		fmt.Fprintf(a.Stdout, "%s: well\n", cfg.source())
	}
	return nil
}

// amiss says all that would keep a heed with these settings from starting: what
// is wrong with the files and variables that they name, and with who may use it.
func (c *Config) amiss(a *App) error {
	var all []error
	if c.HTTPS.CACert != "" {
		_, err := ca.Load(c.HTTPS.CACert, c.HTTPS.CAKey, a.Now)
		all = append(all, err)
	}
	for _, f := range []struct{ key, file string }{{"upstream.ca_file", c.Upstream.CAFile}, {"fleet.ca_file", c.Fleet.CAFile}} {
		if f.file == "" {
			continue
		}
		if _, err := readCerts(f.file); err != nil {
			all = append(all, fmt.Errorf("%s: %w", f.key, err))
		}
	}
	_, ways := newEgresses(c, a.Environ)
	_, store := fleetURL(c, a.Environ)
	_, book := c.book(a.Now)
	return errors.Join(append(all, c.exposed(), ways, store, book)...)
}

// servedAt is what `heed serve` is told by flags or the environment rather than
// by its file.
type servedAt struct {
	Listen  string   `short:"l" env:"HEED_LISTEN" placeholder:"ADDR" help:"As heed serve --listen ADDR."`
	Clients []string `env:"HEED_CLIENTS" placeholder:"NETWORK,..." help:"As heed serve --clients NETWORK,..."`
}

// keys names what does not come from the file.
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

// load returns the settings of a heed that is started so.
func (s *servedAt) load(file string, defaults []byte) (*Config, error) {
	cfg, err := Load(file, defaults)
	if err != nil {
		return nil, err
	}
	return cfg, cfg.serveAt(s.Listen, s.Clients)
}

// ConfigShowCmd is `heed config show`.
type ConfigShowCmd struct {
	servedAt
	Config string `short:"c" env:"HEED_CONFIG" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml."`
	JSON   bool   `name:"json" help:"Print the settings as JSON."`
	Hash   bool   `help:"Print the hash of the settings alone; decisions in the log have its first digits."`
	For    string `placeholder:"CLIENT" help:"Print what holds for this client at URL, and why: the name of a [[client]], an address, or a User-Agent."`

	URL string `arg:"" optional:"" name:"url" help:"With --for: the URL that is asked for."`
}

// Help says what is shown.
func (c *ConfigShowCmd) Help() string {
	return `Prints every setting with the value a heed started here would use, in the
form of proxy.toml. Passwords in URLs are left out. A flag stands over the
environment (HEED_LISTEN, HEED_CLIENTS, HEED_CONFIG), and that over the file.

Example:

    heed config show
    heed config show --for newsbot https://example.org/page`
}

// Run prints the settings.
func (c *ConfigShowCmd) Run(a *App) error {
	cfg, err := c.load(c.Config, a.Defaults)
	if err != nil {
		return err
	}
	if c.For != "" || c.URL != "" {
		return c.showFor(a, cfg)
	}
	hash := cfg.Hash()
	if c.Hash {
		_, err := fmt.Fprintln(a.Stdout, hash)
		return err
	}
	cfg.redact()
	tree := keyTree(reflect.ValueOf(*cfg))
	if c.JSON {
		return newJSON(a.Stdout).Encode(map[string]any{"source": cfg.source(), "over": c.keys(), "hash": hash, "settings": tree})
	}
	text, err := toml.Marshal(tree)
	if err != nil {
		return err
	}
	over := ""
	if keys := c.keys(); len(keys) > 0 {
		over = "\n# but from a flag or the environment: " + strings.Join(keys, ", ")
	}
	_, err = fmt.Fprintf(a.Stdout, "# from %s%s\n# hash %s\n%s", cfg.source(), over, hash, text)
	return err
}

// redact takes the passwords out of URLs.
func (c *Config) redact() {
	c.Upstream.Proxy, c.Fleet.URL = redactURL(c.Upstream.Proxy), redactFleet(c.Fleet.URL)
	for i := range c.Hosts {
		c.Hosts[i].Upstream = redactURL(c.Hosts[i].Upstream)
	}
}

// source names where the settings are from, for people.
func (c *Config) source() string {
	if c.File == "" {
		return "the built-in settings"
	}
	return c.File
}

// keyTree returns settings as they stand in TOML, durations as text.
func keyTree(v reflect.Value) map[string]any {
	tree := map[string]any{}
	for key, field := range fieldsByKey(v) {
		switch value := field.Interface().(type) {
		case time.Duration:
			tree[key] = shortDuration(value)
		case *time.Duration:
			if value != nil {
				tree[key] = shortDuration(*value)
			}
		case ByteSize:
			tree[key] = value.String()
		case string, map[string]string, []string, []int64, int:
			tree[key] = value
		case Addresses:
			if tree[key] = []string(value); len(value) == 1 {
				tree[key] = value[0]
			}
		case bool:
			if value {
				tree[key] = value
			}
		case *bool:
			if value != nil {
				tree[key] = *value
			}
		case Date:
			if !value.IsZero() {
				tree[key] = value.Time
			}
		case []ClientConfig:
			if len(value) > 0 {
				tree[key] = entryTrees(value)
			}
		case []HostConfig:
			if len(value) > 0 { // host = [] would keep a [[host]] from being added
				tree[key] = entryTrees(value)
			}
		default:
			tree[key] = keyTree(field)
		}
	}
	return tree
}

// entryTrees returns the entries of an array of tables; a list is left out
// where it says nothing.
func entryTrees[T any](entries []T) []map[string]any {
	trees := make([]map[string]any, len(entries))
	for i := range entries {
		trees[i] = keyTree(reflect.ValueOf(entries[i]))
		maps.DeleteFunc(trees[i], func(_ string, v any) bool { return saysNothing(reflect.ValueOf(v)) })
	}
	return trees
}

// saysNothing reports whether an entry may leave the value out.
func saysNothing(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Len() == 0 || v.Kind() != reflect.Bool && v.IsZero()
}

// shortDuration writes a duration as a person would: 10m, not 10m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
