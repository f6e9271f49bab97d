package rules

import "strings"

// Dropped is a piece of a User-Agent string that Identify takes no name from.
type Dropped struct {
	Piece string // as the client wrote it
	Why   Dropping
}

// Dropping is why a piece of a User-Agent string names no robot.
type Dropping string

// The reasons. The list is closed and its identifiers are stable.
const (
	DroppedAddress    Dropping = "address"    // a URL or a mail address: what stands in it may be another robot's name
	DroppedCompatible Dropping = "compatible" // says only what the client is compatible with or runs on
)

// Dropped returns the pieces of a's User-Agent string that name no robot, in
// the order of the string; none for declared tokens.
func (a *Agent) Dropped() []Dropped {
	if a.Declared {
		return nil
	}
	var all []Dropped
	split(a.Header, func(piece string, address bool) {
		if address {
			all = append(all, Dropped{piece, DroppedAddress})
			return
		}
		for word := range strings.FieldsSeq(piece) {
			head, _, _ := strings.Cut(word, "/")
			if name := trimName(cleanName(head)); name != "" && namesNobody(name) {
				all = append(all, Dropped{word, DroppedCompatible})
			}
		}
	})
	return all
}
