package command

import (
	"fmt"

	"heed/internal/audit"
)

// AuditConfig is [audit]: the record of decisions, and what it must not keep.
type AuditConfig struct {
	Clients string   `toml:"clients"` // as audit.ClientsNames: full, truncated or hashed
	Redact  []string `toml:"redact"`  // as audit.CheckRedact takes them
}

// check notes what cannot be meant.
func (c *AuditConfig) check(d *decoder) {
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
