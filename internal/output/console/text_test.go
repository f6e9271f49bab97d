package console

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// What a program reads of a line of JSON is what was written into it.
func TestHeed_EscapesInJSONChangeNothingForPrograms(t *testing.T) {
	valid := strings.ToValidUTF8(testkit.Hostile, "\uFFFD") + "é漢字😀"
	var out bytes.Buffer
	must.OK(t, NewJSON(&out).Encode(valid))
	var back string
	err := json.Unmarshal(out.Bytes(), &back)
	must.True(t, err == nil && back == valid, "%q, %v; want %q", back, err, valid)
	testkit.Harmless(t, "JSON", out.String())
	must.Contain(t, out.String(), "é漢字😀", "what can be seen is escaped")
}

func TestHeed_EveryRefusalWithoutARuleIsExplained(t *testing.T) {
	for _, reason := range []rules.Reason{
		rules.ReasonRobotsUnreachable, rules.ReasonOriginUnreachable, rules.ReasonHostMismatch, rules.ReasonMalformed,
		rules.ReasonLoop, rules.ReasonTunnel, rules.ReasonUntrusted, rules.ReasonHandshake, rules.ReasonRecord, rules.ReasonInternal,
		rules.ReasonDestination, rules.ReasonLimit,
		rules.ReasonHostOnly, rules.ReasonAccess, rules.ReasonNotHTTP,
	} {
		must.True(t, ReasonText(reason) != string(reason), "%s is not put into words", reason)
	}
	must.Equal(t, ReasonText("new-reason"), "new-reason", "an unknown one reads")
}
