package signal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"heed/internal/base/safetext"
	"heed/internal/judge/signal/licence"
	"heed/rules"
)

// TDMRepPath is where a site's TDMRep file is.
const TDMRepPath = "/.well-known/tdmrep.json"

// MaxTDMRep is the length of the longest TDMRep file that is read.
const MaxTDMRep = 256 << 10

// maxEntries is the number of entries that a TDMRep file may have. One with more is too
// complex: it refuses every purpose that it is fetched for.
const maxEntries = 10_000

// TDMRep is a site's TDMRep file (W3C TDM Reservation Protocol). It is immutable and safe
// for concurrent use. nil is a site without one.
type TDMRep struct {
	address string
	entries []Statement  // without URL and Variant
	paths   *rules.Paths // of the entries
	tooMany bool         // there are more than maxEntries
	fault   string       // why the file cannot be read; empty: it was read
}

// UnreadTDMRep returns the TDMRep file at address that may reserve and cannot be read, for a
// reason in words. The file is probed and not named by the site: one that is missing is none.
func UnreadTDMRep(address, why string) *TDMRep {
	return &TDMRep{address: address, paths: new(rules.Paths), fault: "tdmrep.json cannot be read: " + why}
}

// Unread returns why t cannot be read; empty when it was, or is nil.
func (t *TDMRep) Unread() string {
	if t == nil {
		return ""
	}
	return t.fault
}

// ReadTDMRep reads the file that was fetched from address. It returns nil for a document that
// is not meant to be one: a page, or an answer that has no word of a reservation.
func ReadTDMRep(address string, body []byte) *TDMRep {
	if body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")); !speaksOfTDM(body) {
		return nil
	}
	if len(body) > MaxTDMRep {
		return UnreadTDMRep(address, "it is longer than 256 KiB")
	}
	r := &tdmReader{file: &TDMRep{address: address}, body: body, line: 1}
	r.origin, _, _ = rules.ParseURL(address)
	if text, exact := withoutLastCommas(body); !r.read(text, exact) {
		return UnreadTDMRep(address, "it is not a JSON array of objects")
	}
	r.file.paths = rules.NewPaths(r.paths)
	return r.file
}

// speaksOfTDM reports whether a document may be a TDMRep file. Many servers answer with a page,
// or with the path in an error, where there is none.
func speaksOfTDM(body []byte) bool {
	if start := bytes.TrimLeft(body, " \t\r\n"); len(start) == 0 || start[0] == '<' {
		return false
	}
	text := bytes.ToLower(bytes.ReplaceAll(body, []byte{0}, nil)) // UTF-16, too
	text = bytes.ReplaceAll(text, []byte("tdmrep.json"), nil)
	return bytes.Contains(text, []byte("tdm")) || bytes.Contains(text, []byte("reservation"))
}

// withoutLastCommas returns JSON with a space in place of each comma after the last member of an
// array or an object; exact is false when there are any.
func withoutLastCommas(body []byte) (text []byte, exact bool) {
	text, exact = body, true
	quoted, comma := false, -1
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted, comma = !quoted, -1
		case quoted, c == ' ', c == '\t', c == '\r', c == '\n':
		case c == ',':
			comma = i
		case (c == ']' || c == '}') && comma >= 0:
			if exact {
				text, exact = bytes.Clone(body), false
			}
			text[comma], comma = ' ', -1
		default:
			comma = -1
		}
	}
	return text, exact
}

// tdmReader reads a TDMRep file.
type tdmReader struct {
	file    *TDMRep
	origin  rules.Origin // of the site
	body    []byte
	paths   []string
	line    int // at counted
	counted int
}

// read reads the document and reports whether it could. Forms that are not those of the
// document reserve, and permit nothing: an object in place of the array, and an object that has
// the array as its member tdmrep.
func (r *tdmReader) read(text []byte, exact bool) bool {
	start := bytes.TrimLeft(text, " \t\r\n")
	at := len(text) - len(start)
	if start[0] == '[' {
		return r.array(start, at, exact)
	}
	members, ok := membersOf(start)
	if !ok {
		return false
	}
	for _, m := range members {
		if strings.EqualFold(m.name, "tdmrep") && len(m.value) > 0 && m.value[0] == '[' {
			return r.array(m.value, at+m.at, false)
		}
	}
	r.entry(start, at, false)
	return true
}

// array reads the entries of an array that begins at an octet of the body.
func (r *tdmReader) array(text []byte, at int, exact bool) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return false
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return false
		}
		r.entry(raw, at+int(d.InputOffset())-len(raw), exact)
	}
	_, err := d.Token()
	return err == nil
}

