package signal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"heed/internal/judge/signal"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// TestMETA1997 has the terms of the ROBOTS META tag of 1996 and 1997, with the reading of
// that time and the one of today: what they let a robot do, "index" and "follow".
func TestMETA1997_BothReadings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ content, then, today string }{
		{"", "index follow", "index follow"}, // no terms, or no element, are ALL
		{"ALL", "index follow", "index follow"},
		{"NONE", "- -", "- -"},
		{"INDEX", "index follow", "index follow"},
		{"NOINDEX", "- follow", "- follow"},
		{"FOLLOW", "index follow", "index follow"},
		{"NOFOLLOW", "index -", "index -"},
		{"INDEX,FOLLOW", "index follow", "index follow"},
		{"NOINDEX, FOLLOW", "- follow", "- follow"},
		{"INDEX, NOFOLLOW", "index -", "index -"},
		{"NOINDEX,NOFOLLOW", "- -", "- -"},
		{"noindex , nofollow", "- -", "- -"}, // case and spaces have no meaning
		{"NoIndex NoFollow", "- -", "- -"},
		{"ALL, NOINDEX", "index follow", "- follow"}, // ALL wins over all else
		{"NONE, ALL", "index follow", "- -"},
		{"ALL, NOFOLLOW", "index follow", "index -"},
		{"FOLLOW, NOFOLLOW", "index follow", "index -"}, // the robot's choice: FOLLOW
		{"INDEX, NOINDEX", "index follow", "- follow"},
		{"NONE, FOLLOW", "- follow", "- -"},
		{"NONE, INDEX", "index -", "- -"},
		{"NOINDEX, UNHEARDOF", "- follow", "- follow"},
	} {
		for profile, want := range map[rules.Profile]string{rules.REP1994: c.then, rules.Standard: c.today, rules.Strict: c.today, rules.Google: c.today} {
			v := request{profile: profile, head: `<html><head><META NAME="ROBOTS" CONTENT="` + c.content + `"></head>`}.judge(t)
			index, follow := signal.ReadTerms(profile, termsOf(v))
			got := fmt.Sprintf("%s %s", word("index", index), word("follow", follow))
			must.Equal(t, got, want, "%q under %s", c.content, profile)
			_, refused := v.Refuses(signal.PurposeSearch)
			must.True(t, refused != index, "%q under %s: search is refused: %v", c.content, profile, refused)
			_, refused = v.Refuses(signal.PurposeAgent, signal.PurposeArchive)
			must.True(t, !refused, "%q under %s refuses more than search", c.content, profile)
		}
	}
}

// termsOf returns the terms of all statements.
func termsOf(v *signal.Verdict) (all []string) {
	for _, s := range v.Statements {
		all = append(all, s.Terms...)
	}
	return all
}

func word(w string, yes bool) string {
	if yes {
		return w
	}
	return "-"
}

// The precedence that was applied is recorded.
func TestMETA1997_ThePrecedenceIsRecorded(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]signal.Precedence{
		"all, noindex": signal.AllWins, "noindex, index": signal.PermissiveWins, "noindex": signal.Agreed,
	} {
		v := request{profile: rules.REP1994, head: `<meta name="robots" content="` + content + `">`}.judge(t)
		must.Equal(t, v.Results[signal.Search].Precedence, want, content)
	}
	v := request{profile: rules.REP1994, head: `<meta name="robots" content="all, unavailable_after: 1 Jan 2020">`}.judge(t)
	must.Equal(t, v.Of(signal.Search), signal.Disallow, "ALL, a term of 1997, wins over a date, which is none")
}

