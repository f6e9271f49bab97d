package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
)

// RecordedSettings holds everything that decisions depend on besides robots.txt, as the
// record stores it in JSON: the settings without secrets, and what was added to them at
// run time.
type RecordedSettings struct {
	Settings string          `json:"settings"` // as TOML
	Observe  bool            `json:"observe,omitempty"`
	Granted  control.Granted `json:"granted,omitzero"`
	Run      acl.Flags       `json:"run,omitzero"`
}

// recordedSettings returns the settings as the record stores them. Secrets, files and
// routes are left out, since no decision depends on them.
func (c *Config) recordedSettings() *RecordedSettings {
	out := *c
	out.HTTPS.CACert, out.HTTPS.CAKey, out.Access.Users, out.Cache.File, out.Audit.File = "", "", "", "", ""
	out.Fleet, out.Upstream.Proxy, out.Upstream.CAFile = FleetConfig{}, "", ""
	out.Admin, out.Robots = AdminConfig{}, RobotsConfig{}
	out.Clients = slices.Clone(c.Clients)
	for i := range out.Clients {
		out.Clients[i].Sign = nil
	}
	out.Hosts = slices.Clone(c.Hosts)
	for i := range out.Hosts {
		out.Hosts[i].HostUpstream = HostUpstream{}
	}
	return &RecordedSettings{Settings: out.Text(), Observe: c.Observe}
}

// AmendRules applies add to the recorded settings of r and returns r, which it changes:
// r.Text is the new text, and r.Hash the hash of the settings, a "+" and a hash of that
// text. r stays as it is when it has no text or add changes nothing.
func AmendRules(r *acl.Rules, add func(*RecordedSettings)) *acl.Rules {
	if r.Text == "" {
		return r // not made from settings
	}
	var in RecordedSettings
	if err := json.Unmarshal([]byte(r.Text), &in); err != nil {
		panic("the recorded settings cannot be parsed: " + err.Error())
	}
	add(&in)
	text := console.MustJSON(&in)
	if string(text) == r.Text {
		return r
	}
	sum := sha256.Sum256(text)
	settings, _, _ := strings.Cut(r.Hash, "+")
	r.Text, r.Hash = string(text), settings+"+"+hex.EncodeToString(sum[:8])
	return r
}

// RecordedRules returns the rules that a text of the record was made from, without those
// of files (access.users, host.robots_file).
func RecordedRules(text string) (*acl.Rules, error) {
	var in RecordedSettings
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, fmt.Errorf("the settings in the record cannot be read: %w", err)
	}
	c := &Config{Observe: in.Observe}
	if err := c.decode("the settings in the record", []byte(in.Settings)); err != nil {
		return nil, err
	}
	b, err := in.Granted.AddTo(c.baseRules())
	if err != nil {
		return nil, err
	}
	return b.ForRun(in.Run), nil
}
