package rules

import (
	"iter"
	"strings"
)

// Watcher is shown a file while it is read. Package lint makes of that what people read about
// the file; the rules do not depend on it.
type Watcher interface {
	// Line is called with each line, before it is read.
	Line(at Progress, line Part)
	// Field is called with each field, before it is used.
	Field(at Progress, kind FieldKind, key, value Part)
	// Path is called with the path of a rule that is kept, as the site wrote it.
	Path(at Progress, path Part)
	// Odd is called with a part of the line that was repaired or ignored, or that robots may
	// read in another way, and the kind of that, of which package lint has the words.
	Odd(at Progress, kind string, part Part)
}

// Progress is how far a file has been read.
type Progress struct {
	Text      string // of the file, from Start on
	Start     int    // after a byte order mark
	Line      int    // the number of the line that is read
	Groups    int    // so far
	NameWords int    // words in the names of several words

	Rules     int  // Allow and Disallow lines with a path
	Wildcards int  // in all patterns
	InGroup   bool // there is a group
	InRules   bool // it has a rule, so that a user-agent line begins the next
}

// Kinds of what is odd that are named more than once.
const (
	noField       = "no-field"
	unknownLine   = "unknown-field"
	nameOfNoRobot = "names-nobody"
)

// Watched is a file that was read for a Watcher.
type Watched struct {
	Progress
	UTF16 bool // it is in UTF-16; Text is its UTF-8
	Cut   bool // it is longer than MaxBytes
	HTML  bool // it is a page of HTML, without a rule
	file  file
}

// Watch reads a file of origin as NewAs does and shows it to w. Without an origin every absolute URL is another site's.
func Watch(profile Profile, origin Origin, body []byte, w Watcher) *Watched {
	x := &Watched{file: file{differences: profile.differences()}}
	x.file.text, x.file.start, x.UTF16, x.Cut = read(body)
	p := parser{differences: x.file.differences, file: &x.file, origin: origin, watcher: w}
	p.parse(x.file.text, x.file.start)
	x.Progress = p.progress()
	x.HTML = p.Rules == 0 && looksLikeHTML(x.Text[x.Start:])
	return x
}

// progress returns how far p is.
func (p *parser) progress() Progress {
	p.Text, p.Start, p.Line = p.lines.text, p.file.start, p.lines.number
	p.Groups, p.NameWords = len(p.file.groups), p.file.words
	return p.Progress
}

// odd shows the watcher what is odd in a line.
func (p *parser) odd(kind string, at Part) {
	if p.watcher != nil {
		p.watcher.Odd(p.progress(), kind, at)
	}
}

// WrittenRule is a rule of a file that was watched.
type WrittenRule struct {
	Group   int    // from 0
	Pattern string // equal for rules that match the same targets by the same pattern
	Allow   bool
	Line    int
	At      Part // the path, or the line when that differs from how the path is compared
}

// RulesAsWritten yields the rules of the file, in its order.
func (x *Watched) RulesAsWritten() iter.Seq[WrittenRule] {
	return func(yield func(WrittenRule) bool) {
		f, group := &x.file, 0
		packed := f.text + f.extra.String()
		for id := range f.rules {
			for group+1 < len(f.groups) && int(f.groups[group+1]) <= id {
				group++
			}
			r := &f.rules[id]
			w := WrittenRule{group, packed[r.pattern:][:r.size], r.allows(), int(r.line & ruleLine), Part{int(r.pattern), int(r.pattern) + int(r.size)}}
			if r.line&rulePacked == 0 {
				w.Pattern = strings.ReplaceAll(w.Pattern, "*", string([]byte{codeStar}))
			} else {
				w.At = positionIn(packed[r.pattern-positionSize:])
			}
			if r.line&ruleEnds != 0 {
				w.Pattern += "\xFF" // no code, and in no text that is packed
			}
			if !yield(w) {
				return
			}
		}
	}
}
