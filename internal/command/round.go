package command

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
)

// maxRoundTo bounds the destinations that are named.
const maxRoundTo = 5

// wentRound is what a run's processes were seen to reach without heed. It is
// what samples show: a connection that lasts a few milliseconds can be missed.
type wentRound struct {
	// Watched is false where the system does not show what processes are
	// connected to; then nothing is known.
	Watched     bool      `json:"watched"`
	Connections uint64    `json:"connections"`
	To          []roundTo `json:"to"` // the most first, at most maxRoundTo
}

// roundTo is one destination of one command.
type roundTo struct {
	Command     string `json:"command"`
	To          string `json:"to"`       // address:port
	Protocol    string `json:"protocol"` // tcp or udp
	Connections uint64 `json:"connections"`
}

// print writes the line of the summary; nothing when nobody was seen.
func (r *wentRound) print(w io.Writer) {
	if r == nil || r.Connections == 0 {
		return
	}
	var named []string
	var count uint64
	for _, to := range r.To {
		text := quoted(to.Command) + " to " + to.To
		if to.Protocol == "udp" {
			text += " by UDP"
		}
		if to.Connections > 1 {
			text += fmt.Sprintf(" (%d)", to.Connections)
		}
		named, count = append(named, text), count+to.Connections
	}
	if more := r.Connections - count; more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	fmt.Fprintf(w, "heed: went round heed: %d (not judged): %s\n", r.Connections, strings.Join(named, ", "))
}

// rounds counts connections that do not lead to heed.
type rounds map[roundKey]uint64

type roundKey struct {
	command, protocol string
	to                netip.AddrPort
}

// maxRounds bounds the destinations that are counted apart.
const maxRounds = 1000

func (r rounds) add(k roundKey) {
	if _, known := r[k]; !known && len(r) >= maxRounds {
		k = roundKey{} // of no use but for the sum
	}
	r[k]++
}

// result returns the counts as they are told.
func (r rounds) result() *wentRound {
	out := &wentRound{Watched: true, To: []roundTo{}}
	for k, n := range r {
		out.Connections += n
		if k.command != "" {
			out.To = append(out.To, roundTo{k.command, k.to.String(), k.protocol, n})
		}
	}
	slices.SortFunc(out.To, func(a, b roundTo) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), cmp.Compare(a.To, b.To), cmp.Compare(a.Command, b.Command))
	})
	out.To = out.To[:min(len(out.To), maxRoundTo)]
	return out
}

// addresses returns those of list, host:port each, that are addresses.
func addresses(list []string) map[netip.AddrPort]bool {
	out := map[netip.AddrPort]bool{}
	for _, text := range list {
		if at, err := netip.ParseAddrPort(text); err == nil {
			out[netip.AddrPortFrom(at.Addr().Unmap(), at.Port())] = true
		}
	}
	return out
}
