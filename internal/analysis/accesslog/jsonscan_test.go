package accesslog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"heed/internal/tools/testkit/must"
)

// walked returns what walk emits.
func walked(s string) (all []string, ok bool) {
	ok = walk(s, make([]byte, 64), func(path []byte, value string) { all = append(all, string(path)+"="+value) })
	return all, ok
}

func TestHeed_ValuesOfJSONAreFoundByTheirPaths(t *testing.T) {
	for s, want := range map[string][]string{
		`{}`: nil, `{"a":[],"b":{},"c":null,"d":true,"e":[[1],2]}`: nil,
		` {"Time_ISO" : -1.5e3 , "b":[ "x", "y" ,{"n":1}],"c":{"D-d":[{"e":7},{"e":8}],"f":0}} `: {"timeiso=-1.5e3", "b=x", "c.dd.e=7", "c.f=0"},
		`{"a":"\u00e9\ud83d\ude00\ud83d\n\/\"\\"}`:                                               {"a=\u00e9\U0001f600\ufffd\n/\"\\"},
		`{"request":"GET /gesch\xC3\xA4ft \x22\xe9"}`:                                            {"request=GET /gesch\u00e4ft \"\xe9"},
		`{"a":"` + "\xff" + `\t"}`:                                                               {"a=\xff\t"},
		strings.Repeat(`{"a":`, maxDepth+1) + `{"a":1},"b":2` + strings.Repeat("}", maxDepth+1):  {strings.Repeat("a.", maxDepth) + "b=2"},
	} {
		got, ok := walked(s)
		must.True(t, ok && slices.Equal(got, want), "%s: %q (%t), want %q", s, got, ok, want)
	}
	for _, s := range []string{"", "[]", "1", `{"a":1`, `{"a":1}}`, `"{"`} {
		got, ok := walked(s)
		must.True(t, !ok && got == nil, "%s: %q", s, got)
	}
}

// FuzzJSON compares the values with those of encoding/json.
func FuzzJSON(f *testing.F) {
	f.Add(`{"a":{"b":["\u00e9\ud83d\ude00",1],"c":{"d":-1e3}},"e":" \"\\/"}`)
	f.Fuzz(func(t *testing.T, s string) {
		var root map[string]string // of texts only, of which encoding/json knows the values
		if json.Unmarshal([]byte(s), &root) != nil || root == nil || !utf8.ValidString(s) {
			walked(s)
			return
		}
		got, ok := walked(s)
		for name, value := range root {
			want := string(appendName(nil, name)) + "=" + value
			must.True(t, value == "" || ok && slices.Contains(got, want), "%q is not among %q", want, got)
		}
	})
}
