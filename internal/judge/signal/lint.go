package signal

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"heed/internal/base/safetext"
	"heed/internal/base/structured"
	"heed/internal/judge/signal/licence"
	"heed/rules"
)

// Finding is a usage signal in a robots.txt or a licence that is lost, or partly lost: robots that
// follow its document do not read it as it was meant.
type Finding struct {
	Kind    FindingKind
	Line    int    // from 1
	Text    string // the value, as the site wrote it, at most safetext.MaxExcerpt octets: hostile until escaped
	Means   string // a sentence about the effect
	Instead string // a sentence about what to write
	// Serious is set when a reservation is lost; otherwise others may read it differently.
	Serious bool
}

// FindingKind is the kind of a Finding. The list is closed and its identifiers are stable.
type FindingKind string

// The kinds.
const (
	UsageUnreadable FindingKind = "usage-unreadable" // the whole value is no dictionary
	UsageKeyCase    FindingKind = "usage-key-case"   // a key with capitals
	UsageComma      FindingKind = "usage-comma"      // a comma after the last member
	UsagePath       FindingKind = "usage-path"       // a path that begins with "*"
	UsageValue      FindingKind = "usage-value"      // neither y nor n
	UsageLabel      FindingKind = "usage-label"      // no label of the vocabulary
	SignalValue     FindingKind = "signal-value"     // neither yes nor no
	SignalCase      FindingKind = "signal-case"      // capitals
	SignalName      FindingKind = "signal-name"      // Content-Signals
	SignalKey       FindingKind = "signal-key"       // no key of Content-Signal
	SignalList      FindingKind = "signal-list"      // no list of key=value
	LicenceURL      FindingKind = "licence-url"      // no absolute URL
	LicenceUnread   FindingKind = "licence-unread"   // a licence that is none, or was not fetched
	LicenceEarlier  FindingKind = "licence-earlier"  // a word of the first version of RSL
	LicenceWord     FindingKind = "licence-word"     // an unknown word
	LicenceElement  FindingKind = "licence-element"  // an element of another name
)

// Lint returns the findings about the usage signals in a robots.txt, in the order of the
// file.
func Lint(p *rules.Policy) []Finding {
	var all []Finding
	for _, f := range p.Fields(nil, signalFields...) {
		var found []Finding
		switch f.Kind {
		case rules.ContentUsage:
			found = lintUsage(f.Value)
		case rules.ContentSignal:
			found = lintSignal(f.Value)
		case rules.ContentSignals:
			found = []Finding{{Kind: SignalName, Serious: true, Means: "The name of the field is Content-Signal; robots that read that alone lose the reservation.",
				Instead: "Write Content-Signal: " + safetext.Excerpt(f.Value) + "."}}
		default:
			if licenceURL(f.Value) == "" {
				found = []Finding{{Kind: LicenceURL, Serious: true, Means: "The value is not an absolute http or https URL; the licence is lost.",
					Instead: "Write the whole URL, such as https://example.org/license.xml."}}
			}
		}
		for _, one := range found {
			one.Line, one.Text = f.Line, safetext.Excerpt(f.Value)
			all = append(all, one)
		}
	}
	return all
}

// ReadLicence reads a text that is meant to be a licence; ok is false for any other, such as a
// robots.txt.
func ReadLicence(text string) (l Licence, ok bool) {
	if !licence.Begins(text) {
		return l, false
	}
	l.Document, l.Err = licence.Parse([]byte(text))
	return l, true
}

// LintLicence returns the findings about a licence, in the order of the document.
func LintLicence(l Licence) []Finding {
	if l.Document == nil {
		return []Finding{{Kind: LicenceUnread, Serious: true, Text: safetext.Excerpt(cmp.Or(l.Err, errUnread).Error()), Means: "The licence cannot be read; what it reserves is lost.",
			Instead: "Write it as RSL 1.0 has it: <rsl> with <content> and <license> elements, in valid XML."}}
	}
	var all []Finding
	for _, s := range l.Document.Slips() {
		f := Finding{Line: s.Line, Text: s.Text}
		switch s.Kind {
		case licence.EarlierWord:
			f.Kind, f.Means = LicenceEarlier, "The word is one of the first version of RSL; robots that know RSL 1.0 alone do not read it."
			f.Instead = "Write " + s.Instead + "."
		case licence.UnknownPermission:
			f.Kind, f.Means = LicenceWord, "The word in permits is unknown; it permits nothing."
			f.Instead = "Write search, ai-input, ai-train, ai-index, ai-all or all."
		case licence.UnknownProhibited:
			f.Kind, f.Serious, f.Means = LicenceWord, true, "The word in prohibits is unknown, or there is none; the reservation is lost."
			f.Instead = "Write search, ai-input, ai-train, ai-index, ai-all or all."
		case licence.OddElement:
			f.Kind, f.Serious, f.Means = LicenceElement, true, "RSL has no element of this name; robots ignore it."
			f.Instead = "Write <" + s.Instead + ">."
		}
		all = append(all, f)
	}
	return all
}

