package bypass

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// endServers are the servers that octets at the ends of a target are sent to. Those that the
// test command does not install take part with HEED_TEST_FULL=1.
func endServers() []server {
	all := []server{{"python", startPython}, {"nginx", startNginx}}
	if testkit.Full {
		all = append(all, server{"apache", startApache}, server{"express", startExpress}, server{"php", startPHP},
			server{"webrick", startWEBrick}, server{"busybox", startBusybox}, server{"lighttpd", startLighttpd}, server{"caddy", startCaddy})
	}
	return all
}

func startCaddy(t testing.TB, root string) string {
	return startAt(t, func(addr string) *exec.Cmd {
		cmd := exec.Command(fullProgram(t, "caddy", "caddy"), "file-server", "--root", root, "--listen", addr)
		cmd.Env = append(cmd.Environ(), "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
		return cmd
	})
}

// endPlaces are targets in which "_" is where octets are put: at the start, at the end, and
// before what ends a path, of pages that a prefix and a rule with "$" disallow.
var endPlaces = []string{
	"/files/canary.pdf_", "_/files/canary.pdf", "/_files/canary.pdf", "/files/canary.pdf_?x=1", "/files/canary.pdf_;x=1", "/files/canary.pdf_#x", "/files/canary.pdf_%23x",
	"/end/canary.html_", "/list/canary.html_?view=secret", "/list/canary.html?view=secret_", "_/private/canary.html", "/_private/canary.html",
	"/caf_/canary.html", "/x/../files/canary.pdf_",
}

// endOctets are the octets from 0x01 to 0xFF, and the blanks of Unicode above ASCII in UTF-8
// with the characters that once were some.
func endOctets() (all []string) {
	for c := 1; c < 0x100; c++ {
		all = append(all, string([]byte{byte(c)}))
	}
	for _, r := range "\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff" {
		all = append(all, string(r))
	}
	return all
}

// endProbes are all octets in all places: alone and doubled, raw and escaped. In the short form
// it has each octet at the end, "é" of ISO 8859-1 everywhere, and every tenth of the others.
func endProbes() (all []probe) {
	n := 0
	for _, octets := range endOctets() {
		var escapes strings.Builder
		for i := range len(octets) {
			fmt.Fprintf(&escapes, "%%%02X", octets[i])
		}
		for _, written := range []string{octets, escapes.String(), octets + octets, escapes.String() + escapes.String()} {
			for i, place := range endPlaces {
				if n++; testkit.Full || i == 0 || octets == "\xe9" || n%10 == 0 {
					all = append(all, probe{target: strings.ReplaceAll(place, "_", written)})
				}
			}
		}
	}
	return append(all, probe{"/open/page.html", true}, probe{"/holes/open/page.html?x=\u00e0", true})
}

// otherURL reports whether a target is another URL than that which a rule with "$" names
// (RFC 9309 §2.2.3): a query or a further segment is behind it. Servers deliver the page for
// it all the same.
func otherURL(target string) bool {
	for _, page := range []string{"/files/canary.pdf", "/end/canary.html"} {
		if _, behind, found := strings.Cut(target, page); found {
			return strings.ContainsAny(behind, "?/") || strings.Contains(behind, "%2F") && strings.ReplaceAll(behind, "%2F", "") != ""
		}
	}
	return false
}

// Octets that a server takes for a blank, for the end of a target or for nothing bring back
// no disallowed page, wherever they are. What comes back is another URL to the standard.
func TestHeed_NoOctetAtAnEndGetsRound(t *testing.T) {
	t.Parallel()
	probes := endProbes()
	for _, s := range endServers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			profiles := []string{"standard"}
			if testkit.Full && s.name == "python" { // only it takes octets for a blank that others do not
				profiles = append(profiles, "strict", "google")
			}
			for _, profile := range profiles {
				r := newRig(t, s, fmt.Sprintf("profile = %q", profile))
				r.endsAre(profile, probes)
				r.recordsAgree()
			}
		})
	}
}

// endsAre asks for all probes, directly and through heed.
func (r *rig) endsAre(profile string, probes []probe) {
	r.t.Helper()
	served := make([]bool, len(probes)) // allowed pages that the server itself delivers: some refuse raw octets
	for _, w := range []way{direct, plain, mitmH1, mitmH2} {
		through, others := make([]bool, len(probes)), make([]bool, len(probes))
		r.askAll(w, probes, func(i int, _ string, got reply) {
			switch {
			case probes[i].open && w == direct:
				served[i] = strings.Contains(got.text, pageToken)
			case probes[i].open && served[i] && !strings.Contains(got.text, pageToken):
				r.t.Errorf("%s, %s, %s: %q does not come through: %.200q", r.name, profile, w, probes[i].target, got.text)
			case got.leaks() && otherURL(probes[i].target):
				others[i] = true
			case got.leaks():
				through[i] = true
			}
		})
		var came, other []string
		for i := range probes {
			if through[i] {
				came = append(came, probes[i].target)
			}
			if others[i] {
				other = append(other, probes[i].target)
			}
		}
		must.True(r.t, w == direct || len(came) == 0,
			"%s, %s, %s: %d of %d spellings bring a canary: %.2000q", r.name, profile, w, len(came), len(probes), came)
		r.t.Logf("%s, %s, %s: of %d spellings, %d bring a canary, and %d that are other URLs: %.600q", r.name, profile, w, len(probes), len(came), len(other), other)
	}
}
