package acl

import (
	"cmp"
	"fmt"
	"strings"

	"heed/internal/trust/passport"
	"heed/rules"
)

// Flags are the settings that one `heed run` or `heed check` requests for itself. The zero
// value requests none. Requests to the running heed carry it, and the record has it, as JSON.
type Flags struct {
	Agent     []string      `json:"agent,omitempty"`      // product tokens that it is judged as; empty: by the User-Agent
	UserAgent string        `json:"user_agent,omitempty"` // sent in place of the client's; empty: the client's
	Observe   bool          `json:"observe,omitempty"`    // no request is refused
	Services  []HostPattern `json:"services,omitempty"`   // services that are not crawled

	Terms // those of the settings hold where it has none

	Signer *passport.Signer `json:"-"` // signs its requests; nil: as the settings state it
}

// Validate returns an error for a value that no flag gives.
func (f *Flags) Validate() error {
	for _, token := range f.Agent {
		if err := rules.CheckToken(token); err != nil {
			return fmt.Errorf("--agent: %w", err)
		}
	}
	var wrong error
	f.Check(func(key string, _ int, err error) {
		wrong = cmp.Or(wrong, fmt.Errorf("--%s: %w", strings.ReplaceAll(key, "_", "-"), err))
	})
	if wrong != nil {
		return wrong
	}
	if strings.ContainsFunc(f.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%q cannot be sent as a User-Agent: write printable ASCII", f.UserAgent)
	}
	return nil
}

// RunName is the client name of a run whose Flags have an Agent or a UserAgent.
const RunName = "run"

// serviceReason is the recorded reason for Flags.Services.
const serviceReason = "declared by heed run --service"

// ForRun returns r with the flags of a run or of a check, whose clients need no credentials
// and may be anywhere. The flags have precedence; r may be nil.
func (r *Rules) ForRun(flags Flags) *Rules {
	out := r.copy()
	out.Flags, out.From, out.Users, out.Observe = flags, nil, nil, out.Observe || flags.Observe
	if len(flags.Agent) > 0 || flags.UserAgent != "" {
		client := Client{Name: RunName, SendUserAgent: flags.UserAgent}
		if len(flags.Agent) > 0 {
			client.Agent = rules.Declare(flags.Agent...)
		}
		out.Clients = append([]Client{client}, out.Clients...)
	}
	if len(flags.Services) > 0 {
		out.Hosts = append([]Host{{Match: flags.Services, Service: serviceReason}}, out.Hosts...)
	}
	return out
}
