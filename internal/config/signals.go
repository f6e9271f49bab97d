package config

import (
	"fmt"
	"slices"
	"strings"

	"heed/internal/signal"
)

// SignalsConfig holds [signals]: what is read of the pages that state how they may be used.
type SignalsConfig struct {
	Page     string `toml:"page"`     // PageClients, PageAll or PageOff: of which pages the head is read
	Annotate bool   `toml:"annotate"` // answers get the Robots-Verdict field
}

// The values of SignalsConfig.Page.
const (
	PageClients = "clients" // of those that a client with a purpose requests
	PageAll     = "all"
	PageOff     = "off"
)

// Purposes are the names of purposes. In TOML they are a string or a list of strings.
type Purposes []string

// purposes returns the purposes, which were checked; nil for none.
func (p Purposes) purposes() (all []signal.Purpose) {
	for _, name := range p {
		all = append(all, signal.Purpose(name))
	}
	return all
}

// checkPurposes reports unknown and repeated purposes.
func (d *decoder) checkPurposes(path string, names Purposes) {
	for i, name := range names {
		at := element(path, i)
		if _, listed := d.lines[d.scope+at]; !listed {
			at = path
		}
		switch {
		case !slices.Contains(signal.Purposes(), signal.Purpose(name)):
			d.problem(at, "%s = %q is not a purpose; write one or more of %s", path, name, purposeNames())
		case slices.Contains(names[:i], name):
			d.problem(at, "%s: %q is listed twice; remove one of them", path, name)
		}
	}
}

// purposeNames returns the names of all purposes for messages.
func purposeNames() string {
	var names []string
	for _, p := range signal.Purposes() {
		names = append(names, fmt.Sprintf("%q", p))
	}
	return strings.Join(names, ", ")
}
