package daemon

import (
	"log/slog"
	"time"

	"heed/internal/control"
	"heed/internal/passport"
)

// keys returns the keys that requests are signed with, heed's own first.
func (g *runtimeConfig) keys() (all []control.KeyStatus) {
	add := func(client string, by *passport.Signer) {
		if by != nil {
			k := by.Key()
			all = append(all, control.KeyStatus{Client: client, Key: k.Thumbprint, Agent: by.Agent(), NotBefore: k.NotBefore, NotAfter: k.NotAfter})
		}
	}
	add("", g.pool.Signer())
	for i := range g.rules.Clients {
		add(g.rules.Clients[i].Name, g.rules.Clients[i].Signer)
	}
	return all
}

// warnOfKeys logs which keys of g sign nothing, or soon will not.
func (g *runtimeConfig) warnOfKeys(log *slog.Logger, now time.Time) {
	for _, k := range g.keys() {
		if trouble := k.Trouble(now); trouble != "" {
			log.Warn(trouble)
		}
	}
}
