package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"heed/cache"
	"heed/rules"
)

// town is the network of a test: addresses of 127/8 that are public in its
// class table, a resolver, and a dialler that records and refuses whatever lies
// outside loopback.
type town struct {
	t *testing.T

	mu      sync.Mutex
	names   map[string]string // to addresses, with spaces between several
	reached []string          // outside loopback, had the dialler let it
}

var errOutside = errors.New("refused by the test")

// townClasses is Classify, but for two parts of loopback.
func townClasses(a netip.Addr) Class {
	switch {
	case netip.MustParsePrefix("127.1.0.0/16").Contains(a):
		return Public
	case netip.MustParsePrefix("127.2.0.0/16").Contains(a):
		return Private
	}
	return Classify(a)
}

func (w *town) transport() *http.Transport { return w.transportTo(nil) }

// transportTo is a transport that goes to some destinations only.
func (w *town) transportTo(d *Destinations) *http.Transport {
	t := NewTransport(TransportConfig{Destinations: d, dialer: net.Dialer{
		Resolver: w.resolver(),
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			if ap := netip.MustParseAddrPort(address); !ap.Addr().Unmap().IsLoopback() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.reached = append(w.reached, address)
				return errOutside
			}
			return nil
		},
	}})
	w.t.Cleanup(t.CloseIdleConnections)
	return t
}

// resolver asks a name server on loopback that knows w.names.
func (w *town) resolver() *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := w.resolve(buf[:n]); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (w *town) resolve(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	name, _, _ := strings.Cut(q.Name.String(), ".test.")
	w.mu.Lock()
	addresses := w.names[name+".test"]
	w.mu.Unlock()
	for address := range strings.FieldsSeq(addresses) {
		head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}
		switch a := netip.MustParseAddr(address); {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	reply, err := m.Pack()
	if err != nil {
		w.t.Error(err)
	}
	return reply
}

// site serves h at an address of loopback and returns its port.
func (w *town) site(address string, h http.HandlerFunc) (port string) {
	w.t.Helper()
	return w.at(address+":0", h)
}

// at is site for an address with a port.
func (w *town) at(address string, h http.HandlerFunc) (port string) {
	w.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	s.Start()
	w.t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// policy asks for the policy of host:port over t, guarded.
func (w *town) policy(t *http.Transport, hostPort string) rules.Source {
	w.t.Helper()
	o, err := rules.ParseOrigin("http", hostPort)
	if err != nil {
		w.t.Fatal(err)
	}
	c := cache.New(cache.Config{Transport: t, PerFetch: guardRedirects(only(t), townClasses)})
	return c.Policy(w.t.Context(), o, "").Source()
}

func townRobots(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "User-agent: *\nDisallow: /p\n")
}

func redirectTo(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}
}

// A site anybody may put up must not have heed fetch what only heed can reach.
func TestHeed_ARedirectReachesNothingLessPublic(t *testing.T) {
	w := &town{t: t, names: map[string]string{
		"site.test": "127.1.0.1", "inside.test": "127.2.0.1", "loop.test": "127.0.0.1", "ten.test": "10.0.0.1",
		"local.test": "169.254.1.1", "meta.test": "169.254.169.254", "ula.test": "fd00::1", "mapped.test": "64:ff9b::7f00:1",
	}}
	var asked atomic.Int32
	count := func(rw http.ResponseWriter, r *http.Request) { asked.Add(1); townRobots(rw, r) }
	private, loop := w.site("127.2.0.1", count), w.site("127.0.0.1", count)
	for _, location := range []string{
		"http://inside.test:" + private + "/", "http://127.2.0.1:" + private + "/robots.txt",
		"http://loop.test:" + loop + "/", "http://127.0.0.1:" + loop + "/", "http://localhost:" + loop + "/",
		"http://[::ffff:127.0.0.1]:" + loop + "/", "http://0.0.0.0:" + loop + "/", "http://[::]:" + loop + "/",
		"http://10.0.0.1/", "http://ten.test/", "http://192.168.1.1/", "http://100.64.0.1/", "http://[fd00::1]/", "http://ula.test/",
		"http://169.254.1.1/", "http://local.test/", "http://[fe80::1]/",
		"http://169.254.169.254/latest/meta-data/", "http://meta.test/", "http://[fd00:ec2::254]/", "http://168.63.129.16/",
		"http://[64:ff9b::a9fe:a9fe]/", "http://mapped.test/", "http://[2002:7f00:1::]/", "http://[2001:0:808:808::80ff:fffe]/",
		"http://224.0.0.1/", "http://192.0.2.1/", "http://198.18.0.1/", "http://255.255.255.255/",
	} {
		port := w.site("127.1.0.1", redirectTo(location))
		src := w.policy(w.transport(), "site.test:"+port)
		if src.State != rules.Unreachable || src.NoConnection || !errors.Is(src.Err, errLessPublic) {
			t.Errorf("%s: %+v", location, src)
		}
	}
	if len(w.reached) > 0 || asked.Load() > 0 {
		t.Errorf("dialled %v, %d requests arrived", w.reached, asked.Load())
	}
}

