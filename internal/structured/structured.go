// Package structured reads and edits structured header fields (RFC 9651).
//
// Outside package: github.com/dunglas/httpsfv.
package structured

import (
	"errors"

	"github.com/dunglas/httpsfv"
)

// Member is one member of a dictionary.
type Member struct {
	Key string
	// Token is the member's value when that is a token; empty for any other type.
	// Parameters are ignored.
	Token string
}

// Dictionary returns the members of a dictionary (RFC 9651 §3.2) that the lines of a
// field contain, in their order. Of a key that occurs twice the last value counts. An
// error in any member is an error of the whole field.
func Dictionary(lines []string) ([]Member, error) {
	return members(lines, func(key string, value httpsfv.Member) (Member, error) {
		item, _ := value.(httpsfv.Item)
		token, _ := item.Value.(httpsfv.Token)
		return Member{key, string(token)}, nil
	})
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

// Parameter is a parameter of an item or of an inner list (RFC 9651 §3.1.2). Its value is a
// string, an int64, a bool, a []byte or a value of another bare type.
type Parameter struct {
	Name  string
	Value any
}

// Name is a string in an inner list, with its parameters.
type Name struct {
	Value      string
	Parameters []Parameter
	Text       string // as it is serialized, with the parameters
}

// NameList is a member of a dictionary that is an inner list of strings, such as one of
// Signature-Input (RFC 9421 §4.1).
type NameList struct {
	Key        string
	Names      []Name
	Parameters []Parameter // of the list
	Text       string      // as it is serialized, with the parameters
}

// ErrMember is the error of a field with a member of another type than the caller expects.
var ErrMember = errors.New("a member of the field has another type")

// NameLists returns the members of a dictionary, all of which are inner lists of strings.
func NameLists(lines []string) ([]NameList, error) {
	return members(lines, func(key string, value httpsfv.Member) (NameList, error) {
		list, ok := value.(httpsfv.InnerList)
		if !ok {
			return NameList{}, ErrMember
		}
		return nameList(key, list)
	})
}

func nameList(key string, list httpsfv.InnerList) (n NameList, err error) {
	n = NameList{Key: key, Parameters: parameters(list.Params)}
	for _, item := range list.Items {
		value, ok := item.Value.(string)
		if !ok {
			return n, ErrMember
		}
		text, err := httpsfv.Marshal(item)
		if err != nil {
			return n, err
		}
		n.Names = append(n.Names, Name{value, parameters(item.Params), text})
	}
	n.Text, err = httpsfv.Marshal(list)
	return n, err
}

func parameters(p *httpsfv.Params) (all []Parameter) {
	if p == nil {
		return nil
	}
	for _, name := range p.Names() {
		value, _ := p.Get(name)
		all = append(all, Parameter{name, value})
	}
	return all
}

// Value is a member of a dictionary that is an item with a value of type T.
type Value[T any] struct {
	Key   string
	Value T
	Plain bool // it has no parameters
}

// Strings returns the members of a dictionary, all of which are strings.
func Strings(lines []string) ([]Value[string], error) { return members(lines, valueOf[string]) }

// ByteSequences returns the members of a dictionary, all of which are byte sequences.
func ByteSequences(lines []string) ([]Value[[]byte], error) { return members(lines, valueOf[[]byte]) }

func valueOf[T any](key string, member httpsfv.Member) (v Value[T], err error) {
	item, ok := member.(httpsfv.Item)
	if v.Key = key; !ok {
		return v, ErrMember
	}
	if v.Value, ok = item.Value.(T); !ok {
		return v, ErrMember
	}
	v.Plain = len(parameters(item.Params)) == 0
	return v, nil
}

// members returns what read makes of the members of a dictionary, in their order.
func members[T any](lines []string, read func(string, httpsfv.Member) (T, error)) ([]T, error) {
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, err
	}
	var all []T
	for _, key := range dictionary.Names() {
		value, _ := dictionary.Get(key)
		v, err := read(key, value)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// String returns the string that the lines of a field contain (RFC 9651 §3.3.3). One with
// parameters is an error.
func String(lines []string) (string, error) {
	item, err := httpsfv.UnmarshalItem(lines)
	if err != nil {
		return "", err
	}
	value, ok := item.Value.(string)
	if !ok || len(parameters(item.Params)) > 0 {
		return "", ErrMember
	}
	return value, nil
}

// Serialized returns the member of a dictionary with a key as it is serialized, with its
// parameters; false when there is none.
func Serialized(lines []string, key string) (text string, ok bool, err error) {
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return "", false, err
	}
	value, ok := dictionary.Get(key)
	if !ok {
		return "", false, nil
	}
	text, err = httpsfv.Marshal(value)
	return text, err == nil, err
}
