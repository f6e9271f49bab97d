package rules

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// Agent is a client by its product tokens, in the order in which rules are
// looked up for them, and where they come from. It is immutable and safe for concurrent
// use. Agents come from Identify and Declare; for one made otherwise each
// decision looks its groups up anew.
type Agent struct {
	// Header is the User-Agent string the tokens were taken from; empty when
	// there was none or the tokens were declared.
	Header string
	// Role is where the tokens come from.
	Role Role
	// Tokens are the candidates in order of appearance. With none, the star
	// group governs.
	Tokens []Token

	key agentKey // under which policies remember the groups that govern this agent
}

// Role is where the tokens of an Agent come from.
type Role uint8

// The roles.
const (
	Seen     Role = iota // a User-Agent string: the site sees them
	Declared             // the operator's settings
	Obeyed               // the settings too, as a name that the client obeys besides its own
)

// String returns the stable name of r: seen, declared or also_obey.
func (r Role) String() string { return [...]string{"seen", "declared", "also_obey"}[min(r, Obeyed)] }

// agentKey is a digest of what an Agent was made of; zero when it was made
// otherwise than by Identify and Declare.
type agentKey [16]byte

// keyOf returns the key of an agent made of text in a certain way.
func keyOf(way, text string) (key agentKey) {
	sum := sha256.Sum256([]byte(way + text))
	copy(key[:], sum[:])
	return key
}

// Token is one name an agent may be known by.
type Token struct {
	Name  string // lower case, without version
	Piece string // as in the User-Agent string

	phrase string // the name of several words that this one is part of
}

// Identify finds the product tokens in a User-Agent string. An empty string
// gives an agent without tokens. The result should be kept, as
// this is not cheap.
//
// URLs and mail addresses are taken out first, since they name other robots.
// The rest is split at brackets, commas and semicolons. Each piece, up to its first
// "/", is a name, and each of its words is another. Words that only state what the
// client is compatible with are dropped.
func Identify(userAgent string) *Agent {
	return &Agent{Header: userAgent, Tokens: identify(userAgent), key: keyOf("header ", userAgent)}
}

// Declare returns the agent an operator declared by its product tokens: every
// one of them must allow. A version after a "/" is dropped.
func Declare(tokens ...string) *Agent {
	a := &Agent{Role: Declared, key: keyOf("declared ", strings.Join(tokens, "\x00"))}
	for _, t := range tokens {
		name, _, _ := strings.Cut(t, "/")
		if name = cleanName(name); name != "" {
			a.Tokens = append(a.Tokens, Token{Name: name, Piece: t})
		}
	}
	return a
}

// PolicyToken returns the agent of a name that sites use in user-agent lines for a purpose,
// such as Google-Extended. Only the groups that name it govern it: in a file without one,
// neither the star group nor the group of another robot does, and it has no rules.
func PolicyToken(name string) *Agent {
	a := Declare(name)
	a.Role, a.key = Obeyed, keyOf("obeyed ", name)
	return a
}

// CheckToken returns an error unless text is one product token, without a version, as
// robots.txt files name it (RFC 9309 §2.2.1). Names that real robots have in violation of
// the RFC, such as 360Spider and archive.org_bot, are accepted.
func CheckToken(text string) error {
	if a := Declare(text); len(a.Tokens) != 1 || strings.ContainsAny(text, "/*") || len(text) > maxToken {
		return fmt.Errorf(`%q is not a product token; write only the name, as in robots.txt: "NewsBot"`, text[:min(len(text), 2*maxToken)])
	}
	return nil
}

// maxToken is the most octets of a product token that people write.
const maxToken = 64

// Name returns the name by which people know a, one of its tokens: the first word that
// calls itself a robot, else the first token. A browser-like User-Agent string may begin
// with the names of a platform, or with a language. It is empty without tokens, and has no
// part in verdicts.
func (a *Agent) Name() string {
	if len(a.Tokens) == 0 {
		return ""
	}
	for _, t := range a.Tokens {
		if a.Role == Seen && robotic(t.Name) {
			return t.Name
		}
	}
	return a.Tokens[0].Name
}

// robotic reports whether a clean name is one word that calls itself a robot.
func robotic(name string) bool {
	marks := []string{"bot", "crawl", "spider", "slurp"}
	return !genericWords[name] && !strings.Contains(name, " ") &&
		slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(name, mark) })
}

// Names returns the names of the tokens as they were written, without versions; nil without
// tokens.
func (a *Agent) Names() (all []string) {
	for _, t := range a.Tokens {
		name, _, _ := strings.Cut(t.Piece, "/")
		all = append(all, name)
	}
	return all
}