// TestXRobotsTag has the scopes, the values and the dates of X-Robots-Tag. The terms are
// those for ExampleBot.
func TestXRobotsTag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, terms, refuses string }{
		{"noindex", "noindex", "search"},
		{"NOINDEX, NoFollow", "noindex nofollow", "search"},
		{"none", "none", "search"},
		{"noarchive", "noarchive", "archive"},
		{"nocache", "nocache", "archive"},
		{"nosnippet, max-snippet:0, max-image-preview: none, max-video-preview:-1", "nosnippet max-snippet: 0 max-image-preview: none max-video-preview: -1", ""},
		{"noai, noimageai, notranslate, noimageindex, indexifembedded", "noai noimageai notranslate noimageindex indexifembedded", ""},
		{"ExampleBot: noindex", "noindex", "search"},
		{"examplebot:noindex, nofollow", "noindex nofollow", "search"},
		{"otherbot: noindex", "", ""},
		{"*: noindex", "noindex", "search"},
		{"otherbot: noindex, examplebot: noarchive", "noarchive", "archive"},
		{"nofollow, otherbot: noindex", "nofollow", ""},
		{"nofollow, ExampleBot: noindex", "nofollow noindex", "search"},
		{"unavailable_after: 25 Jun 2010 15:00:00 PST", "unavailable_after: 25 Jun 2010 15:00:00 PST", "search"},
		{"unavailable_after: 25 Jun 2099 15:00:00 PST", "unavailable_after: 25 Jun 2099 15:00:00 PST", ""},
		{"unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, nofollow", "unavailable_after: Friday, 25-Jun-10 15:00:00 UTC nofollow", "search"},
		{"unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, otherbot: noarchive", "unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT", "search"},
		{"ExampleBot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT", "unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT", "search"},
		{"unavailable_after: 2010-06-25", "unavailable_after: 2010-06-25", "search"},
		{"unavailable_after: 2010-06-25T15:00:00+02:00", "unavailable_after: 2010-06-25T15:00:00+02:00", "search"},
		{"unavailable_after: soon, noarchive", "unavailable_after: soon noarchive", "archive"},
		{"unavailable_after: 2026-11-20", "unavailable_after: 2026-11-20", ""},                             // it is still that day
		{"unavailable_after: 20 Nov 2026 08:00:00 EST", "unavailable_after: 20 Nov 2026 08:00:00 EST", ""}, // an hour from now
		{"unavailable_after: 20 Nov 2026 06:00:00 EST", "unavailable_after: 20 Nov 2026 06:00:00 EST", "search"},
		{"noindex nofollow", "noindex nofollow", "search"},
		{"noindex; nofollow", "noindex nofollow", "search"},
		{"please do not index", "please do not index", ""},
		{",,noindex,,", "noindex", "search"},
		{"", "", ""},
		{"all, noindex", "all noindex", "search"}, // today any restriction counts
	} {
		v := request{header: []string{"X-Robots-Tag: " + c.value}}.judge(t)
		must.Equal(t, strings.Join(termsOf(v), " "), c.terms, "%q: the terms", c.value)
		must.Equal(t, refused(v), c.refuses, "%q refuses", c.value)
	}
}

// refused returns the purposes that a verdict refuses.
func refused(v *signal.Verdict) string {
	var all []string
	for _, p := range signal.Purposes() {
		if _, refused := v.Refuses(p); refused {
			all = append(all, string(p))
		}
	}
	return strings.Join(all, " ")
}

// Lines of a header are kept apart: the scope of one does not reach the next.
func TestXRobotsTag_EachLineHasItsOwnScope(t *testing.T) {
	t.Parallel()
	v := request{header: []string{"X-Robots-Tag: otherbot: nofollow", "X-Robots-Tag: noindex"}}.judge(t)
	if got := refused(v); got != "search" || len(v.Statements) != 1 || v.Statements[0].Text != "X-Robots-Tag: noindex" {
		t.Errorf("%q, %+v", got, v.Statements)
	}
}

// TestREPX has the structured form of the field, with the terms of "*" and of the agent
// united.
func TestREPX_RobotsTag(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"*;noindex":                       "noindex",
		"*;nosnippet, ExampleBot;noindex": "nosnippet noindex",
		"otherbot;noindex":                "",
		"examplebot;noindex;":             "noindex",
		"*;noindex=?0":                    "",
		"*;noindex=?1;nosnippet":          "noindex nosnippet",
		`"examplebot";noindex`:            "noindex",
		"noindex":                         "noindex", // without a crawler it is read as X-Robots-Tag is
		"*;max-snippet=20":                "max-snippet: 20",
	} {
		v := request{header: []string{"Robots-Tag: " + value}}.judge(t)
		must.Equal(t, strings.Join(termsOf(v), " "), want, "%.60q", value)
	}
}

