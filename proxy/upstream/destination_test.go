package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"heed/internal/judge/acl"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// destinations are destinations as an operator writes them.
func destinations(t testing.TB, texts ...string) []acl.Destination {
	t.Helper()
	var out []acl.Destination
	for _, text := range texts {
		d := must.Get(acl.ParseDestination(text))(t)
		out = append(out, d)
	}
	return out
}

// Where a robots.txt redirects to is looked at as what clients ask for is.
func TestDestinations_ApplyToRedirectsOfRobots(t *testing.T) {
	n := testkit.NewNetwork(t, map[string]string{"site.test": "127.1.0.1", "bad.test": "127.1.0.2"})
	other := n.Serve("127.1.0.2", testkit.ServeRobots)
	for _, location := range []string{"http://bad.test:" + other + "/", "http://127.1.0.2:" + other + "/"} {
		port := n.Serve("127.1.0.1", testkit.RedirectTo(location))
		d := &acl.Destinations{Refuse: destinations(t, "bad.test", "127.1.0.2"), ClassOf: networkClasses}
		src := policyOf(t, newTransports(t, TransportConfig{Destinations: d, Dialer: n.Dialer()}), "site.test:"+port)
		must.True(t, src.State == rules.Unreachable && !src.NoConnection && errors.Is(src.Err, acl.ErrDestination),
			"%s: %+v", location, src)
	}
}

// What resolve places is where the operator says, unless it is refused.
func TestDestinations_PlacedHostsAreAllowedUnlessRefused(t *testing.T) {
	n := testkit.NewNetwork(t, nil)
	port := n.Serve("127.2.0.1", testkit.ServeRobots)
	place := map[string]string{"site.test:80": "127.2.0.1:" + port, "10.0.0.9:80": "127.2.0.1:" + port, "bad.test:80": "127.2.0.1:" + port}
	d := &acl.Destinations{Placed: place, Refuse: destinations(t, "bad.test"), ClassOf: networkClasses}
	tr := newTransport(TransportConfig{Destinations: d, Resolve: place})
	t.Cleanup(tr.CloseIdleConnections)
	for host, ok := range map[string]bool{"site.test": true, "10.0.0.9": true, "bad.test": false, "127.2.0.1:" + port: false} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/", nil)
		resp, err := tr.Send(&Request{Request: req})
		if err == nil {
			resp.Body.Close()
		}
		must.Equal(t, err == nil, ok, "%s: %v", host, err)
	}
}

// Behind another proxy, which resolves names, what can be told from the name is.
func TestDestinations_BehindAnotherProxyNamesAndAddressesAreChecked(t *testing.T) {
	n := testkit.NewNetwork(t, nil)
	var asked atomic.Int32
	port := n.Serve("127.2.0.1", func(rw http.ResponseWriter, r *http.Request) { asked.Add(1); testkit.ServeRobots(rw, r) })
	ask := func(d *acl.Destinations, address string) error {
		t.Helper()
		d.ClassOf = networkClasses
		tr := newTransport(TransportConfig{Destinations: d, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.2.0.1:" + port})})
		t.Cleanup(tr.CloseIdleConnections)
		req, _ := http.NewRequestWithContext(t.Context(), "GET", address, nil)
		resp, err := tr.Send(&Request{Request: req})
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	listed := &acl.Destinations{Refuse: destinations(t, "bad.test", "8.8.8.8"), Allow: destinations(t, "a.localhost", "10.1.0.0/16")}
	for _, address := range []string{"http://site.test/", "http://1.1.1.1/", "http://a.localhost/", "http://10.1.2.3/"} {
		must.OK(t, ask(listed, address), address)
	}
	for _, address := range []string{
		"http://bad.test/", "http://8.8.8.8/", "http://localhost/", "http://b.localhost/", "http://10.0.0.1/", "http://169.254.169.254/",
		"http://[::1]/", "http://127.2.0.1:" + port + "/", "https://10.0.0.1/",
	} {
		before := asked.Load()
		err := ask(listed, address)
		must.True(t, err != nil && asked.Load() == before, "%s: %v", address, err)
	}
	must.OK(t, ask(&acl.Destinations{Private: true}, "http://localhost/"), "where private places are allowed")
}
