package safetext

import (
	"encoding/json"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestLossyJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"url":"http://a.test/\u00e4"}`: false, `{"url":"http://a.test/ä"}`: false, "{\"url\":\"http://a.test/\xe4\"}": true,
		`{"url":"\ud83d\ude00"}`: false, `{"url":"\ud83d"}`: true, `{"url":"\ud83dx\ude00"}`: true, `{"url":"\ude00\ud83d"}`: true,
		`{"url":"\\ud83d"}`: false, `{"url":"\\\ud83d"}`: true, `{"url":"\ufffd"}`: false, "{\"url\":\"\ufffd\"}": false,
		"{\"\xff\":1}": true, `{"url":"\ud83d\n"}`: true, `\u`: false, `\ud83`: false, "": false, `\`: false,
	} {
		must.True(t, LossyJSON([]byte(text)) == want, "%q: %v", text, !want)
	}
}

// What is not lossy is decoded without a U+FFFD that it does not have.
func FuzzLossyJSON(f *testing.F) {
	f.Add(`"a\ud83d\ude00"`)
	f.Add("\"\xff\"")
	f.Fuzz(func(t *testing.T, text string) {
		var s string
		if json.Unmarshal([]byte(text), &s) != nil {
			return
		}
		has := strings.Contains(text, "\ufffd") || strings.Contains(strings.ToLower(text), `\ufffd`)
		must.True(t, has || LossyJSON([]byte(text)) == strings.Contains(s, "\ufffd"), "%q is decoded as %q", text, s)
	})
}
