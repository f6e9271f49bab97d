package acl

import (
	"net"
	"testing"

	"heed/internal/tools/testkit/must"
)

type unixAddr struct{}

func (unixAddr) Network() string { return "unix" }
func (unixAddr) String() string  { return "/run/heed/admin.sock" }

func TestAddrs_AListenerIsItsAddressInEverySpelling(t *testing.T) {
	t.Parallel()
	tcp := func(text string) net.Addr {
		return must.Get(net.ResolveTCPAddr("tcp", text))(t)
	}
	one, v6, all, all4 := &Addrs{}, &Addrs{}, &Addrs{}, &Addrs{}
	one.Add(tcp("127.0.0.1:3129"))
	one.Add(unixAddr{})
	v6.Add(tcp("[::1]:3129"))
	all.Add(tcp("[::]:3129"))
	all4.Add(&net.TCPAddr{IP: net.IPv4zero.To4(), Port: 3129})
	for _, c := range []struct {
		host               string
		one, v6, all, all4 bool
	}{
		{"127.0.0.1:3129", true, false, true, true},
		{"127.0.0.1:3128", false, false, false, false},
		{"127.0.0.2:3129", false, false, true, true},
		{"[::1]:3129", false, true, true, false},
		{"[::ffff:127.0.0.1]:3129", true, false, true, true},
		{"[::127.0.0.1]:3129", true, false, true, true},
		{"[64:ff9b::7f00:1]:3129", true, false, true, true},
		{"0.0.0.0:3129", true, true, true, true},
		{"[::]:3129", true, true, true, true},
		{"localhost:3129", true, true, true, true},
		{"a.localhost:3129", true, true, true, true},
		{"notlocalhost:3129", false, false, false, false},
		{"192.0.2.200:3129", false, false, false, false},
		{"site.test:3129", false, false, false, false},
		{"", false, false, false, false},
		{"127.0.0.1", false, false, false, false},
		{"127.0.0.1:99999", false, false, false, false},
	} {
		got := [4]bool{one.Has(c.host), v6.Has(c.host), all.Has(c.host), all4.Has(c.host)}
		must.Equal(t, got, [4]bool{c.one, c.v6, c.all, c.all4}, c.host)
	}
	interfaces := must.Get(net.InterfaceAddrs())(t)
	for _, i := range interfaces {
		if n, ok := i.(*net.IPNet); ok && !all.Has(net.JoinHostPort(n.IP.String(), "3129")) {
			t.Errorf("%s is an address of this machine", n.IP)
		}
	}
	one.Remove(tcp("127.0.0.1:3129"))
	must.True(t, !one.Has("127.0.0.1:3129") && len(one.all()) == 0 && !(&Addrs{}).Has("0.0.0.0:80"),
		"a removed listener is left")
}
