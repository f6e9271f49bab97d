package proxy

import (
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// dropForged deletes from h's Proxy-Status the members that claim to be this
// proxy: only heed's own answers carry its name, which is how a client knows
// them (RFC 9209 §2). Members of others stay; a field that names heed and
// cannot be read goes whole.
func dropForged(h http.Header, name string) {
	lines, ok := h["Proxy-Status"]
	if !ok {
		return
	}
	field := strings.Join(lines, ", ") // a list may go over several lines
	if !strings.Contains(strings.ToLower(field), strings.ToLower(name)) {
		return
	}
	delete(h, "Proxy-Status")
	list, err := httpsfv.UnmarshalList([]string{field})
	if err != nil {
		return
	}
	var others httpsfv.List
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok && !claims(item, name) {
			others = append(others, item)
		}
	}
	if text, err := httpsfv.Marshal(others); err == nil && text != "" {
		h["Proxy-Status"] = []string{text}
	}
}

// claims reports whether a member's name, a string or a token, is name in any
// case.
func claims(item httpsfv.Item, name string) bool {
	switch v := item.Value.(type) {
	case string:
		return strings.EqualFold(strings.TrimSpace(v), name)
	case httpsfv.Token:
		return strings.EqualFold(string(v), name)
	}
	return false
}
