package rules_test

import (
	"reflect"
	"testing"

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
		if got := rules.Identify(agent).Dropped(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", agent, got, want)
		}
	}
	if got := rules.Declare("Mozilla/5.0").Dropped(); got != nil {
		t.Errorf("declared: %+v", got)
	}
}
