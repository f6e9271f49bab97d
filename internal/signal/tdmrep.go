package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"heed/internal/safetext"
	"heed/rules"
)

// TDMRepPath is where a site's TDMRep file is.
const TDMRepPath = "/.well-known/tdmrep.json"

// MaxTDMRep is the length of the longest TDMRep file that is read.
const MaxTDMRep = 256 << 10

// maxEntries is the number of entries that a TDMRep file may have. One with more is too
// complex: it refuses every purpose that it is fetched for.
const maxEntries = 10_000

// ErrTDMRep is the error for a TDMRep file that is too long or is no array of objects. A
// site with such a file is one without.
var ErrTDMRep = errors.New("the TDMRep file is not a JSON array of objects of at most 256 KiB")

// TDMRep is a site's TDMRep file (W3C TDM Reservation Protocol). It is immutable and safe
// for concurrent use. nil is a site without one.
type TDMRep struct {
	address string
	entries []tdmEntry
	paths   *rules.Paths // of the entries
	tooMany bool         // there are more than maxEntries
}

// tdmEntry is the reservation of a part of a site.
type tdmEntry struct {
	reserved string // the value, as text
	line     int
	text     string
}

// ReadTDMRep reads the file that was fetched from address.
func ReadTDMRep(address string, body []byte) (*TDMRep, error) {
	body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
	if len(body) > MaxTDMRep {
		return nil, ErrTDMRep
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return nil, ErrTDMRep
	}
	t := &TDMRep{address: address}
	var paths []string
	line, counted := 1, 0
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, ErrTDMRep
		}
		from := int(d.InputOffset()) - len(raw)
		line += bytes.Count(body[counted:from], []byte("\n"))
		counted = from
		var members struct {
			Location    *string         `json:"location"`
			Reservation json.RawMessage `json:"tdm-reservation"`
		}
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, ErrTDMRep
		}
		switch {
		case members.Location == nil || *members.Location == "":
		case len(t.entries) == maxEntries:
			t.tooMany = true
		default:
			paths = append(paths, *members.Location)
			t.entries = append(t.entries, tdmEntry{strings.Trim(string(members.Reservation), `" `), line, safetext.Excerpt(string(raw))})
		}
	}
	if end, err := d.Token(); err != nil || end != json.Delim(']') {
		return nil, ErrTDMRep
	}
	t.paths = rules.NewPaths(paths)
	return t, nil
}

// statements returns the first entry that matches a target, for each of its readings.
func (t *TDMRep) statements(target *rules.Target, profile rules.Profile) (all []Statement) {
	if t == nil {
		return nil
	}
	for _, selection := range t.paths.Select(target, profile, rules.First, nil) {
		e := &t.entries[selection.Of[0]]
		s := Statement{Source: SourceTDMRep, URL: t.address, Line: e.line, Name: "tdm-reservation", Text: e.text, Variant: selection.Variant}
		s.reserve(e.reserved)
		all = append(all, s)
	}
	return all
}

// reserve reads the value of a tdm-reservation: 1 reserves, 0 does not, and any other is
// none.
func (s *Statement) reserve(value string) {
	s.Protocol = TDMRepP
	switch strings.TrimSpace(value) {
	case "1":
		s.say(Disallow, TDM, TrainAI)
	case "0":
		s.say(Allow, TDM, TrainAI)
	default:
		s.Fault = "tdm-reservation is neither 1 nor 0"
	}
}
