package why

import (
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestEverySpellingAndWayToAGroupHasWords(t *testing.T) {
	for _, variant := range []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"} {
		must.True(t, spelling(variant) != variant, "%s has no words", variant)
	}
	for _, how := range []rules.How{rules.ByFirst, rules.ByChain, rules.ByPart, rules.ByList} {
		must.True(t, howText[how] != "", "%s has no words", how)
	}
}
