package acl

import (
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func origin(t *testing.T, s string) rules.Origin {
	t.Helper()
	scheme, authority, _ := strings.Cut(s, "://")
	return must.Get(rules.ParseOrigin(scheme, authority))(t)
}

func host(t testing.TB, s string) HostPattern {
	t.Helper()
	return must.Get(ParseHostPattern(s))(t)
}

func exception(t *testing.T, e Exception) *Exception {
	t.Helper()
	return must.Get(NewException(e))(t)
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestHeed_TheFirstClientThatFitsIsMeant(t *testing.T) {
	b := &Rules{Clients: []Client{
		{Name: "lab", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, UserAgent: NewGlob("labbot*")},
		{Name: "net", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
		{Name: "ann", User: "ann", Listener: "127.0.0.1:3129"},
	}}
	for _, c := range []struct {
		who  ClientInfo
		name string
	}{
		{ClientInfo{Addr: netip.MustParseAddr("192.0.2.7"), UserAgent: "LabBot/1"}, "lab"},
		{ClientInfo{Addr: netip.MustParseAddr("192.0.2.7")}, "net"},
		{ClientInfo{Addr: netip.MustParseAddr("198.51.100.1"), User: "ann", Listener: "127.0.0.1:3129"}, "ann"},
		{ClientInfo{User: "ann", Listener: "127.0.0.1:3128"}, ""},
	} {
		must.Equal(t, (Effective{Client: b.ClientOf(c.who)}).Name(), c.name, "%+v", c.who)
	}
}

func TestHeed_InObserveModeEveryRequestIsAnswered(t *testing.T) {
	o := origin(t, "https://example.org")
	for _, c := range []struct {
		name         string
		standard     Mode
		client, site *Mode
		want         Mode
	}{
		{"nothing said", Enforce, nil, nil, Enforce},
		{"the default observes", Observe, nil, nil, Observe},
		{"a client is enforced though the default observes", Observe, new(Enforce), nil, Enforce},
		{"the site observes", Enforce, new(Enforce), new(Observe), Observe},
		{"the client observes", Enforce, new(Observe), new(Enforce), Observe},
		{"people stay people", Enforce, new(Exempt), new(Observe), Exempt},
	} {
		b := &Rules{Mode: c.standard, Hosts: []Host{{Match: []HostPattern{host(t, "*")}, Mode: c.site}}}
		must.Equal(t, b.For(&Client{Mode: c.client}, o, noon).Mode, c.want, c.name)
	}
}

func TestHeed_ABreakEndsByItself(t *testing.T) {
	b := &Rules{
		Clients:   []Client{{Name: "shop"}},
		Overrides: []ModeOverride{{Mode: Observe, Client: "shop", Host: host(t, "*.example.org"), Since: noon, Until: noon.Add(2 * time.Hour), Reason: "outage"}},
	}
	o := origin(t, "https://www.example.org")
	got := b.For(&b.Clients[0], o, noon.Add(time.Hour))
	must.True(t, got.Mode == Observe && got.ModeOverride.Reason == "outage", "during the break: %+v", got)
	must.Equal(t, b.For(&b.Clients[0], o, noon.Add(2*time.Hour)).Mode, Enforce, "after the break")
	must.Equal(t, b.For(nil, o, noon.Add(time.Hour)).Mode, Enforce, "another client")
	must.Equal(t, b.For(&b.Clients[0], origin(t, "https://example.net"), noon).Mode, Enforce, "another host")
}

func TestHeed_APatternThatCouldNeverMatchIsAnError(t *testing.T) {
	for _, p := range []string{"", "api/", "/a b", "/a#b"} {
		_, err := NewException(Exception{Patterns: []string{p}})
		must.True(t, err != nil, "%q is accepted", p)
	}
}

func TestHeed_EachSettingComesFromTheFirstHostEntryThatHasIt(t *testing.T) {
	e1, e2 := exception(t, Exception{Patterns: []string{"/a"}}), exception(t, Exception{Patterns: []string{"/b"}})
	b := &Rules{Hosts: []Host{
		{Match: []HostPattern{host(t, "www.example.org")}, Exceptions: []*Exception{e1}},
		{Match: []HostPattern{host(t, "*.example.org")}, Mode: new(Observe), Exceptions: []*Exception{e2}, Service: "an API"},
		{Match: []HostPattern{host(t, "*")}, Mode: new(Enforce), Service: "another"},
	}}
	s := b.For(nil, origin(t, "http://www.example.org"), noon).Site
	must.True(t, *s.Mode == Observe && s.Service == "an API" && len(s.Exceptions) == 2, "%+v", s)
	must.Equal(t, b.For(nil, origin(t, "http://www.example.org"), noon).Site, s, "the terms of an origin are put together anew each time")
}

// A host is a part of the text of a whole request, which may have 64 KiB.
func TestHeed_ARememberedSiteHoldsNoRequest(t *testing.T) {
	head := strings.Repeat("x", 1<<10) + "site.test"
	held := weak.Make(unsafe.StringData(head))
	r := &Rules{Hosts: []Host{{Match: []HostPattern{host(t, "site.test")}}}}
	r.siteOf(rules.Origin{Scheme: "http", Host: head[1<<10:], Port: 80})
	head = ""
	runtime.GC()
	must.True(t, held.Value() == nil, "the text of the request is still held")
	runtime.KeepAlive(r)
}
