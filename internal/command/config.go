package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heed/rules"
)

// configName is the file that is read when it lies in the working directory.
const configName = "proxy.toml"

// Config is the settings of proxy.toml, checked. Paths are absolute.
type Config struct {
	Listen  Addresses     `toml:"listen"`
	Profile string        `toml:"profile"` // a name that rules.ParseProfile knows
	Contact string        `toml:"contact"` // URL or mail address; empty: none
	Name    string        `toml:"name"`    // pseudonym in Via; empty: see ProxyName
	Drain   time.Duration `toml:"drain"`   // how long a stop waits for running exchanges

	HTTPS    HTTPSConfig    `toml:"https"`
	Cache    CacheConfig    `toml:"cache"`
	Fleet    FleetConfig    `toml:"fleet"`
	Pacing   PacingConfig   `toml:"pacing"`
	Access   AccessConfig   `toml:"access"`
	Limits   LimitsConfig   `toml:"limits"`
	Upstream UpstreamConfig `toml:"upstream"`
	Audit    AuditConfig    `toml:"audit"`
	Log      LogConfig      `toml:"log"`

	Clients []ClientConfig `toml:"client"` // the first that fits a request is about it
	Hosts   []HostConfig   `toml:"host"`   // of each setting the first that fits a host and has it counts

	// Observe is --observe: nothing is refused.
	Observe bool `toml:"-" json:",omitempty"`

	// File is where the settings were read from; empty for the built-in ones.
	File string `toml:"-" json:"-"`
}

// HTTPSConfig is [https]: what becomes of https, and which CA signs for
// intercepted sites.
type HTTPSConfig struct {
	Mode   string `toml:"mode"`    // of hosts that no [[host]] is about; see terms.HTTPS
	Pinned string `toml:"pinned"`  // of hosts that are known to pin certificates, the same; empty: as of the others
	CACert string `toml:"ca_cert"` // PEM file; empty: the CA of the state directory
	CAKey  string `toml:"ca_key"`  // set exactly when CACert is
}

// HostConfig is [[host]]: what holds for the hosts that are asked for.
type HostConfig struct {
	Match []string `toml:"match"` // as terms.ParseHostPattern takes them
	HTTPS string   `toml:"https"` // as HTTPSConfig.Mode; empty: as that says
	Ports []int64  `toml:"ports"` // that tunnels may go to; empty: 443

	HostUpstream
	HostTerms
}

// CacheConfig is [cache]: where policies are kept, and how many.
type CacheConfig struct {
	MaxBytes ByteSize `toml:"max_bytes"` // of memory; at least minMemory
	File     string   `toml:"file"`      // ends in .db; empty: policiesFile in the state directory
}

// FleetConfig is [fleet]: the store that several heeds share.
type FleetConfig struct {
	URL    string `toml:"url"`     // as fleet.CheckURL says, or where that stands, as revealed has it; empty: there is none
	CAFile string `toml:"ca_file"` // PEM file of further roots for rediss://; empty: none
}

// UpstreamConfig is [upstream]: how sites are reached.
type UpstreamConfig struct {
	Proxy                 string            `toml:"proxy"`   // empty: none; "env"; a URL; or where that stands, as revealed has it
	CAFile                string            `toml:"ca_file"` // PEM file of further roots; empty: none
	Resolve               map[string]string `toml:"resolve"` // "host:port" to "address:port"
	ResponseHeaderTimeout time.Duration     `toml:"response_header_timeout"`
}

// LogConfig is [log]: the line per decision.
type LogConfig struct {
	Format string `toml:"format"` // auto, text or json
	Level  string `toml:"level"`  // debug, info, warn or error
	Mark   bool   `toml:"mark"`   // answers name their decisions
}

// Load reads the settings from path, over those of defaults, the built-in
// proxy.toml. An empty path means proxy.toml in the working directory if there
// is one, else the defaults alone. All that is wrong with the file is in the
// error, each with file and line.
func Load(path string, defaults []byte) (*Config, error) {
	c, err := builtInConfig(defaults)
	if err != nil {
		return nil, err
	}
	data, path, err := readConfig(path)
	if err != nil || path == "" {
		return c, err
	}
	c.File = path
	if err := c.decode(path, data); err != nil {
		return nil, err
	}
	return c, nil
}

// builtInConfig returns the settings of a heed that has no file.
func builtInConfig(defaults []byte) (*Config, error) {
	c := &Config{}
	if err := c.decode("the built-in proxy.toml", defaults); err != nil {
		return nil, err
	}
	return c, nil
}

// readConfig returns an empty path when there is no file to read.
func readConfig(path string) (data []byte, abs string, err error) {
	name := path
	if name == "" {
		name = configName
	}
	data, err = os.ReadFile(name)
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("the settings cannot be read: %w", err)
	}
	abs, err = filepath.Abs(name)
	return data, abs, err
}

// profile is what Profile names.
func (c *Config) profile() rules.Profile {
	p, _ := rules.ParseProfile(c.Profile) // it was checked
	return p
}

// Hash identifies the settings: equal settings have equal hashes, wherever
// they were read from.
func (c *Config) Hash() string { return c.hash(*c) }

// JoinHash identifies the settings that a `heed run` shares with the heed it
// joins: all but where that one listens, how it logs and how long it drains.
func (c *Config) JoinHash() string {
	d := *c
	d.Listen, d.Drain, d.Log = nil, 0, LogConfig{}
	return c.hash(d)
}

func (c *Config) hash(d Config) string {
	text, err := json.Marshal(d)
	if err != nil {
		panic("settings of plain strings and numbers cannot be marshalled: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
