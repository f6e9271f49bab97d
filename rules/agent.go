package rules

import "crypto/sha256"

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

	key agentKey // under which policies remember what governs this agent
}

// agentKey is what an Agent was made of, digested; zero when it was made
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
	Piece string // as it stands in the User-Agent string

	phrase string // the name of several words that this one is part of
}
