package audit

import (
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// The command line of a run is kept without what its arguments give away.
func TestHeed_ACommandLineIsKeptWithoutItsSecrets(t *testing.T) {
	p := newPrivacy(t, ClientsFull)
	given := []string{"crawl", "--api-key", "{s1}", "--token={s2}", "-H", "X-Api-Key: {s3}", "MY_TOKEN={s4}", "--depth", "3", "--password", "--verbose",
		"http://me:{s5}@site.test/?sig={s6}&page=2", "--url=http://site.test/?key={s7}", "https://site.test/a:b", "key", "--sort=name", "--token"}
	args := make([]string, len(given))
	for i, arg := range given {
		args[i] = strings.NewReplacer("{", "", "}", "").Replace(arg)
	}
	kept := p.Command(args)
	line := strings.Join(kept, " ")
	for _, secret := range []string{"s1", "s2", "s3", "s4", "s5", "s6", "s7"} {
		if slices.Contains(kept, secret) || strings.Contains(line, "="+secret) || strings.Contains(line, " "+secret) || strings.Contains(line, secret+"@") {
			t.Errorf("%s is kept in %s", secret, line)
		}
	}
	for i, arg := range args {
		if arg == given[i] && kept[i] != arg {
			t.Errorf("%s became %s", arg, kept[i])
		}
	}
	must.True(t, strings.HasPrefix(kept[3], "--token=redacted-") && strings.HasPrefix(kept[5], "X-Api-Key: redacted-"),
		"%q", kept)
}
