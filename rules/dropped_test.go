package rules_test

import (
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

func TestHeed_DroppedPiecesAreExplainedWithTheirReason(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string][]rules.Dropped{
		"Mozilla/5.0 (compatible; GoodBot/1.0; +https://example.org/bingbot.htm; bot@example.org)": {
			{Piece: "Mozilla/5.0", Why: rules.DroppedCompatible}, {Piece: "compatible", Why: rules.DroppedCompatible},
			{Piece: "https://example.org/bingbot.htm", Why: rules.DroppedAddress}, {Piece: "bot@example.org", Why: rules.DroppedAddress},
		},
		"curl/8.0": nil,
		"":         nil,
	} {
		must.Same(t, rules.Identify(agent).Dropped(), want, "%q", agent)
	}
	must.Same(t, rules.Declare("Mozilla/5.0").Dropped(), nil, "declared")
}
