package rules

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
}

// Token is one name an agent may be known by.
type Token struct {
	Name  string // lower case, without version
	Piece string // as it stands in the User-Agent string
}

// Identify finds the product tokens in a User-Agent string. An empty string
// gives an agent without tokens. Not cheap: remember the result per string.
func Identify(userAgent string) *Agent { return &Agent{Header: userAgent} }

// Declare returns the agent an operator declared by its product tokens: every
// one of them must allow.
func Declare(tokens ...string) *Agent {
	a := &Agent{Declared: true}
	for _, t := range tokens {
		a.Tokens = append(a.Tokens, Token{Name: t, Piece: t})
	}
	return a
}
