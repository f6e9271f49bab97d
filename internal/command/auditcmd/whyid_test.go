package auditcmd

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// FuzzIDRange finds an id that begins with a text and is outside its range, or inside
// without beginning with it.
func FuzzIDRange(f *testing.F) {
	const id = "01a2046f-5a56-73f7-9ea5-60d969b94b07"
	for _, text := range []string{"", "01a204", "01A2046", id, id + "0", "01a204-", "xyz", "01a2046f-5a56-7"} {
		f.Add(text, []byte("0123456789abcdef"))
	}
	f.Fuzz(func(t *testing.T, text string, id []byte) {
		ids, _, ok := idRange(text)
		if !ok || len(id) != idDigits/2 {
			return
		}
		begins := strings.HasPrefix(hex.EncodeToString(id), strings.ToLower(strings.ReplaceAll(text, "-", "")))
		inside := bytes.Compare(ids[0], id) <= 0 && bytes.Compare(id, ids[1]) <= 0
		must.True(t, inside == begins, "%x begins with %q: %v; it is in the range %x: %v", id, text, begins, ids, inside)
	})
}
