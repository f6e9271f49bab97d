package bypass

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
)

// No spelling gets a canary through a Squid that asks heed over ICAP; all that it sends to the
// site heed has allowed, in the same octets. Over https with HEED_TEST_FULL=1: the Squid that
// decrypts is not installed for the short form.
func TestSquidAsksHeed_NoSpellingGetsRound(t *testing.T) {
	t.Parallel()
	probes := append(listed(t), generate(rand.New(rand.NewPCG(seed, 1)), share())...)
	for _, s := range servers[:3] {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			at := testkit.FreeAddr(t)
			r := newRig(t, s, "[access]\nprivate_destinations = \"allow\"",
				fmt.Sprintf("[[listener]]\naddress = %q\nmode = \"icap\"\ntrust = [\"127.0.0.1\"]\nconnect = \"bumped\"", at))
			found := r.reach(probes)
			asking := []way{plain}
			if testkit.Full {
				asking = append(asking, mitmH1)
			}
			r.askedBySquid(at)
			var table strings.Builder
			for _, w := range asking {
				table.WriteString(r.throughHeed(w, probes, found).row())
			}
			r.squid.Stop()
			r.recordsAgree()
			t.Logf("%d spellings\n%s%s", len(probes), heading, table.String())
		})
	}
}

// askedBySquid starts a Squid before r that asks heed at an address, with the manual's lines.
func (r *rig) askedBySquid(at string) {
	r.t.Helper()
	lines := strings.Replace(testkit.ManualLines(r.t, "other-proxies", "# squid.conf"), "127.0.0.1:1344", at, 1)
	var bump *testkit.CA
	if testkit.Full {
		bump = testkit.NewCA(r.t)
		r.roots = bump.Pool()
	}
	r.squid = testkit.NewAsking(r.t, lines+"\n", bump, r.ca, r.site)
}
