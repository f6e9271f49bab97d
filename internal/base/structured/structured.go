// Package structured reads and edits structured header fields (RFC 9651).
//
// Outside package: github.com/dunglas/httpsfv, a parser of RFC 9651.
package structured

import (
	"strings"

	"github.com/dunglas/httpsfv"
)

// Member is one member of a dictionary.
type Member struct {
	Key string
	// Token is the member's value when that is a token; empty for any other type.
	// Parameters are ignored.
	Token string
	// Text is the value as it is serialized, without Parameters, which begin with a semicolon.
	// Both are empty for an inner list.
	Text, Parameters string
}

// Dictionary returns the members of a dictionary (RFC 9651 §3.2) that the lines of a
// field contain, in their order. Of a key that occurs twice the last value counts. An
// error in any member is an error of the whole field.
func Dictionary(lines []string) ([]Member, error) {
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, err
	}
	var all []Member
	for _, key := range dictionary.Names() {
		m := Member{Key: key}
		value, _ := dictionary.Get(key)
		if item, ok := value.(httpsfv.Item); ok {
			token, _ := item.Value.(httpsfv.Token)
			whole, err := httpsfv.Marshal(item)
			if err != nil {
				return nil, err
			}
			text, err := httpsfv.Marshal(httpsfv.NewItem(item.Value))
			if err != nil {
				return nil, err
			}
			m.Token, m.Text, m.Parameters = string(token), text, strings.TrimPrefix(whole, text)
		}
		all = append(all, m)
	}
	return all, nil
}

// FilterList returns a list (RFC 9651 §3.1) without the members for which drop returns
// true; empty when none is left. drop gets a member that is a string or a token; inner
// lists and members of other types are given as the empty name. An error in any member
// is an error of the whole field.
func FilterList(lines []string, drop func(name string) bool) (string, error) {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return "", err
	}
	var kept httpsfv.List
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok && !drop(nameOf(item)) {
			kept = append(kept, item)
		}
	}
	if len(kept) == 0 {
		return "", nil
	}
	return httpsfv.Marshal(kept)
}

// nameOf returns the name of a member, a string or a token.
func nameOf(item httpsfv.Item) string {
	switch v := item.Value.(type) {
	case string:
		return v
	case httpsfv.Token:
		return string(v)
	}
	return ""
}

// Cut returns what is before the next separator outside quoted strings (RFC 9110 §5.6.4), and
// what is after it.
func Cut(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == separator && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}
