package command

import (
	"fmt"
	"path/filepath"

	"heed/internal/audit/replay"
	"heed/rules"
)

// recordedPolicies returns where the record at path is, if policies can be had
// from it.
func recordedPolicies(path string) (string, error) {
	p, err := replay.OpenPolicies(path, rules.Standard)
	if err != nil {
		return "", err
	}
	defer p.Close()
	if p.Len() == 0 {
		return "", fmt.Errorf("the record %s has no robots.txt of any site\nName that of a run in which some were asked for", path)
	}
	return filepath.Abs(path)
}
