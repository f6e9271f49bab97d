package sealed

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"

	"golang.org/x/net/dns/dnsmessage"
)

// query returns the octets of a query.
func query(t testing.TB, name string, kind dnsmessage.Type, class dnsmessage.Class) []byte {
	t.Helper()
	n := must.Get(dnsmessage.NewName(name))(t)
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 77, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: class}}}
	return must.Get(m.Pack())(t)
}

// Each name has an A and an AAAA record that lead back to it, whatever its case, and no
// other record; names of this machine and those that cannot exist have none of their own.
func TestNamesResolveToAddressesThatLeadBackToThem(t *testing.T) {
	var n Names
	for _, step := range []struct {
		name  string
		kind  dnsmessage.Type
		class dnsmessage.Class
		code  dnsmessage.RCode
		want  string // an address; empty: no record
	}{
		{"site.test.", dnsmessage.TypeA, dnsmessage.ClassINET, 0, "198.18.0.1"},
		{"SITE.test.", dnsmessage.TypeAAAA, dnsmessage.ClassINET, 0, "fd68:6565:6421::1"},
		{"other.test.", dnsmessage.TypeA, dnsmessage.ClassINET, 0, "198.18.0.2"},
		{"_under-score.test.", dnsmessage.TypeA, dnsmessage.ClassINET, 0, "198.18.0.3"},
		{"site.test.", 65, dnsmessage.ClassINET, 0, ""}, // HTTPS
		{"site.test.", dnsmessage.TypeTXT, dnsmessage.ClassINET, 0, ""},
		{"site.test.", dnsmessage.TypeALL, dnsmessage.ClassINET, 0, ""},
		{"site.test.", dnsmessage.TypeTXT, dnsmessage.ClassCHAOS, dnsmessage.RCodeRefused, ""},
		{".", dnsmessage.TypeA, dnsmessage.ClassINET, 0, ""},
		{"localhost.", dnsmessage.TypeA, dnsmessage.ClassINET, 0, "127.0.0.1"},
		{"x.LOCALHOST.", dnsmessage.TypeAAAA, dnsmessage.ClassINET, 0, "::1"},
		{"heed.invalid.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeNameError, ""},
		{"a b.test.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeNameError, ""},
		{"caf\xe9.test.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeNameError, ""},
	} {
		var m dnsmessage.Message
		must.OK(t, m.Unpack(n.answer(query(t, step.name, step.kind, step.class))), step.name)
		got := ""
		for _, a := range m.Answers {
			must.True(t, a.Header.TTL == nameTTL && a.Header.Name.String() == step.name, "%s: %+v", step.name, a.Header)
			switch b := a.Body.(type) {
			case *dnsmessage.AResource:
				got += netip.AddrFrom4(b.A).String()
			case *dnsmessage.AAAAResource:
				got += netip.AddrFrom16(b.AAAA).String()
			}
		}
		must.True(t, m.ID == 77 && m.Response && m.RCode == step.code && got == step.want,
			"%s %v: %+v, %q; want %v, %q", step.name, step.kind, m.Header, got, step.code, step.want)
	}
	for address, want := range map[string]string{
		"198.18.0.1": "site.test", "::ffff:198.18.0.2": "other.test", "fd68:6565:6421::1": "site.test", "fd68:6565:6421::3": "_under-score.test",
		"198.18.0.0": "", "198.18.0.4": "", "198.19.255.255": "", "192.0.2.1": "", "fd68:6565:6421::ffff:ffff": "", "::1": "",
	} {
		name, ok := n.Name(netip.MustParseAddr(address))
		must.True(t, name == want && ok == (want != ""), "%s: %q, %v", address, name, ok)
	}
}

func TestNamesAreServedOnlyForQueries(t *testing.T) {
	var n Names
	response := query(t, "site.test.", dnsmessage.TypeA, dnsmessage.ClassINET)
	response[2] |= 0x80
	for what, text := range map[string][]byte{"nothing": nil, "half a header": make([]byte, 7), "a response": response} {
		got := n.answer(text)
		must.True(t, got == nil, "%s is answered: %x", what, got)
	}
	update := query(t, "site.test.", dnsmessage.TypeA, dnsmessage.ClassINET)
	update[2] |= 5 << 3
	for code, text := range map[dnsmessage.RCode][]byte{dnsmessage.RCodeNotImplemented: update, dnsmessage.RCodeFormatError: make([]byte, 12)} {
		var m dnsmessage.Message
		err := m.Unpack(n.answer(text))
		must.True(t, err == nil && m.RCode == code, "%v, %+v; want %v", err, m.Header, code)
	}
	must.True(t, len(n.names) == 0, "names: %q", n.names)
}

// When the addresses are used up, further names fail, and those before them stay.
func TestNamesDoNotShareAddresses(t *testing.T) {
	var n Names
	for i := range maxNames {
		_, _, ok := n.Addresses(fmt.Sprintf("h%d.test", i))
		must.Need(t, ok, "no address for name %d", i)
	}
	v4, v6, ok := n.Addresses(fmt.Sprintf("H%d.test.", maxNames-1))
	must.True(t, ok && v4.String() == "198.19.255.254" && v6.String() == "fd68:6565:6421::1:fffe",
		"the last: %v %v %v", v4, v6, ok)
	_, _, ok = n.Addresses("one.more.test")
	must.True(t, !ok, "one more name has an address")
	var m dnsmessage.Message
	err := m.Unpack(n.answer(query(t, "one.more.test.", dnsmessage.TypeA, dnsmessage.ClassINET)))
	must.True(t, err == nil && m.RCode == dnsmessage.RCodeServerFailure, "%v %+v", err, m.Header)
}

// Whatever comes, an answer is a response with the ID of the query, to which an address
// given out leads back, and not larger than a datagram.
func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "site.test.", dnsmessage.TypeA, dnsmessage.ClassINET))
	f.Add(query(f, strings.Repeat("a", 63)+".test.", 65, dnsmessage.ClassINET))
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01")) // a name that points to itself
	f.Fuzz(func(t *testing.T, text []byte) {
		var n Names
		got := n.answer(text)
		if got == nil {
			return
		}
		var m dnsmessage.Message
		must.OK(t, m.Unpack(got), "%x", got)
		must.True(t, m.Response && m.ID == uint16(text[0])<<8|uint16(text[1]) && len(got) <= 512 && len(m.Answers) <= 1,
			"%+v, %d octets", m.Header, len(got))
		for _, a := range m.Answers {
			if b, ok := a.Body.(*dnsmessage.AResource); ok && !netip.AddrFrom4(b.A).IsLoopback() {
				name, ok := n.Name(netip.AddrFrom4(b.A))
				must.True(t, ok && name == canonical(m.Questions[0].Name.String()), "%v leads to %q", b.A, name)
			}
		}
	})
}
