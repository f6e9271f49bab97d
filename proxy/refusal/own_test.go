package refusal

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every sentence of a refusal that names the operator of the proxy has another one for heed run,
// which names what to do here.
func TestHeed_TheOwnCommandIsNotSentToAnOperator(t *testing.T) {
	t.Parallel()
	sentence := regexp.MustCompile(`"((?:[^"\\]|\\.)*[oO]perator (?:of this proxy|finds it|has a contract)(?:[^"\\]|\\.)*)"`)
	found := 0
	for _, name := range []string{"problem.go", "refusal.go", "unreachable.go", "use.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range sentence.FindAllStringSubmatch(string(text), -1) {
			found++
			detail := strings.ReplaceAll(m[1], `\"`, `"`)
			if got := own(detail, "site.test"); strings.Contains(got, "perator") {
				t.Errorf("%s: for heed run it is\n%s", name, got)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d sentences", found)
	}
	got := own("It may offer only what heed does not. The operator of this proxy can allow these with old_tls = true at the [[host]] of the site.", "site.test")
	if !strings.Contains(got, `[[host]] match = ["site.test"]`) || !strings.Contains(got, "--config FILE") {
		t.Error(got)
	}
}
