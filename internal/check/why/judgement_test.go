package why

import (
	"testing"

	"heed/rules"
)

func TestEverySpellingAndWayToAGroupHasWords(t *testing.T) {
	for _, variant := range []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"} {
		if spelling(variant) == variant {
			t.Errorf("%s has no words", variant)
		}
	}
	for _, how := range []rules.How{rules.ByFirst, rules.ByChain, rules.ByPart, rules.ByList} {
		if howText[how] == "" {
			t.Errorf("%s has no words", how)
		}
	}
}
