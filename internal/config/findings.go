package config

import (
	"errors"
	"fmt"
	"strings"
)

// Finding is a mistake in a settings file, or a remark on it.
type Finding struct {
	File   string `json:"file"`             // or a phrase for settings of another origin
	Line   int    `json:"line,omitempty"`   // 0: unknown
	Column int    `json:"column,omitempty"` // 0: unknown
	Key    string `json:"key,omitempty"`    // full name: limits.connections, host.match; empty: none
	Text   string `json:"text"`             // what is wrong, and what to write instead
}

// String returns file, line and text as compilers write them.
func (f Finding) String() string {
	at := f.File
	for _, n := range []int{f.Line, f.Column} {
		if n > 0 {
			at += fmt.Sprintf(":%d", n)
		}
	}
	return at + ": " + f.Text
}

// Mistakes are the findings because of which settings cannot be used, in the order of the
// file.
type Mistakes []Finding

// Error returns one line per mistake.
func (m Mistakes) Error() string {
	var lines []string
	for _, f := range m {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

// MistakesOf returns the mistakes in err. An error that is about no key is one without a
// line.
func MistakesOf(err error, source string) Mistakes {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all Mistakes
		for _, one := range joined.Unwrap() {
			all = append(all, MistakesOf(one, source)...)
		}
		return all
	}
	if all := (Mistakes)(nil); errors.As(err, &all) {
		return all
	}
	return Mistakes{{File: source, Text: err.Error()}}
}

// Find returns a finding about a key, with its line.
func (c *Config) Find(key, format string, args ...any) Finding {
	return Finding{File: c.Source(), Line: lineOf(c.lines, "", key), Key: key, Text: fmt.Sprintf(format, args...)}
}

// FindEntry returns a finding about a key of the i-th [[client]] or [[host]], from 0.
func (c *Config) FindEntry(i int, key, format string, args ...any) Finding {
	return Finding{File: c.Source(), Line: lineOf(c.lines, entry(i), key), Key: key, Text: fmt.Sprintf(format, args...)}
}

// FindElement returns a finding about the i-th element of a list, from 0.
func (c *Config) FindElement(i int, key, format string, args ...any) Finding {
	f := c.Find(key, format, args...)
	if line := c.lines[element(key, i)]; line > 0 {
		f.Line = line
	}
	return f
}

// lineOf returns the line of the key path, or of the table that it is missing in; 0 when
// neither is known.
func lineOf(lines map[string]int, scope, path string) int {
	if line, ok := lines[scope+path]; ok {
		return line
	}
	if table, _ := cutLast(path); scope != "" {
		if line, ok := lines[scope+table]; ok {
			return line
		}
		path = table
	}
	return lines[path]
}

// FileMistakes returns what is wrong with the files and variables that the settings name, except
// those of https.ca_cert.
func (c *Config) FileMistakes(environ []string) Mistakes {
	d := &decoder{file: c.Source(), lines: c.lines, checking: true}
	c.checkFiles(d)
	c.checkReferences(d, environ)
	_ = d.err() // sorts them
	return d.problems
}
