package refusal

import (
	"errors"

	"heed/proxy/upstream"
	"heed/rules"
)

// Unreached returns why the site of p cannot be reached, when heed does not let itself reach
// it: a destination that is forbidden, or an address of heed's own; empty for all other
// policies.
func Unreached(p *rules.Policy) rules.Reason {
	switch err := p.Source().Err; {
	case !p.Source().NoConnection, err == nil:
	case errors.Is(err, upstream.ErrDestination):
		return rules.ReasonDestination
	case errors.Is(err, upstream.ErrSelf):
		return rules.ReasonLoop
	}
	return ""
}
