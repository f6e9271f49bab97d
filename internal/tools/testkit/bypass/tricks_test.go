package bypass

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// listed reads the targets in testdata/targets.txt: one a line, in the quotes of
// a Go string where it holds what a line cannot; "#" begins a comment line.
func listed(t testing.TB) []probe {
	t.Helper()
	var probes []probe
	for _, line := range lines(t, "testdata/targets.txt") {
		if strings.HasPrefix(line, `"`) {
			target, err := strconv.Unquote(line)
			must.Need(t, err == nil, "targets.txt: %s: %v", line, err)
			line = target
		}
		probes = append(probes, probe{target: line})
	}
	return probes
}

// lines returns the lines of a file without comments and empty ones.
func lines(t testing.TB, path string) (all []string) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if line := scan.Text(); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}
