package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"heed/internal/judge/acl"
	"heed/rules"
)

// TestARequestWithoutANameIsJudgedByTheStrictestFile has a site that refuses heed its
// robots.txt, and gives one to clients with a name. A client that leaves its name out
// must not get what the site refuses to those.
func TestARequestWithoutANameIsJudgedByTheStrictestFile(t *testing.T) {
	for _, mode := range []acl.Mode{acl.Enforce, acl.Observe} {
		t.Run(mode.String(), func(t *testing.T) {
			s := newSite(t, hello)
			s.serve(t, "picky.test", &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch name, _, _ := strings.Cut(r.UserAgent(), "/"); {
				case r.URL.Path != "/robots.txt":
				case name == "First":
					fmt.Fprint(w, "User-agent: *\nDisallow: /first\n")
				case name == "Second":
					fmt.Fprint(w, "User-agent: *\nDisallow: /second\n")
				default:
					w.WriteHeader(http.StatusForbidden)
				}
			})})
			r := newRigBefore(t, s, func(c *Config) { settle(c, &acl.Rules{Mode: mode}) })
			ask := func(path string, header ...string) {
				resp := r.ask(plain, question{host: "picky.test", path: path, header: header})
				resp.Body.Close()
			}
			ask("/first?before")
			ask("/named", "User-Agent: First/1")
			ask("/named", "User-Agent: Second/1")
			ask("/first")
			ask("/second")
			ask("/third")
			refused := rules.Refuse
			if mode == acl.Observe {
				refused = rules.WouldRefuse
			}
			for target, want := range map[string]struct {
				verdict rules.Verdict
				askedAs string // of the file
			}{
				"/first?before": {rules.Allow, ""}, "/first": {refused, "First/1"}, "/second": {refused, "Second/1"}, "/third": {rules.Allow, ""},
			} {
				e := r.records.target(t, target)
				if e.Decision.Verdict != want.verdict || e.Policy.Source().RetriedAs != want.askedAs || e.Policy.Source().Snapshot == nil {
					t.Errorf("%s: %+v by the file asked as %q", target, e.Decision, e.Policy.Source().RetriedAs)
				}
			}
		})
	}
}
