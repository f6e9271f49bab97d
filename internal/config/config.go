// Package config reads proxy.toml and checks it. A Config holds the settings of
// the file; Config has methods in many files, since those that check and convert the
// settings of one table are beside the type of that table.
//
// It parses with github.com/pelletier/go-toml/v2, which no other package imports, and
// which names the line of each fault.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"heed/internal/base/ownfile"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/proxy/limit"
	"heed/rules"
)

// FileName is the file that is read from the working directory by default.
const FileName = "proxy.toml"

// Config holds the checked settings of proxy.toml. Paths are absolute.
type Config struct {
	Listen        Addresses     `toml:"listen"`
	ProxyProtocol []string      `toml:"proxy_protocol"` // networks of load balancers whose connections to Listen begin with a header
	Profile       string        `toml:"profile"`        // a name that rules.ParseProfile accepts
	Contact       string        `toml:"contact"`        // URL or mail address; empty: none
	Name          string        `toml:"name"`           // pseudonym in Via; empty: see daemon.ProxyName
	Drain         time.Duration `toml:"drain"`          // how long a stop waits for running exchanges

	// DrainAfter is how long a heed that is to stop accepts requests before that. It is not
	// ready then, and ends each connection with its next answer.
	DrainAfter time.Duration `toml:"drain_after"`

	HTTPS    HTTPSConfig    `toml:"https"`
	Cache    CacheConfig    `toml:"cache"`
	Fleet    FleetConfig    `toml:"fleet"`
	Pacing   PacingConfig   `toml:"pacing"`
	Access   AccessConfig   `toml:"access"`
	Limits   limit.Limits   `toml:"limits"`
	Upstream UpstreamConfig `toml:"upstream"`
	Audit    AuditConfig    `toml:"audit"`
	Signals  SignalsConfig  `toml:"signals"`
	Robots   RobotsConfig   `toml:"robots" json:",omitzero"`
	Admin    AdminConfig    `toml:"admin"`
	Log      LogConfig      `toml:"log"`

	Listeners []ListenerConfig `toml:"listener" json:",omitempty"` // beside Listen, for redirected connections

	Clients []ClientConfig `toml:"client"` // the first entry that matches a request applies
	Hosts   []HostConfig   `toml:"host"`   // for each setting, the first matching entry that sets it applies

	// Observe is set by --observe: no request is refused.
	Observe bool `toml:"-" json:",omitempty"`

	// File is where the settings were read from; empty for the built-in ones.
	File string `toml:"-" json:"-"`

	found bool           // no flag or variable named File
	lines map[string]int // of the keys of File, as keyLines returns them
}

// HTTPSConfig holds [https]: how CONNECT requests are handled, and the CA that signs
// the certificates of intercepted sites.
type HTTPSConfig struct {
	Mode   string `toml:"mode"`    // for hosts without a matching [[host]]; see acl.HTTPS
	Pinned string `toml:"pinned"`  // for hosts that are known to pin certificates; empty: Mode
	CACert string `toml:"ca_cert"` // PEM file; empty: the CA of the state directory
	CAKey  string `toml:"ca_key"`  // set exactly when CACert is
}

// HostConfig holds one [[host]]: the settings of the hosts that it matches.
type HostConfig struct {
	Match []string `toml:"match"` // patterns for acl.ParseHostPattern
	HTTPS string   `toml:"https"` // as HTTPSConfig.Mode; empty: that mode
	Ports []int64  `toml:"ports"` // allowed for tunnels; empty: 443

	HostUpstream
	HostRules
}

// CacheConfig holds [cache]: where policies are stored, and how many.
type CacheConfig struct {
	MaxBytes ByteSize `toml:"max_bytes"` // of memory; at least minCacheSize
	File     string   `toml:"file"`      // ends in .db; empty: policiesFile in the state directory
}

// FleetConfig holds [fleet]: the store that several instances share.
type FleetConfig struct {
	URL    string `toml:"url"`     // as fleet.CheckURL requires, or a reference to it (see resolveSecret); empty: no fleet
	CAFile string `toml:"ca_file"` // PEM file of further roots for rediss://; empty: none
	Cert   string `toml:"cert"`    // PEM file of the certificate that heed shows the store; empty: none
	Key    string `toml:"key"`     // PEM file of its key
}

