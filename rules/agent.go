package rules

import "strings"

// Agent is who is asking: the product tokens under which rules are looked up,
// in order, and where they come from. It is immutable and safe for concurrent
// use.
type Agent struct {
	// Header is the User-Agent string the tokens were taken from; empty when
	// there was none or the tokens were declared.
	Header string
	// Declared is set when the tokens were given by the operator and not found
	// in a User-Agent string.
	Declared bool
	// Tokens are the candidates in order of appearance. With none, the star
	// group governs.
	Tokens []Token

	key string // identity, for what is remembered per agent
}

// Token is one name an agent may be known by.
type Token struct {
	Name  string // lower case, without version
	Piece string // as it stands in the User-Agent string
}

// Declare returns the agent an operator declared by its product tokens: every
// one of them must allow.
func Declare(tokens ...string) *Agent {
	a := &Agent{Declared: true, key: "d" + strings.Join(tokens, "\n")}
	for _, t := range tokens {
		if name := nameOf(t); name != "" {
			a.Tokens = append(a.Tokens, Token{Name: name, Piece: t})
		}
	}
	return a
}
