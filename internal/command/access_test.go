package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestHeed_PrivateDestinationsFollowTheListener(t *testing.T) {
	for _, c := range []struct {
		listen, mode string
		want         bool
	}{
		{"127.0.0.1:3128", "auto", true}, {"localhost:3128", "auto", true}, {"[::1]:0", "auto", true}, {"[::ffff:127.0.0.1]:0", "auto", true},
		{"0.0.0.0:3128", "auto", false}, {":3128", "auto", false}, {"192.0.2.1:3128", "auto", false},
		{"127.0.0.1:3128", "refuse", false}, {"0.0.0.0:3128", "allow", true},
	} {
		d, err := (&Config{Listen: Addresses{c.listen}, Access: AccessConfig{PrivateDestinations: c.mode}}).destinations()
		if err != nil || d.Private != c.want {
			t.Errorf("%s on %s: %v, %v", c.mode, c.listen, d.Private, err)
		}
	}
}

// heed check goes where the proxy would go, and says so where it does not.
func TestHeed_CheckKeepsToTheSameDestinations(t *testing.T) {
	t.Setenv("HEED_STATE", t.TempDir())
	var asked atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "User-agent: *\nDisallow: /private\n")
	}))
	t.Cleanup(site.Close)
	config := func(text string) string { return write(t, filepath.Join(t.TempDir(), "proxy.toml"), "[access]\n"+text) }
	check := func(text string) said {
		return heed(t, "", "check", "--config", config(text), "--agent", "bot", site.URL+"/page")
	}
	s := check(`private_destinations = "refuse"`)
	if s.status != 1 || !strings.Contains(s.out, "refuse "+site.URL+"/page  destination: ") || !strings.Contains(s.out, "a loopback address") || asked.Load() != 0 {
		t.Errorf("%+v, %d requests", s, asked.Load())
	}
	for _, allowed := range []string{"", "private_destinations = \"refuse\"\nallow_to = [\"127.0.0.0/8\"]"} {
		if s := check(allowed); s.status != 0 {
			t.Errorf("%q: %+v", allowed, s)
		}
	}
}