// UpstreamConfig holds [upstream]: how sites are reached.
type UpstreamConfig struct {
	Proxy                 string            `toml:"proxy"`   // empty: none; "env"; a URL; or a reference to one (see resolveSecret)
	CAFile                string            `toml:"ca_file"` // PEM file of further roots; empty: none
	Resolve               map[string]string `toml:"resolve"` // "host:port" to "address:port"
	ResponseHeaderTimeout time.Duration     `toml:"response_header_timeout"`
	Via                   bool              `toml:"via"` // requests name heed in Via
}

// SignalsConfig holds [signals]: what is read of the pages that state how they may be used.
type SignalsConfig struct {
	Page     string `toml:"page"`     // PageClients, PageAll or PageOff: of which pages the head is read
	Annotate bool   `toml:"annotate"` // answers get the Robots-Verdict field

	AlsoObey acl.PurposeTokens `toml:"also_obey"` // what clients with a purpose obey besides their own names
}

// The values of SignalsConfig.Page.
const (
	PageClients = "clients" // of those that a client with a purpose requests
	PageAll     = "all"
	PageOff     = "off"
)

// LogConfig holds [log]: the line per decision.
type LogConfig struct {
	Format string `toml:"format"` // auto, text or json
	Level  string `toml:"level"`  // debug, info, warn or error
	Mark   bool   `toml:"mark"`   // responses carry the ID of their decision
}

// Load reads the settings from path. Keys that the file does not set have the
// value of defaults, the built-in proxy.toml. An empty path means proxy.toml in the
// working directory or, if there is none, the defaults alone; that file is refused when
// others than this user can change it and it differs from the defaults. The error lists
// every problem of the file with its line; the settings beside it are only fit for remarks.
func Load(path string, defaults []byte) (*Config, error) { return load(path, path == "", defaults) }

// load is Load. found means that neither a flag nor a variable named the file.
func load(path string, found bool, defaults []byte) (*Config, error) {
	c, err := BuiltIn(defaults)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(path, FileName)
	file, err := ownfile.Read(name, maxFile)
	switch {
	case path == "" && errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return c, fmt.Errorf("the settings cannot be read: %w", err)
	}
	at, err := filepath.Abs(name)
	if err != nil {
		return c, err
	}
	builtIn := c.Hash()
	c.File, c.found = at, found
	err = c.decode(at, file.Data)
	if others := file.Others(); found && others != "" && (err != nil || c.Hash() != builtIn) {
		return nil, fmt.Errorf("heed does not use the settings in %s, which it found by itself: %s can change them\nIf you trust them, name the file: --config ./%s", at, others, FileName)
	}
	return c, err
}

// FileFlags are the flags of every command that reads the settings. The zero value reads
// the file that HEED_CONFIG names, or proxy.toml in the working directory.
type FileFlags struct {
	Config   string `short:"c" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml ($$HEED_CONFIG)."`
	NoConfig bool   `name:"no-config" help:"Read no settings file; use the built-in settings."`
}

// fileVariable names the file in place of --config. Set and empty, it means no file.
const fileVariable = "HEED_CONFIG"

// Load returns the settings that the flags, the environment or the working directory
// select. The error lists every mistake of the file, why it was read, and how to read
// another one or none; the settings beside it are nil or only fit for remarks.
func (f *FileFlags) Load(a *console.App) (*Config, error) {
	named, set := console.Lookup(a.Environ, fileVariable)
	switch {
	case f.NoConfig && f.Config != "":
		return nil, errors.New("--config names a settings file, and --no-config reads none\nLeave one of them out")
	case f.Config != "":
		return loadBecause(f.Config, a, "--config names it; without --config, heed reads ./proxy.toml if there is one")
	case f.NoConfig, set && named == "":
		return BuiltIn(a.Defaults)
	case set:
		return loadBecause(named, a, "HEED_CONFIG names it\nTo read another file, add --config FILE; to read none, add --no-config")
	}
	return loadBecause("", a, "it is in the working directory\nIf it is not meant for heed, add --no-config, or name heed's file with --config FILE")
}

// Chosen reports whether a flag or the environment selects the settings: a file, or with
// --no-config or an empty HEED_CONFIG none.
func (f *FileFlags) Chosen(a *console.App) bool {
	_, set := console.Lookup(a.Environ, fileVariable)
	return f.NoConfig || f.Config != "" || set
}

// LoadRunning returns the settings of the file that the running heed has; empty: it has none.
// They are ours, those of Load, when a flag or the environment selects them.
func (f *FileFlags) LoadRunning(a *console.App, file string, ours *Config) (*Config, error) {
	switch {
	case f.Chosen(a) || ours != nil && file == ours.File:
		return ours, nil
	case file == "":
		return BuiltIn(a.Defaults)
	}
	return loadBecause(file, a, "the running heed has it; to read another file, add --config FILE")
}