// A term counts however much is written before it, and what is kept of the rest is bounded.
func TestTerms_ManyOthersHideNone(t *testing.T) {
	t.Parallel()
	var many, distinct strings.Builder
	for i := range 20_000 {
		many.WriteString("x, ")
		fmt.Fprintf(&distinct, "x%d, ", i)
	}
	lines := slices.Repeat([]string{"X-Robots-Tag: otherbot: nofollow"}, 5_000)
	for name, q := range map[string]request{
		"a long line":            {header: []string{"X-Robots-Tag: " + strings.Repeat("x", 100_000) + ", noindex"}},
		"a repeated term":        {header: []string{"X-Robots-Tag: " + many.String() + "noindex"}},
		"many terms":             {header: []string{"X-Robots-Tag: " + distinct.String() + "noindex"}},
		"many terms, structured": {header: []string{"Robots-Tag: *;" + strings.ReplaceAll(distinct.String(), ", ", ";") + "noindex"}},
		"many lines":             {header: append(lines, "X-Robots-Tag: noindex")},
		"many lines that say":    {header: append(slices.Repeat([]string{"X-Robots-Tag: all"}, 5_000), "X-Robots-Tag: noindex")},
		"many dates":             {header: []string{"X-Robots-Tag: " + strings.Repeat("unavailable_after: 2030-01-01, nofollow, ", 2_000) + "noindex"}},
		"a META element":         {head: `<head><meta name="robots" content="` + distinct.String() + `noindex">`},
	} {
		v := q.judge(t)
		must.Equal(t, refused(v), "search", "%s: what is refused", name)
		text, err := json.Marshal(v)
		must.True(t, err == nil && len(text) <= 32<<10, "%s: %d octets are recorded, %v", name, len(text), err)
	}
}

// Elements for all robots and for each name of the agent count, and their restrictions add
// up; elements for others do not count.
func TestMETA_NamesOfTheAgent(t *testing.T) {
	t.Parallel()
	const head = `<head><meta name="robots" content="nofollow"><meta name="ExampleBot" content="noarchive">
<meta name="otherbot" content="noindex"><meta name="description" content="noindex"></head>`
	for agent, want := range map[string]string{
		"ExampleBot/2.1": "archive",
		"Mozilla/5.0 (compatible; OtherBot/1.0; +https://bots.example/)": "search",
		"ExampleBot/1 OtherBot/2": "search archive",
		"curl/8.5":                "",
		"Description/1.0":         "search",
	} {
		v := request{agent: agent, head: head}.judge(t)
		must.Equal(t, refused(v), want, "%s: what is refused", agent)
	}
}

func FuzzTerms(f *testing.F) {
	f.Add("noindex, ExampleBot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nofollow", "otherbot;noindex, *;x=?0")
	f.Add("max-snippet:0;;,:,", "*;;;,")
	f.Fuzz(func(t *testing.T, tag, structured string) {
		if strings.ContainsAny(tag+structured, "\r\n") {
			return
		}
		v := request{header: []string{"X-Robots-Tag: " + tag, "Robots-Tag: " + structured, "Content-Usage: " + tag, "Link: " + structured, "tdm-reservation: " + tag}}.judge(t)
		checkVerdict(t, v)
		must.True(t, !slices.ContainsFunc(v.Statements, func(s signal.Statement) bool { return len(s.Terms) > 200 }),
			"more than 200 terms")
	})
}

// noai and noimageai refuse training under the profile strict alone, and not where they come
// without the page.
func TestHeed_TermsAgainstAIRefuseTrainingUnderStrict(t *testing.T) {
	t.Parallel()
	for _, r := range []request{
		{head: `<meta name="robots" content="noai">`}, {head: `<meta name="robots" content="index, noimageai">`},
		{header: []string{"X-Robots-Tag: noai"}}, {header: []string{"X-Robots-Tag: examplebot: noimageai"}},
	} {
		for _, profile := range []rules.Profile{rules.Standard, rules.Strict, rules.Google, rules.REP1994} {
			r.profile = profile
			v := r.judge(t)
			if refusal, refused := v.Refuses(signal.PurposeTraining); refused != (profile == rules.Strict) || refused && refusal.Statement == nil {
				t.Errorf("%+v: refused %v", r, refused)
			}
			_, refused := v.Refuses(signal.PurposeSearch, signal.PurposeAgent, signal.PurposeTDM)
			must.True(t, !refused, "%+v: refused for other purposes", r)
			_, refused = v.Under(rules.Strict).Refuses(signal.PurposeTraining)
			must.True(t, refused, "%+v: replayed under strict it is not refused", r)
		}
	}
	in := request{header: []string{"X-Robots-Tag: noai"}, profile: rules.Strict}.input(t)
	in.Status = http.StatusFound
	_, refused := signal.Judge(in).Refuses(signal.PurposeTraining)
	must.True(t, !refused, "a redirect is refused by noai")
}

// A list of names of crawlers without commas is read in time that grows with its length: with
// the square of it, this one takes an hour.
func TestHeed_AListOfNamesAloneIsReadOnce(t *testing.T) {
	t.Parallel()
	v := request{agent: "examplebot", header: []string{"X-Robots-Tag: " + strings.Repeat("a:", 2<<20) + "examplebot: noindex"}}.judge(t)
	must.True(t, len(v.Statements) == 1 && strings.Join(v.Statements[0].Terms, " ") == "noindex",
		"%d statements", len(v.Statements))
}