func TestHeed_ARedirectMayReachWhatIsAsPublic(t *testing.T) {
	w := &town{t: t, names: map[string]string{"site.test": "127.1.0.1", "other.test": "127.1.0.2", "inside.test": "127.2.0.1"}}
	public, private := w.site("127.1.0.2", townRobots), w.site("127.2.0.2", townRobots)
	follows := func(from, address, location string) {
		t.Helper()
		port := w.site(address, redirectTo(location))
		if src := w.policy(w.transport(), from+":"+port); src.State != rules.Available {
			t.Errorf("from %s to %s: %+v", from, location, src)
		}
	}
	follows("site.test", "127.1.0.1", "http://other.test:"+public+"/")
	follows("127.1.0.3", "127.1.0.3", "http://other.test:"+public+"/")
	follows("inside.test", "127.2.0.1", "http://127.2.0.2:"+private+"/") // the client's own target is private
	follows("inside.test", "127.2.0.1", "http://other.test:"+public+"/")
	follows("127.0.0.1", "127.0.0.1", "http://127.2.0.2:"+private+"/")

	// The guard lets the public pass: what stops it is the test's dialler.
	port := w.site("127.1.0.1", redirectTo("http://8.8.8.8/"))
	if src := w.policy(w.transport(), "site.test:"+port); !errors.Is(src.Err, errOutside) {
		t.Errorf("to a public address: %+v", src)
	}
	if fmt.Sprint(w.reached) != "[8.8.8.8:80]" {
		t.Errorf("dialled %v", w.reached)
	}
}

// The way down may have several steps, and what counts is where it began.
func TestHeed_TheFirstHopDecidesForAllRedirects(t *testing.T) {
	w := &town{t: t, names: map[string]string{"site.test": "127.1.0.1"}}
	loop := w.site("127.0.0.1", townRobots)
	second := w.site("127.1.0.2", redirectTo("http://127.0.0.1:"+loop+"/"))
	port := w.site("127.1.0.1", redirectTo("http://127.1.0.2:"+second+"/"))
	if src := w.policy(w.transport(), "site.test:"+port); !errors.Is(src.Err, errLessPublic) {
		t.Errorf("%+v", src)
	}
	private := w.site("127.2.0.1", townRobots)
	second = w.site("127.1.0.2", redirectTo("http://127.2.0.1:"+private+"/"))
	port = w.site("127.2.0.1", redirectTo("http://127.1.0.2:"+second+"/"))
	if src := w.policy(w.transport(), "127.2.0.1:"+port); src.State != rules.Available {
		t.Errorf("from private over public to private: %+v", src)
	}
}

// A connection that was dialled for somebody who may is not one for a redirect.
func TestHeed_ARedirectUsesNoKeptConnection(t *testing.T) {
	w := &town{t: t}
	var asked atomic.Int32
	inside := w.site("127.2.0.1", func(rw http.ResponseWriter, r *http.Request) { asked.Add(1); townRobots(rw, r) })
	tr := w.transport()
	r, _ := http.NewRequest("GET", "http://127.2.0.1:"+inside+"/", nil)
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	port := w.site("127.1.0.1", redirectTo("http://127.2.0.1:"+inside+"/"))
	if src := w.policy(tr, "127.1.0.1:"+port); !errors.Is(src.Err, errLessPublic) || asked.Load() != 1 {
		t.Errorf("%d requests, %+v", asked.Load(), src)
	}
}

