package lint

import (
	_ "embed" // kinds.csv
	"encoding/csv"
	"slices"
	"strings"
	"sync"
)

// Kind is the kind of a finding. The list is closed and its identifiers are stable.
type Kind string

// Severity is how serious a finding is.
type Severity uint8

// The severities. The zero value is the least.
const (
	Note       Severity = iota // works as intended
	Misleading                 // other robots, or a reader, may understand it in another way
	Lost                       // the line has no effect
)

// String returns the severity's stable name: note, misleading or lost.
func (s Severity) String() string { return severities[min(s, Lost)] }

var severities = []string{"note", "misleading", "lost"}

// Severity returns how serious findings of this kind are; Note for an unknown kind.
func (k Kind) Severity() Severity { return advices()[k].severity }

// Means returns a sentence about a finding of this kind and its effect; empty for
// an unknown kind.
func (k Kind) Means() string { return advices()[k].means }

// Instead returns a sentence about what to write instead; empty for an unknown kind.
func (k Kind) Instead() string { return advices()[k].instead }

// kindsText is the list of the kinds: how serious findings of each are, their effect, and what to
// write instead.
//
//go:embed kinds.csv
var kindsText string

// advice is what people read of a kind.
type advice struct {
	severity       Severity
	means, instead string
}

var advices = sync.OnceValue(func() map[Kind]advice {
	rows, err := csv.NewReader(strings.NewReader(kindsText)).ReadAll()
	if err != nil {
		panic(err) // it is built in
	}
	all := map[Kind]advice{}
	for _, row := range rows[1:] {
		all[Kind(row[0])] = advice{Severity(slices.Index(severities, row[1])), row[2], row[3]}
	}
	return all
})

// The kinds that have a name here; the parser and the expressions of slips have others.
const (
	// About a file as a whole.
	longFile      Kind = "long-file"
	overMinimum   Kind = "over-500-kib"
	inUTF16       Kind = "utf-16"
	byteOrderMark Kind = "byte-order-mark"
	partialMark   Kind = "partial-mark"
	htmlPage      Kind = "html-page"
	binaryFile    Kind = "binary-file"
	noGroup       Kind = "no-group"
	manyWildcards Kind = "many-wildcards"
	manyWords     Kind = "many-words"
	moreFindings  Kind = "further-findings"

	// About a line.
	notUTF8        Kind = "not-utf-8"
	noField        Kind = "no-field"
	likelyMisspelt Kind = "likely-misspelt"
	unknownLine    Kind = "unknown-field"

	// About a rule.
	emptyAllow   Kind = "empty-allow"
	commaInPath  Kind = "comma-in-paths"
	noSlash      Kind = "no-slash"
	blankInPath  Kind = "blank-in-path"
	hashInPath   Kind = "hash-in-path"
	controlOctet Kind = "control-octet"
	innerDollar  Kind = "inner-dollar"
	badEscape    Kind = "bad-escape"
	dotSegment   Kind = "dot-segment"
	trailingStar Kind = "trailing-star"
	ruleForFile  Kind = "robots-txt"
	repeatedRule Kind = "repeated-rule"
	opposedRules Kind = "opposed-rules"

	// About a user-agent line or a group.
	nameOfNoRobot Kind = "names-nobody"
	nameCharacter Kind = "name-character"
	sharedGroup   Kind = "shared-group"
	blankInGroup  Kind = "blank-in-group"
	repeatedGroup Kind = "repeated-group"
	emptyGroup    Kind = "group-without-rules"

	// About other fields.
	badValue    Kind = "bad-value"
	looseValue  Kind = "loose-value"
	orphanField Kind = "orphan-field"
	noEffect    Kind = "no-effect"
	oldField    Kind = "old-field"

	// About slips that no expression finds.
	everywhere      Kind = "everything"
	lookAlike       Kind = "look-alike"
	hiddenCharacter Kind = "hidden-character"
)