// identify finds the names in a User-Agent string.
func identify(userAgent string) []Token {
	var tokens []Token
	known := make(map[string]int)
	add := func(name, phrase, piece string) {
		i, again := known[name]
		switch {
		case again && tokens[i].phrase != phrase:
			tokens[i].phrase = "" // it occurs elsewhere as well
		case again, name == "", noRobot(name):
		default:
			known[name] = len(tokens)
			tokens = append(tokens, Token{Name: name, Piece: piece, phrase: phrase})
		}
	}
	all := pieces(userAgent)
	for _, piece := range all {
		head, _, _ := strings.Cut(piece, "/")
		phrase := cleanName(head)
		add(phrase, "", strings.TrimSpace(piece))
		for word := range strings.FieldsSeq(piece) {
			head, _, versioned := strings.Cut(word, "/")
			for name := range strings.FieldsSeq(cleanName(head)) {
				add(trimName(name), phrase, word)
			}
			if versioned {
				phrase = "" // which ended here
			}
		}
	}
	for i := 0; i < len(all) && len(tokens) == 0; i++ {
		for word := range strings.FieldsSeq(all[i]) {
			head, _, versioned := strings.Cut(word, "/")
			if (versioned || word == strings.TrimSpace(userAgent)) && head != "" && strings.Trim(head, "0123456789") == "" {
				tokens = append(tokens, Token{Name: head, Piece: word}) // a robot named by its number
			}
		}
	}
	return tokens
}

// Dropped is a piece of a User-Agent string that Identify takes no name from.
type Dropped struct {
	Piece string // as the client wrote it
	Why   DropReason
}

// DropReason is why a piece of a User-Agent string names no robot.
type DropReason string

// The reasons. The list is closed and its identifiers are stable.
const (
	DroppedAddress    DropReason = "address"    // a URL or a mail address: it may contain another robot's name
	DroppedCompatible DropReason = "compatible" // only what the client is compatible with or runs on
)

// Dropped returns the pieces of a's User-Agent string that name no robot, in
// the order of the string; none for declared tokens.
func (a *Agent) Dropped() []Dropped {
	if a.Role != Seen {
		return nil
	}
	var all []Dropped
	tokens := make(map[string]bool, len(a.Tokens))
	for _, t := range a.Tokens {
		tokens[t.Name] = true
	}
	split(a.Header, func(piece string, address bool) {
		if address {
			all = append(all, Dropped{piece, DroppedAddress})
			return
		}
		for word := range strings.FieldsSeq(piece) {
			head, _, _ := strings.Cut(word, "/")
			if name := trimName(cleanName(head)); name != "" && noRobot(name) && !tokens[name] {
				all = append(all, Dropped{word, DroppedCompatible})
			}
		}
	})
	return all
}

// pieces splits a User-Agent string at brackets, commas, semicolons, URLs and
// mail addresses, which are left out.
func pieces(s string) []string {
	var all []string
	split(s, func(piece string, address bool) {
		if !address && strings.TrimSpace(piece) != "" {
			all = append(all, piece)
		}
	})
	return all
}

// split yields the pieces of a User-Agent string, URLs and mail addresses
// among them.
func split(s string, yield func(piece string, address bool)) {
	from := 0
	end := func(at, next int) {
		if at > from {
			yield(s[from:at], false)
		}
		from = next
	}
	for i := 0; i < len(s); i++ {
		switch {
		case strings.IndexByte("()[]{},;", s[i]) >= 0:
			end(i, i+1)
		case strings.HasPrefix(s[i:], "://"):
			at := i
			for at > from && letter(s[at-1]) {
				at--
			}
			if size := strings.IndexAny(s[i:], " \t()[]{}<>,;\"'"); size >= 0 {
				i += size
			} else {
				i = len(s)
			}
			end(at, i)
			yield(s[at:i], true)
			i--
		case s[i] == '@' && i > from && mailOctet(s[i-1]):
			at := i
			for at > from && mailOctet(s[at-1]) {
				at--
			}
			for i++; i < len(s) && mailOctet(s[i]); i++ {
			}
			end(at, i)
			yield(s[at:i], true)
			i--
		}
	}
	end(len(s), len(s))
}

// mailOctet reports whether c may occur in a mail address.
func mailOctet(c byte) bool {
	return letter(c) || c >= '0' && c <= '9' || strings.IndexByte("._%+-", c) >= 0
}
