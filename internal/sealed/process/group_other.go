//go:build !linux

package process

import "net/netip"

// Group has no processes on this system.
type Group struct{}

// NewGroup returns nil: the system has no /proc.
func NewGroup(int) *Group { return nil }

func (*Group) listeners(netip.AddrPort) (ours, others bool) { return false, false }

func (*Group) accepted(client, at netip.AddrPort) (held, accepted bool) { return false, false }