// Again returns the settings of the file that before was read from, or those of Load when
// it was read from none, or is nil.
func (f *FileFlags) Again(a *console.App, before *Config) (*Config, error) {
	if before == nil || before.File == "" {
		return f.Load(a)
	}
	return load(before.File, before.found, a.Defaults)
}

// loadBecause is Load of path. Its error says why that file was read.
func loadBecause(path string, a *console.App, why string) (*Config, error) {
	c, err := Load(path, a.Defaults)
	if err != nil {
		return c, fmt.Errorf("%w\nheed reads %s because %s", err, cmp.Or(path, FileName), why)
	}
	return c, nil
}

// BuiltIn returns the settings that apply without a file.
func BuiltIn(defaults []byte) (*Config, error) {
	c := &Config{}
	if err := c.decode("the built-in proxy.toml", defaults); err != nil {
		return nil, err
	}
	c.lines = nil
	return c, nil
}

// maxFile is the greatest size of a file with settings in bytes.
const maxFile = 8 << 20

// checked returns a value of settings that have been checked, so that there is no error.
func checked[T any](v T, err error) T {
	if err != nil {
		panic("a setting that was checked: " + err.Error())
	}
	return v
}

// RulesProfile returns the profile that Profile names.
func (c *Config) RulesProfile() rules.Profile {
	p, _ := rules.ParseProfile(c.Profile) // it was checked
	return p
}

// Hash returns a hash of the settings in hexadecimal. It does not depend on the file
// that they were read from.
func (c *Config) Hash() string { return console.Digest(c) }

// JoinHash returns a hash of the settings that `heed run` must have in common with
// the daemon it joins: all except listen, [[listener]], drain, drain_after, [admin] and [log].
func (c *Config) JoinHash() string {
	d := *c
	d.Listen, d.ProxyProtocol, d.Listeners, d.Drain, d.DrainAfter, d.Admin, d.Log = nil, nil, nil, 0, 0, AdminConfig{}, LogConfig{}
	return d.Hash()
}

// RoutesKey returns the settings that affect routes to sites, as text. Routes of
// settings with equal keys are interchangeable.
func (c *Config) RoutesKey() string {
	private := fmt.Sprint(c.loopbackOnly()) // access.private_destinations = "auto" depends on it
	w := *c
	w.Listen, w.ProxyProtocol, w.Listeners, w.Drain, w.DrainAfter, w.HTTPS, w.Log, w.Clients = Addresses{private}, nil, nil, 0, 0, HTTPSConfig{}, LogConfig{}, nil
	w.Audit, w.Signals, w.Admin = AuditConfig{}, SignalsConfig{}, AdminConfig{}
	w.Pacing = PacingConfig{RetryAfter: c.Pacing.RetryAfter}
	w.Limits = limit.Limits{SiteConnections: c.Limits.SiteConnections}
	w.Access.Clients, w.Access.Users = nil, ""
	w.Hosts = slices.Clone(c.Hosts)
	for i := range w.Hosts {
		h := &w.Hosts[i]
		h.HTTPS, h.Ports, h.HostRules = "", nil, HostRules{}
	}
	w.Hosts = slices.DeleteFunc(w.Hosts, func(h HostConfig) bool { return reflect.DeepEqual(h, HostConfig{Match: h.Match}) })
	return string(console.MustJSON(w))
}

// fixed lists the settings that a reload cannot change.
var fixed = []string{
	"name", "https.ca_cert", "https.ca_key", "cache.max_bytes", "cache.file", "log.format",
	"audit.enabled", "audit.file", "audit.durability", "audit.on_failure", "audit.keep", "audit.max_size", "audit.clients", "audit.redact",
	"admin.listen",
	"limits.header_bytes", "limits.header_time", "limits.idle_time", "limits.streams",
}

// FixedKeys returns the keys of settings that differ from next and need a restart.
func (c *Config) FixedKeys(next *Config) []string {
	var keys []string
	for _, key := range fixed {
		if !reflect.DeepEqual(c.valueOf(key), next.valueOf(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// valueOf returns the value of a key by its full name.
func (c *Config) valueOf(key string) any {
	v := reflect.ValueOf(*c)
	for part := range strings.SplitSeq(key, ".") {
		v = fieldsByKey(v)[part]
	}
	return v.Interface()
}
