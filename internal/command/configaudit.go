package command

import (
	"fmt"
	"time"

	"heed/internal/audit"
)

// AuditConfig is [audit]: the record of decisions, and what it must not keep.
type AuditConfig struct {
	Enabled    bool   `toml:"enabled"`    // nothing is recorded otherwise, but for the log
	File       string `toml:"file"`       // empty: auditFile in the state directory
	Durability string `toml:"durability"` // process or disk
	OnFailure  string `toml:"on_failure"` // refuse or continue

	Keep    time.Duration `toml:"keep"`     // 0: as long as max_size lets it
	MaxSize ByteSize      `toml:"max_size"` // 0: any; else at least minRecord

	Clients string   `toml:"clients"` // as audit.ClientsNames: full, truncated or hashed
	Redact  []string `toml:"redact"`  // as audit.CheckRedact takes them
}

// minRecord is how much room a record takes at least while it is written.
const minRecord = 64 << 20

// check notes what cannot be meant.
func (c *AuditConfig) check(d *decoder) {
	if c.MaxSize > 0 && c.MaxSize < minRecord {
		d.problem("audit.max_size", `audit.max_size = %q is less than a record takes while it is written; write %q or more, or "0B" for no bound`, c.MaxSize, ByteSize(minRecord))
	}
	if c.Keep > 0 && c.Keep < time.Minute {
		d.problem("audit.keep", `audit.keep = %q is too short for anybody to read what was recorded; write "1m" or more, or "0s" to go by max_size alone`, shortDuration(c.Keep))
	}
	d.oneOf("audit.durability", c.Durability, "process", "disk")
	d.oneOf("audit.on_failure", c.OnFailure, "refuse", "continue")
	d.oneOf("audit.clients", c.Clients, audit.ClientsNames...)
	for i, pattern := range c.Redact {
		d.note(element("audit.redact", i), checkRedact(pattern))
	}
}

// checkRedact says what is wrong with a pattern, and why its spelling is narrow.
func checkRedact(pattern string) error {
	if err := audit.CheckRedact(pattern); err != nil {
		return fmt.Errorf("%w; api_key, apiKey and api-key are all met by \"apikey\", and by \"key\"", err)
	}
	return nil
}

// notices says what an operator should know of them at every start.
func (c *AuditConfig) notices() []string {
	switch {
	case !c.Enabled:
		return []string{"decisions are not recorded (audit.enabled = false): nobody can show later why a request was allowed"}
	case c.OnFailure == "continue":
		return []string{`requests go on unrecorded while the record cannot be written (audit.on_failure = "continue")`}
	}
	return nil
}
