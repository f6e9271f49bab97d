package rules

// Agent is who is asking: the product tokens under which rules are looked up,
// in order, and where they come from. It is immutable and safe for concurrent
// use. Agents come from Identify and Declare; for one made otherwise each
// decision looks its groups up anew.
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

	key string // under which policies remember what governs this agent
}

// Token is one name an agent may be known by.
type Token struct {
	Name  string // lower case, without version
	Piece string // as it stands in the User-Agent string

	phrase string // the name of several words that this one is part of
}
