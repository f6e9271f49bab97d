package config

import (
	"log/slog"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/output/console"
)

// AuditConfig holds [audit]: where decisions are recorded, for how long, and what is redacted.
type AuditConfig struct {
	Enabled    bool   `toml:"enabled"`    // false: decisions are written to the log only
	File       string `toml:"file"`       // empty: AuditFile in the state directory
	Durability string `toml:"durability"` // process or disk
	OnFailure  string `toml:"on_failure"` // refuse or continue

	Keep    time.Duration `toml:"keep"`     // 0: limited by MaxSize only
	MaxSize ByteSize      `toml:"max_size"` // 0: unlimited; else at least minRecord

	Clients string   `toml:"clients"` // as audit.ClientsNames: full, truncated or hashed
	Redact  []string `toml:"redact"`  // patterns for audit.CheckRedact
}

// minRecord is the least space, in octets, that a record needs while it is written.
const minRecord = 64 << 20

// check reports the problems of the settings to d.
func (c *AuditConfig) check(d *decoder) {
	if c.MaxSize > 0 && c.MaxSize < minRecord {
		d.problem("audit.max_size", `audit.max_size = %q is less than a record takes while it is written; write %q or more, or "0B" for no bound`, c.MaxSize, ByteSize(minRecord))
	}
	if c.Keep > 0 && c.Keep < time.Minute {
		d.problem("audit.keep", `audit.keep = %q is too short to read what was recorded; write "1m" or more, or "0s" to go by max_size alone`, shortDuration(c.Keep))
	}
	d.oneOf("audit.durability", c.Durability, "process", "disk")
	d.oneOf("audit.on_failure", c.OnFailure, "refuse", "continue")
	d.oneOf("audit.clients", c.Clients, audit.ClientsNames...)
	for i, pattern := range c.Redact {
		if err := audit.CheckRedact(pattern); err != nil {
			d.problem(element("audit.redact", i), `audit.redact.%d: %v; api_key, apiKey and api-key are all matched by "apikey", and by "key"`, i, err)
		}
	}
}

// notices returns the remarks on [audit] that every start prints.
func (c *AuditConfig) notices() []string {
	switch goesOn := c.OnFailure == "continue"; {
	case !c.Enabled && goesOn:
		return []string{`decisions are not recorded (audit.enabled = false), and requests go on while the log cannot be written (audit.on_failure = "continue")`}
	case !c.Enabled:
		return []string{"decisions are not recorded (audit.enabled = false): there is no evidence later of why a request was allowed"}
	case goesOn:
		return []string{`requests go on unrecorded while the record cannot be written (audit.on_failure = "continue")`}
	}
	return nil
}

// StoreOptions returns the options for store.Open. privacy replaces what the record must
// not contain.
func (c *AuditConfig) StoreOptions(privacy *audit.Privacy, log *slog.Logger) store.Options {
	return store.Options{Heed: console.Version(), Disk: c.Durability == "disk", Continue: c.OnFailure == "continue", Privacy: privacy, Log: log}
}

// MinLevel returns the level that Level names.
func (c LogConfig) MinLevel() slog.Level {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(c.Level)) // checked
	return level
}