var errUnread = errors.New("it was not read")

// lintUsage finds what is lost in a Content-Usage.
func lintUsage(value string) []Finding {
	_, preferences := splitUsage(value)
	members, err := structured.Dictionary([]string{preferences})
	if err != nil {
		return []Finding{unreadable(value, preferences)}
	}
	var all []Finding
	for _, m := range members {
		switch {
		case len(usageLabels[m.Key]) == 0:
			all = append(all, Finding{Kind: UsageLabel, Means: "The label is not in the vocabulary; it has no effect.",
				Instead: "Write train-ai or search."})
		case m.Token != "y" && m.Token != "n":
			all = append(all, Finding{Kind: UsageValue, Serious: true, Means: "The value is neither y nor n; the preference is lost.",
				Instead: "Write " + m.Key + "=n or " + m.Key + "=y."})
		}
	}
	if len(members) == 0 {
		all = append(all, Finding{Kind: UsageValue, Serious: true, Means: "There is no preference; the line has no effect.",
			Instead: "Write one, such as train-ai=n."})
	}
	return all
}

// unreadable returns the most specific finding about a value that is no dictionary.
func unreadable(value, preferences string) Finding {
	f := Finding{Kind: UsageUnreadable, Serious: true, Means: "The value is not a dictionary of preferences; the whole line is lost.",
		Instead: "Write it as: train-ai=n, search=y."}
	_, lowErr := structured.Dictionary([]string{strings.ToLower(preferences)})
	_, cutErr := structured.Dictionary([]string{strings.TrimRight(preferences, ", \t")})
	switch {
	case strings.HasPrefix(value, "*"):
		f.Kind, f.Means = UsagePath, "A path begins with /; this one is read as a preference, and the whole line is lost."
		f.Instead = "Begin the path with /, such as /*.pdf."
	case strings.HasSuffix(strings.TrimSpace(preferences), ",") && cutErr == nil:
		f.Kind, f.Means = UsageComma, "A comma after the last preference makes the whole line unreadable; it is lost."
		f.Instead = "Remove the comma at the end."
	case lowErr == nil:
		f.Kind, f.Means = UsageKeyCase, "A label has lower-case letters only; the whole line is lost."
		f.Instead = "Write " + safetext.Excerpt(strings.ToLower(preferences)) + "."
	}
	return f
}

// lintSignal finds what is lost in a Content-Signal: the members that say nothing. The others
// count.
func lintSignal(value string) []Finding {
	var all []Finding
	members := signalMembers(value)
	rest := ""
	if slices.ContainsFunc(members, func(m signalMember) bool { return m.fault == "" }) {
		rest = "; the others count"
	}
	for _, m := range members {
		canonical := m.key + "=" + map[Answer]string{Allow: "yes", Disallow: "no"}[m.answer]
		f := Finding{Kind: m.fault, Serious: true}
		switch {
		case m.fault == recordedOnly, m.fault == "" && strings.Trim(m.text, " ") == canonical:
			continue
		case m.fault == SignalList && strings.HasPrefix(m.key, "/"):
			f.Means = "Content-Signal takes no path: this part has no effect" + strings.Replace(rest, "count", "count for all pages", 1) + "."
			f.Instead = "Leave out the path, or write a Content-Usage, which takes one."
		case m.fault == SignalList:
			f.Means = "This part is not key=value; it has no effect" + rest + "."
			f.Instead = "Write it as: search=yes, ai-train=no."
		case m.fault == SignalKey:
			f.Serious, f.Means, f.Instead = false, "The key is unknown; it has no effect.", "Write search, ai-input or ai-train."
		case m.fault == SignalValue:
			f.Means = "The value is neither yes nor no; the reservation is lost" + rest + "."
			f.Instead = "Write " + m.key + "=no or " + m.key + "=yes."
		case m.fault == "" && !strings.EqualFold(strings.ReplaceAll(m.text, " ", ""), canonical):
			f.Kind, f.Means = SignalValue, "The value is neither yes nor no; robots that read it as it is specified lose the reservation."
			f.Instead = "Write " + m.key + "=no or " + m.key + "=yes."
		default:
			canonical = m.key + "=" + strings.ToLower(strings.TrimSpace(m.text[strings.IndexByte(m.text, '=')+1:]))
			f.Kind, f.Serious = SignalCase, false
			f.Means = "Keys and values are written in lower case, without spaces around =; some robots may not read this."
			f.Instead = "Write " + canonical + "."
		}
		all = append(all, f)
	}
	return all
}
