package config

import (
	"fmt"

	"heed/internal/acl"
	"heed/internal/signal"
)

// UseFlags are the flags of the commands that judge by other settings than those of the
// clients: heed run and heed check.
type UseFlags struct {
	AlsoObey []string `sep:"none" placeholder:"NAME" help:"Also obey the groups for NAME, such as CCBot (see heed help purpose)."`
	Purpose  string   `placeholder:"LIST" help:"Obey what sites say of these uses: search, agent, training, archive, tdm."`
}

// Flags returns the settings that the flags request.
func (u *UseFlags) Flags() (f acl.Flags, err error) {
	if f.Purposes, err = signal.ParsePurposes(u.Purpose); err != nil {
		return f, fmt.Errorf("--purpose: %w", err)
	}
	f.AlsoObey = u.AlsoObey
	return f, f.Validate()
}