// entry reads an entry that begins at an octet of the body. One that is not understood may be
// about the whole site.
func (r *tdmReader) entry(raw []byte, at int, exact bool) {
	r.line += bytes.Count(r.body[r.counted:at], []byte("\n"))
	r.counted = at
	s := Statement{Source: SourceTDMRep, Protocol: TDMRepP, Line: r.line, Name: "tdm-reservation", Text: safetext.Excerpt(string(raw))}
	members, ok := membersOf(raw)
	if ok && len(members) == 0 {
		return
	}
	var locations []string
	known := true
	reservation := ""
	for _, m := range members {
		switch name := strings.ToLower(strings.TrimSpace(m.name)); name {
		case "location":
			var understood bool
			locations, understood = r.locations(locations, m.value)
			known, exact = known && understood, exact && name == m.name && m.value[0] == '"'
		case "tdm-reservation", "tdm_reservation": // the second is deployed (moxiespirit/oathscore)
			exact = exact && m.name == "tdm-reservation" && reservation == ""
			reservation += "," + string(m.value)
		}
	}
	switch reservation = strings.TrimPrefix(reservation, ","); {
	case !ok:
		s.unclearly("an entry is no object")
	case reservation == "":
		s.unclearly("an entry has no tdm-reservation")
	case !known:
		s.unclearly("the location of an entry is no path of the site")
	default:
		s.reserve(reservation, exact && len(locations) > 0)
	}
	if len(locations) == 0 || s.Fault != "" {
		locations = append(locations, "/")
	}
	for _, l := range locations {
		if len(r.file.entries) == maxEntries {
			r.file.tooMany = true
			return
		}
		r.file.entries, r.paths = append(r.file.entries, s), append(r.paths, l)
	}
}

// locations adds the paths of a location, which may be a list, or URLs of the site. understood
// is false when one is neither.
func (r *tdmReader) locations(all []string, value json.RawMessage) (_ []string, understood bool) {
	var texts []string
	var one string
	if json.Unmarshal(value, &one) == nil && value[0] == '"' {
		texts = []string{one}
	} else if json.Unmarshal(value, &texts) != nil {
		return all, false
	}
	for _, text := range texts {
		if o, path := licence.Located(text); o != (rules.Origin{}) && o == r.origin {
			text = cmp.Or(path, "/")
		}
		switch {
		case text == "": // as if it was missing
		case text[0] != '/' && text[0] != '*':
			return all, false
		default:
			all = append(all, text)
		}
	}
	return all, true
}

// member is a member of a JSON object and where its value begins.
type member struct {
	name  string
	value json.RawMessage
	at    int
}

// membersOf returns the members of an object, also those of the same name.
func membersOf(text []byte) (all []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		text, isText := name.(string)
		m := member{name: text}
		if err != nil || !isText || d.Decode(&m.value) != nil {
			return nil, false
		}
		m.at = int(d.InputOffset()) - len(m.value)
		all = append(all, m)
	}
	_, err := d.Token()
	return all, err == nil
}

// statements returns the first entry that matches a target, for each of its readings. Where
// that is not understood, the first one counts too that is.
func (t *TDMRep) statements(target *rules.Target, profile rules.Profile) (all []Statement) {
	if t == nil {
		return nil
	}
	if t.fault != "" {
		s := Statement{Source: SourceTDMRep, Protocol: TDMRepP, URL: t.address, Name: "tdmrep.json"}
		s.unclearly(t.fault)
		return []Statement{s}
	}
	unclear := false
	for _, only := range []func(i int) bool{nil, func(i int) bool { return t.entries[i].Fault == "" }} {
		if only != nil && !unclear {
			break
		}
		for _, selection := range t.paths.Select(target, profile, rules.First, only) {
			s := t.entries[selection.Of[0]]
			s.URL, s.Variant = t.address, selection.Variant
			all, unclear = append(all, s), unclear || s.Fault != ""
		}
	}
	return all
}

// reserve reads the value of a tdm-reservation: 1 reserves, 0 does not, and any other is
// none. exact is false for one that is not where or how it should be, which lifts nothing.
func (s *Statement) reserve(value string, exact bool) {
	s.Protocol = TDMRepP
	switch value = strings.TrimSpace(value); {
	case value == "0" && exact:
		s.say(Allow, TDM, TrainAI)
	case reserves(value):
		s.say(Disallow, TDM, TrainAI)
	default:
		s.unclearly("tdm-reservation is neither 1 nor 0")
	}
}