func TestHeed_ARedirectLeavesNoConnectionBehind(t *testing.T) {
	w := &town{t: t}
	var closes atomic.Int32
	other := w.site("127.1.0.2", func(rw http.ResponseWriter, r *http.Request) {
		if r.Close {
			closes.Add(1)
		}
		townRobots(rw, r)
	})
	port := w.site("127.1.0.1", redirectTo("http://127.1.0.2:"+other+"/robots.txt"))
	if src := w.policy(w.transport(), "127.1.0.1:"+port); src.State != rules.Available || closes.Load() != 1 {
		t.Errorf("%d closed after use, %+v", closes.Load(), src)
	}
}

// Between a look and a dial a name may move: what is dialled is what is judged.
func TestHeed_ANameThatMovesIsJudgedWhereItIsDialled(t *testing.T) {
	w := &town{t: t, names: map[string]string{"site.test": "127.1.0.1"}}
	var loop string
	site := func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.names["site.test"] = "127.0.0.1"
		w.mu.Unlock()
		redirectTo("http://site.test:"+loop+"/robots.txt")(rw, r)
	}
	loop = w.site("127.0.0.1", townRobots)
	port := w.site("127.1.0.1", site)
	if src := w.policy(w.transport(), "site.test:"+port); !errors.Is(src.Err, errLessPublic) {
		t.Errorf("%+v", src)
	}
}

func TestHeed_ARedirectNeverReachesHeedItself(t *testing.T) {
	w := &town{t: t}
	var asked atomic.Int32
	own := w.site("127.1.0.9", func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	self := &Addrs{}
	self.Add(net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.1.0.9:" + own)))
	tr := NewTransport(TransportConfig{Self: self})
	t.Cleanup(tr.CloseIdleConnections)
	port := w.site("127.1.0.1", redirectTo("http://127.1.0.9:"+own+"/robots.txt"))
	if src := w.policy(tr, "127.1.0.1:"+port); !errors.Is(src.Err, errSelf) || asked.Load() != 0 {
		t.Errorf("%d requests, %+v", asked.Load(), src)
	}
}

// Behind another proxy names are resolved there; addresses show what they are.
func TestHeed_RedirectsBehindAnotherProxy(t *testing.T) {
	w := &town{t: t}
	location := ""
	var asked []string
	upstream := w.site("127.0.0.1", func(rw http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.URL.String()); len(asked) == 1 {
			redirectTo(location)(rw, r)
			return
		}
		townRobots(rw, r)
	})
	tr := w.transport()
	tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:" + upstream})
	ends := func(from, to string, refused bool) {
		t.Helper()
		asked, location = nil, to
		src := w.policy(tr, from)
		if refused && (!errors.Is(src.Err, errLessPublic) || len(asked) != 1) || !refused && src.State != rules.Available {
			t.Errorf("from %s to %s: asked %v, %+v", from, to, asked, src)
		}
	}
	ends("site.test", "http://other.test/", false)
	ends("site.test", "http://127.0.0.1/", true)
	ends("site.test", "http://[::1]/", true)
	ends("site.test", "http://169.254.169.254/", true)
	ends("site.test", "http://a.localhost/", true)
	ends("8.8.8.8", "http://10.0.0.1/", true)
	ends("10.0.0.1", "http://10.0.0.2/", false)
	ends("10.0.0.1", "http://127.0.0.1/", true)
}

// What was not seen to connect counts as public.
func TestHeed_WithoutAFirstAddressOnlyThePublicIsReached(t *testing.T) {
	w := &town{t: t}
	loop := w.site("127.0.0.1", townRobots)
	tr := w.transport()
	g := guardRedirects(only(tr), townClasses)().(*guardedFetch)
	g.begun = true
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:"+loop+"/", nil)
	if _, err := g.RoundTrip(r); !errors.Is(err, errLessPublic) {
		t.Errorf("err %v", err)
	}
}
