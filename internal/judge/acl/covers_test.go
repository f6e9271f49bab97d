package acl

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestPatternsThatCoverOthers(t *testing.T) {
	for _, c := range []struct {
		p, q string
		want bool
	}{
		{"*", "a.test", true}, {"*", "*.test:443", true}, {"*:443", "a.test:443", true}, {"*:443", "a.test", false},
		{"*.test", "a.test", true}, {"*.test", "*.a.test", true}, {"*.test", "*.test", true}, {"*.test", "test", false}, {"*.test", "*", false},
		{"*.a.test", "*.test", false}, {"*.test", "a.xtest", false}, {"a.test", "A.test.", true}, {"a.test", "*.a.test", false}, {"a.test:80", "a.test", false},
		{"a.test", "a.test:8080", true},
	} {
		must.Equal(t, host(t, c.p).Covers(host(t, c.q)), c.want, "%s covers %s", c.p, c.q)
	}
	for _, c := range []struct {
		g, o string
		want bool
	}{
		{"", "x", true}, {"*", "", true}, {"", "", true}, {"news*", "NewsBot*", true}, {"*bot*", "news*bot/1*", true}, {"x", "", false}, {"x", "x*", false}, {"*x", "x*", false},
		{"a*b", "a*c*b", true}, {"a*c*b", "a*b", false}, {"a\x00b", "a*b", false},
	} {
		must.Equal(t, NewGlob(c.g).Covers(NewGlob(c.o)), c.want, "%q covers %q", c.g, c.o)
	}
}

// What is covered never matches alone, whatever the patterns are.
func TestACoveredPatternNeverMatchesAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	text := func(alphabet string) string {
		var b strings.Builder
		for range r.IntN(5) {
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	covered := 0
	for range 50_000 {
		name := func() string { return pick("a", "b", "aa", "ab") + pick("", ".a", ".b", ".a.b") }
		p, q := host(t, pick("", "*.")+name()+pick("", ":80")), host(t, pick("", "*.")+name()+pick("", ":80", ":81"))
		if r.IntN(9) == 0 {
			p = host(t, "*"+pick("", ":80"))
		}
		o := rules.Origin{Host: name(), Port: uint16(80 + r.IntN(2))}
		if p.Covers(q) && q.Matches(o) {
			if covered++; !p.Matches(o) {
				t.Fatalf("%s covers %s, but only the latter matches %v", p, q, o)
			}
		}
		g, h, s := NewGlob(text("ab*")), NewGlob(text("ab*")), text("abAB")
		if g.Covers(h) && h.Matches(s) {
			if covered++; !g.Matches(s) {
				t.Fatalf("%q covers %q, but only the latter matches %q", g, h, s)
			}
		}
		client := func() *Client {
			c := &Client{User: pick("", "u", "v"), Listener: pick("", "l"), UserAgent: NewGlob(pick("", "*", "a*", "ab"))}
			for range r.IntN(3) {
				c.From = append(c.From, netip.MustParsePrefix(pick("10.0.0.0/8", "10.1.0.0/16", "10.1.0.1/32", "::/0")))
			}
			return c
		}
		c, d := client(), client()
		who := ClientInfo{Addr: netip.MustParseAddr(pick("10.1.0.1", "10.1.0.2", "10.2.0.1", "192.0.2.1", "::1")), User: pick("", "u", "v"), Listener: pick("l", "m"), UserAgent: pick("", "a", "ab", "b")}
		if c.Covers(d) && d.Matches(who) {
			if covered++; !c.Matches(who) {
				t.Fatalf("%+v covers %+v, but only the latter matches %+v", c, d, who)
			}
		}
	}
	must.True(t, covered >= 1000, "only %d covered matches were seen", covered)
}

// With many entries the same one is meant as with a look at each.
func TestHeed_TheFirstOfManyClientsIsMeant(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	networks := []string{"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "10.1.2.9/24", "::/0", "2001:db8::/32", "2001:db8::1/128"}
	for range 300 {
		all := make([]Client, 3*few)
		for i := range all {
			c := &all[i]
			c.User, c.Listener, c.UserAgent = pick("", "", "", "u", "v"), pick("", "", "", "l", "m"), NewGlob(pick("", "*", "News*", "newsbot/1", "*bot*", "N*1"))
			for range r.IntN(3) {
				c.From = append(c.From, netip.MustParsePrefix(pick(networks...)))
			}
			if c.User+c.Listener == "" && len(c.From) == 0 && r.IntN(3*few) > 0 {
				c.User = "nobody"
			}
		}
		index := NewClientIndex(all)
		for range 50 {
			who := ClientInfo{User: pick("", "u", "w"), Listener: pick("", "l"), UserAgent: pick("", "NewsBot/1", "newsbot/1", "Nobot1", "x")}
			who.Addr, _ = netip.ParseAddr(pick("", "10.1.2.3", "10.1.2.4", "10.9.9.9", "192.0.2.1", "2001:db8::1", "2001:db9::1", "fe80::1%eth0"))
			want := slices.IndexFunc(all, func(c Client) bool { return c.Matches(who) })
			if got := index.Of(&who); got == nil && want >= 0 || got != nil && got != &all[max(want, 0)] {
				t.Fatalf("%+v is %+v, not entry %d", who, got, want)
			}
		}
		for i := range all {
			got, want := index.Covering(i), slices.IndexFunc(all, func(c Client) bool { return c.Covers(&all[i]) })
			must.Need(t, got == want, "entry %d, %+v, is covered by %d, not by %d", i, all[i], got, want)
		}
	}
}
