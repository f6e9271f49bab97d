package signal

import (
	"fmt"
	"slices"
	"strings"
)

// Purpose is what a client wants content for, as its operator states it.
type Purpose string

// The purposes. The list is closed and its names are stable.
const (
	PurposeSearch   Purpose = "search"   // to find pages, and show links to them
	PurposeAgent    Purpose = "agent"    // to answer a question, or act for a person
	PurposeTraining Purpose = "training" // to train a model
	PurposeArchive  Purpose = "archive"  // to keep copies
	PurposeTDM      Purpose = "tdm"      // to mine text and data
)

// Purposes returns all purposes.
func Purposes() []Purpose {
	return []Purpose{PurposeSearch, PurposeAgent, PurposeTraining, PurposeArchive, PurposeTDM}
}

// ParsePurposes returns the purposes of a list with commas, without repetitions; none of an
// empty one. The error of an unknown one contains all names.
func ParsePurposes(list string) ([]Purpose, error) {
	var all []Purpose
	if list == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		p := Purpose(strings.TrimSpace(name))
		if !slices.Contains(Purposes(), p) {
			return nil, fmt.Errorf("%q is not a purpose\nWrite one or more of search, agent, training, archive and tdm", p)
		}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all, nil
}

// PurposeNames returns the names of purposes; nil for none.
func PurposeNames(purposes []Purpose) (names []string) {
	for _, p := range purposes {
		names = append(names, string(p))
	}
	return names
}

// Category is a kind of use that sites allow or disallow.
type Category string

// The categories, one for each purpose. The list is closed and its names are stable.
const (
	Search  Category = "search"
	AIInput Category = "ai-input"
	TrainAI Category = "train-ai"
	Archive Category = "archive"
	TDM     Category = "tdm"
)

// Categories returns all categories.
func Categories() []Category { return []Category{Search, AIInput, TrainAI, Archive, TDM} }

// Category returns the kind of use that a purpose is; empty for an unknown purpose.
func (p Purpose) Category() Category {
	if i := slices.Index(Purposes(), p); i >= 0 {
		return Categories()[i]
	}
	return ""
}

// Needs is what a verdict for some purposes needs to have fetched. robots.txt, the header
// and the head of a page can refuse every purpose.
type Needs struct {
	Licences bool // the licence documents that the site declares
	TDMRep   bool // /.well-known/tdmrep.json
}

// NeedsOf returns what a verdict for purposes needs; nothing for none.
func NeedsOf(purposes ...Purpose) (n Needs) {
	for _, p := range purposes {
		n.Licences = n.Licences || p == PurposeSearch || p == PurposeAgent || p == PurposeTraining
		n.TDMRep = n.TDMRep || p == PurposeTraining || p == PurposeTDM
	}
	return n
}
