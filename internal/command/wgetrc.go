package command

import (
	"bytes"
	"os"
	"strings"
)

// wgetrcMark begins what heed adds to the user's settings of wget.
const wgetrcMark = "# Added by heed:\n"

// wgetSettings is a user's wgetrc as far as it stays in force.
type wgetSettings struct {
	kept []byte   // its text, lines that lead round heed made remarks
	cas  []string // CA files it names
}

// readWgetrc reads the user's settings. No file, or one that cannot be read,
// is one without settings: wget would go on without it, too.
func readWgetrc(path string) wgetSettings {
	data, _ := os.ReadFile(path)
	if before, _, ours := bytes.Cut(data, []byte(wgetrcMark)); ours {
		data = before // a run inside a run
	}
	var s wgetSettings
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, "=")
		switch wgetKey(key) {
		case "httpproxy", "httpsproxy", "useproxy", "noproxy":
			line = "# not behind heed: " + line // they win over the environment
		case "cacertificate":
			s.cas = append(s.cas, strings.TrimSpace(value))
		}
		s.kept = append(s.kept, line...)
	}
	if n := len(s.kept); n > 0 && s.kept[n-1] != '\n' {
		s.kept = append(s.kept, '\n')
	}
	return s
}

// with returns the settings with the bundle as wget's roots.
func (s wgetSettings) with(bundle string) []byte {
	return append(bytes.Clone(s.kept), wgetrcMark+"ca_certificate = "+bundle+"\n"...)
}

// wgetKey writes a command as wget compares it: case, - and _ do not matter.
func wgetKey(key string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(strings.TrimSpace(key)))
}
