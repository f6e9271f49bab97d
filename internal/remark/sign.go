package remark

import (
	"slices"
	"strings"

	"heed/internal/config"
)

// signing returns the remarks on signatures: keys that several robots share, so that sites
// cannot tell them apart (draft-ietf-webbotauth-httpsig-protocol-01, Key Reuse Considered
// Harmful).
func signing(c *config.Config) (all []config.Finding) {
	keys := map[string]string{}
	if c.Robots.Sign != nil {
		keys[c.Robots.Sign.Key] = "heed itself ([robots])"
	}
	robot := func(cl *config.ClientConfig) string { return strings.Join(cl.Agent, " ") + "\n" + cl.SendUserAgent }
	for i := range c.Clients {
		cl := &c.Clients[i]
		if cl.Sign == nil {
			continue
		}
		same := slices.ContainsFunc(c.Clients[:i], func(other config.ClientConfig) bool {
			return other.Sign != nil && *other.Sign == *cl.Sign && robot(&other) == robot(cl)
		})
		if by, shared := keys[cl.Sign.Key]; shared && !same {
			all = append(all, c.FindEntry(i, "client.sign", "client %q is signed with the key of %s, so that sites take both for one robot; make another key with heed identity new", cl.Name, by))
			continue
		}
		keys[cl.Sign.Key] = "client " + cl.Name
	}
	return all
}
