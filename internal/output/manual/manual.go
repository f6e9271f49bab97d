// Package manual holds the manual that `heed help` prints: one Markdown file per
// topic, embedded in the program.
//
// The first line of a file is its title. The rest is wrapped for a terminal and
// read as it is, so it has no markup beyond headings, lists, backquotes, small
// tables and indented examples.
package manual

import (
	"cmp"
	"embed"
	"slices"
	"strings"
)

//go:embed *.md
var files embed.FS

// Topic is one chapter of the manual.
type Topic struct {
	Name    string // what `heed help` takes: lower-case letters; the name of its file without .md
	Section string // the heading it is listed under
	Title   string // one line, without the mark of a heading
	Text    string // the whole file, with the title; ends with a newline
}

// sections is the order in which topics are listed.
var sections = []struct {
	title  string
	topics []string
}{
	{"First steps", []string{"start"}},
	{"Clients behind heed", []string{"clients", "sealed", "languages", "downloads", "browsers", "containers", "gateway"}},
	{"What is refused, and why", []string{"agents", "rules", "checking", "planning", "purpose", "pacing", "https"}},
	{"Setting heed up for others", []string{"bots", "identity", "access", "upstream", "caching", "other-proxies"}},
	{"Running heed", []string{"operating", "performance", "metrics", "backup", "fleets"}},
	{"The record of decisions", []string{"record", "auditing", "verification", "proofs", "complaints", "accesslogs"}},
	{"Reference", []string{"commands", "settings", "answers", "log", "limitations", "development"}},
}

// Topics returns all topics in the order of the list that `heed help` prints:
// those of a section follow one another.
func Topics() []Topic {
	var all []Topic
	for _, s := range sections {
		for _, name := range s.topics {
			text, err := files.ReadFile(name + ".md")
			if err != nil {
				panic(err) // embedded, and held against the list by a test
			}
			title, _, _ := strings.Cut(string(text), "\n")
			all = append(all, Topic{name, s.title, strings.TrimPrefix(title, "# "), string(text)})
		}
	}
	return all
}

// Lookup returns the topic that is called name; false when there is none.
func Lookup(name string) (Topic, bool) {
	all := Topics()
	i := slices.IndexFunc(all, func(t Topic) bool { return t.Name == name })
	if i < 0 {
		return Topic{}, false
	}
	return all[i], true
}

// Complete returns the text of the topic. That of settings ends with proxy.toml, as an
// example: the file says what each key means.
func (t Topic) Complete(proxyTOML []byte) string {
	if t.Name != "settings" {
		return t.Text
	}
	var b strings.Builder
	b.WriteString(t.Text + "\n")
	for line := range strings.Lines(string(proxyTOML)) {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// Mentioning returns the topics that contain word, in any case: those with the
// word in their title first, then those that contain it most often. No topic
// contains the empty word.
func Mentioning(word string) []Topic {
	word = strings.ToLower(word)
	count := func(t Topic) int {
		n := strings.Count(strings.ToLower(t.Text), word)
		if strings.Contains(strings.ToLower(t.Title), word) {
			n += len(t.Text) // more than any other topic can have
		}
		return n
	}
	if word == "" {
		return nil
	}
	found := slices.DeleteFunc(Topics(), func(t Topic) bool { return count(t) == 0 })
	slices.SortStableFunc(found, func(a, b Topic) int { return cmp.Compare(count(b), count(a)) })
	return found
}
