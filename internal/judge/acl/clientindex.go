package acl

import (
	"net/netip"
	"slices"
	"strings"
)

// ClientIndex finds the first of many [[client]] entries that matches, without a look at each. The
// entries must not change. It is safe for concurrent use.
type ClientIndex struct {
	all     []Client
	by      map[clientKey][]int // the entries with a condition, in their order
	bits    []int               // the lengths of the prefixes in by
	lengths []int               // the lengths of the texts in by, in octets
}

// clientKey is a condition of entries: the user that they name, else the listener, else one of
// their networks, else how the User-Agents begin. All else is zero.
type clientKey struct {
	user, listener string
	from           netip.Prefix
	begin          string
}

// few is the number of entries of which each is looked at.
const few = 16

// NewClientIndex returns an index of all.
func NewClientIndex(all []Client) *ClientIndex {
	x := &ClientIndex{all: all}
	if len(all) <= few {
		return x
	}
	x.by = map[clientKey][]int{}
	for i := range all {
		switch c := &all[i]; {
		case c.User != "":
			x.add(clientKey{user: c.User}, i)
		case c.Listener != "":
			x.add(clientKey{listener: c.Listener}, i)
		case len(c.From) > 0:
			for _, p := range c.From {
				x.bits = append(x.bits, p.Bits())
				x.add(clientKey{from: p.Masked()}, i)
			}
		default:
			begin := c.UserAgent.begin()
			x.lengths = append(x.lengths, len(begin))
			x.add(clientKey{begin: begin}, i)
		}
	}
	x.bits, x.lengths = distinct(x.bits), distinct(x.lengths)
	return x
}

func (x *ClientIndex) add(k clientKey, i int) { x.by[k] = append(x.by[k], i) }

func distinct(numbers []int) []int {
	slices.Sort(numbers)
	return slices.Clip(slices.Compact(numbers))
}

// Of returns the first entry that applies to a client; nil when none does.
func (x *ClientIndex) Of(who *ClientInfo) *Client {
	i := x.first(who, who.Addr.BitLen(), func(c *Client) bool { return c.Matches(*who) })
	if i < 0 {
		return nil
	}
	return &x.all[i]
}

// Covering returns the index of the first entry that covers the i-th, which may be i.
func (x *ClientIndex) Covering(i int) int {
	o := &x.all[i]
	like, bits := ClientInfo{User: o.User, Listener: o.Listener, UserAgent: o.UserAgent.begin()}, 0
	if len(o.From) > 0 {
		like.Addr, bits = o.From[0].Addr(), o.From[0].Bits()
	}
	return x.first(&like, bits, func(c *Client) bool { return c.Covers(o) })
}

// first returns the index of the first entry that fits; -1 when none does. An entry that fits
// has the user, the listener or a network of most bits of who, or the beginning of its User-Agent.
func (x *ClientIndex) first(who *ClientInfo, most int, fits func(*Client) bool) int {
	if x.by == nil {
		for i := range x.all {
			if fits(&x.all[i]) {
				return i
			}
		}
		return -1
	}
	found := len(x.all)
	look := func(k clientKey) {
		for _, i := range x.by[k] {
			if i >= found {
				return
			}
			if fits(&x.all[i]) {
				found = i
			}
		}
	}
	if who.User != "" {
		look(clientKey{user: who.User})
	}
	if who.Listener != "" {
		look(clientKey{listener: who.Listener})
	}
	for _, bits := range x.bits {
		if p, err := who.Addr.Prefix(bits); err == nil && bits <= most {
			look(clientKey{from: p})
		}
	}
	agent := strings.ToLower(who.UserAgent)
	for _, n := range x.lengths {
		if n <= len(agent) {
			look(clientKey{begin: agent[:n]})
		}
	}
	if found == len(x.all) {
		return -1
	}
	return found
}
