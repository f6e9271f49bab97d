package signal_test

import (
	"strings"
	"testing"

	"heed/internal/judge/signal"
	"heed/rules"
)

// reading is what becomes of a statement for training.
type reading struct{ standard, strict string }

// The readings: under standard and strict. A fault says nothing under standard, and is in the
// record with the words as they were received.
var (
	reserved = reading{"refused", "refused"}
	unclear  = reading{"fault", "refused"}
	allowed  = reading{"allowed", "allowed"} // a permission, as it is specified
	nothing  = reading{"nothing", "nothing"}
)

// slips are statements as sites write them, by their source. A slip may only tighten.
var slips = map[string]map[string]reading{
	"Content-Usage in robots.txt and in the header": {
		"train-ai=n": reserved, "train-ai=y": allowed, "search=n": nothing, "": nothing, "colour=red": nothing, "train-ai=n;exc=research": reserved, "train-ai=y;exc=research": allowed,
		"ai=n": reserved, "train-genai=n, search=y": reserved, "train-ai=n, future=(a b);q=1": reserved,
		// One meaning.
		"train-ai=n,": reserved, "train-ai=no": reserved, "train-ai=false": reserved, "train-ai=disallow": reserved, "train-ai=?0": reserved, "Train-AI=n": reserved, "train-ai=N": reserved, "TRAIN-AI=Disallow": reserved,
		`train-ai="n"`: reserved, "search=y, train-ai=n,": reserved, "train-ai=n, train-ai=n": reserved, "ai-train=n": reserved, "Train-AI=N;exc=x": reserved, "train-ai=n,,search=y": reserved, "all=No": reserved,
		// Permissions that are not as they are specified.
		"train-ai=y,": unclear, "train-ai=yes": unclear, "train-ai=true": unclear, "train-ai=allow": unclear, "Train-AI=y": unclear, "train-ai=Y": unclear, "train-ai": unclear, "train-ai=?1": unclear, `train-ai="y"`: unclear,
		"ai-train=y": unclear, "all=n, train-ai=yes": reserved, "train-ai=y,train-ai=n,": reserved,
		// What is not understood.
		"ai=n train-ai=n": unclear, "train-ai=n search=y": unclear, "train-ai=maybe": unclear, "train-ai:n": unclear, "train-ai=0": unclear, "train-ia=n": unclear, "no-train-ai": unclear, "search=y;train-ai=n": unclear, "*=n": unclear,
		"train-ai=(n)": unclear,
	},
	"Content-Signal in robots.txt, in the header and in META": {
		"ai-train=no": reserved, "search=yes, ai-train=no": reserved, "ai-train=yes": allowed, "search=no": nothing, "use=reference": nothing, "colour=yes": nothing,
		"ai-train=no,": reserved, "AI-Train = No": reserved, "ai-train=disallow": reserved, "ai-train=false": reserved, "ai-train=n": reserved, "ai-train=no;search=yes": reserved, `ai-train="no"`: reserved, "ai-train=no, ai-train=no": reserved,
		"train-ai=no": reserved, "ai-train=NO;q=1": reserved, "ai-train=yes, ai-train=No": reserved,
		"ai-train=y": unclear, "ai-train=true": unclear, "ai-train = yes": unclear, "AI-TRAIN=YES": unclear, "ai-train=allow": unclear, "ai-train=yes;q=1": unclear, "train-ai=yes": unclear, `ai-train="yes"`: unclear, "ai-train=1": unclear,
		"ai-train: no": unclear, "ai-train=no search=yes": unclear, "ai-train=maybe": unclear, "ai-training=no": unclear, "no-ai-train": unclear, "search=yes;ai-train=no": unclear, "ai-train": unclear, "ai-train=none": unclear,
	},
	"tdm-reservation in the header and in META": {
		"1": reserved, "0": allowed, " 0 ": allowed,
		"true": reserved, "1.0": reserved, "?1": reserved, "True": reserved, "1;x=y": reserved, "1, 1": reserved, `"1"`: reserved, "01": reserved, "1,": reserved, "0, 1": reserved,
		"0.0": unclear, "false": unclear, "?0": unclear, "0;x=y": unclear, "0, 0": unclear, `"0"`: unclear, "00": unclear, "-0": unclear, "no": unclear, "": unclear, "2": unclear, "yes": unclear, "0 1": unclear,
	},
	"tdmrep.json": {
		`[{"location":"/","tdm-reservation":1}]`: reserved, `[{"location":"/","tdm-reservation":0}]`: allowed, `[{"location":"*","tdm-reservation":1}]`: reserved, `[{"location":"/**","tdm-reservation":1}]`: reserved, `[{"location":"/other","tdm-reservation":1}]`: nothing,
		`[]`: nothing, `[{}]`: nothing, `<html>tdm`: nothing, `{"error":"no tdmrep.json"}`: nothing,
		// One meaning.
		`[{"location":"/","tdm-reservation":1,},]`: reserved, `{"location":"/","tdm-reservation":1}`: reserved, `{"tdmrep":[{"location":"/","tdm-reservation":1}]}`: reserved, `[{"tdm-reservation":1}]`: reserved, `[{"location":"","tdm-reservation":1}]`: reserved,
		`[{"location":["/x","/"],"tdm-reservation":1}]`: reserved, `[{"location":"https://site.example/","tdm-reservation":1}]`: reserved, `[{"location":"https://site.example","tdm-reservation":1}]`: reserved, `[{"location":"https://SITE.example:443/*","tdm-reservation":1}]`: reserved,
		`[{"location":"/","tdm-reservation":true}]`: reserved, `[{"location":"/","tdm-reservation":1.0}]`: reserved, `[{"location":"/","tdm-reservation":"1"}]`: reserved, `[{"Location":"/","TDM-Reservation":1}]`: reserved, `{"tdm_reservation":1}`: reserved,
		`[{"location":"/","tdm-reservation":1,"tdm-reservation":1}]`: reserved, `[{"location":"/","tdm-reservation":0,"tdm-reservation":1}]`: reserved,
		// Permissions that are not as they are specified.
		`[{"location":"/","tdm-reservation":0},]`: unclear, `{"location":"/","tdm-reservation":0}`: unclear, `{"tdmrep":[{"location":"/","tdm-reservation":0}]}`: unclear, `[{"tdm-reservation":0}]`: unclear, `[{"location":["/"],"tdm-reservation":0}]`: unclear,
		`[{"location":"/","tdm-reservation":"0"}]`: unclear, `[{"location":"/","tdm-reservation":false}]`: unclear, `[{"location":"/","tdm-reservation":0.0}]`: unclear, `[{"location":"/","TDM-Reservation":0}]`: unclear, `[{"location":"/","tdm-reservation":0,"tdm-reservation":0}]`: unclear,
		`[{"location":"/","tdm-reservation":null}]`: unclear, `{"tdm_reservation":0}`: unclear,
		// They hide no reservation that is behind them.
		`[{"location":"/","tdm-reservation":"0"},{"location":"*","tdm-reservation":1}]`: reserved, `[{"location":"/","tdm-reservation":0},{"location":"*","tdm-reservation":1},]`: reserved,
		// What is not understood.
		`[{"location":"/","tdm-reservation":2}]`: unclear, `[{"location":"/"},{"x":"tdm"}]`: unclear, `[{"location":5,"tdm-reservation":1}]`: unclear, `[{"location":"https://www.site.example/","tdm-reservation":1}]`: unclear, `[{"location":"page","tdm-reservation":1}]`: unclear,
		`{"policy":{"tdm":{"reservation":1}}}`: unclear, `[{"location":"/","tdm-reservation":1}`: unclear, `tdm-reservation: 1`: unclear,
	},
}

// places are where a statement of each source is made.
var places = map[string][]func(text string) request{
	"Content-Usage in robots.txt and in the header": {
		func(text string) request {
			return request{robots: "User-agent: *\nAllow: /\nContent-Usage: " + text + "\n"}
		},
		func(text string) request {
			return request{robots: "User-agent: *\nAllow: /\nContent-Usage: / " + text + "\n"}
		},
		func(text string) request { return request{header: []string{"Content-Usage: " + text}} },
	},
	"Content-Signal in robots.txt, in the header and in META": {
		func(text string) request {
			return request{robots: "User-agent: *\nAllow: /\nContent-Signal: " + text + "\n"}
		},
		func(text string) request { return request{header: []string{"Content-Signal: " + text}} },
		func(text string) request {
			return request{head: `<head><meta name="Content-Signal" content='` + text + `'></head>`}
		},
	},
	"tdm-reservation in the header and in META": {
		func(text string) request { return request{header: []string{"TDM-Reservation: " + text}} },
		func(text string) request {
			return request{head: `<head><meta name="tdm-reservation" content='` + text + `'></head>`}
		},
	},
	"tdmrep.json": {func(text string) request { return request{tdmrep: text} }},
}

// TestHeed_Slips has each statement in each place where its source has it.
func TestHeed_Slips(t *testing.T) {
	t.Parallel()
	n := 0
	for source, all := range slips {
		for text, want := range all {
			n++
			for _, place := range places[source] {
				r := place(text)
				v := r.judge(t)
				if got := readingOf(r, v, t); got != want {
					t.Errorf("%s: %s%s%v%s\n%v, want %v: %+v", source, r.robots, r.tdmrep, r.header, r.head, got, want, v.Statements)
				}
			}
		}
	}
	t.Log(n, "statements")
}

// readingOf returns what becomes of a request, of which v is the verdict under standard.
func readingOf(r request, v *signal.Verdict, t *testing.T) (got reading) {
	words := func(v *signal.Verdict) string {
		_, refused := v.Refuses(signal.PurposeTraining)
		switch {
		case refused:
			return "refused"
		case v.Of(signal.TrainAI) == signal.Allow:
			return "allowed"
		case v.Unclear(signal.PurposeTraining):
			return "fault"
		}
		return "nothing"
	}
	r.profile = rules.Strict
	strict := r.judge(t)
	if again := v.Under(rules.Strict); words(again) != words(strict) {
		t.Errorf("%v%s: a record is %s under strict, and the site %s", r.header, r.robots, words(again), words(strict))
	}
	return reading{words(v), words(strict)}
}

// A statement that is not understood hides none that counts without it: in a group, at a longer
// path, in a later source. One that is understood does.
func TestHeed_ASlipHidesNoReservation(t *testing.T) {
	t.Parallel()
	const file = "Content-Signal: ai-train=no\nContent-Usage: train-ai=n\n"
	reserves := `[{"location":"/","tdm-reservation":1}]`
	for _, c := range []struct {
		request
		refused bool
	}{
		{request{robots: file + "User-agent: ExampleBot\nContent-Signal: ai-train=yes\nContent-Usage: train-ai=y\n"}, false},
		{request{robots: file + "User-agent: ExampleBot\nContent-Signal: ai-train=ye\nContent-Usage: train-ai=y\n"}, true},
		{request{robots: file + "User-agent: ExampleBot\nContent-Signal: search=ye\nContent-Usage: train-ai=y\n"}, false}, // about another use
		{request{robots: file + "User-agent: ExampleBot\nContent-Signals: ai-train=yes\nContent-Usage: train-ai=y\n"}, true},
		{request{robots: file + "User-agent: ExampleBot\nContent-Signal: ai-train=yes\nContent-Usage: train-ai=yes\n"}, true},
		{request{robots: "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /open/ train-ai=y\n", path: "/open/a"}, false},
		{request{robots: "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /open/ train-ai=y,\n", path: "/open/a"}, true},
		{request{robots: "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /open/ search=yes\n", path: "/open/a"}, false},
		{request{robots: "Content-Signals: ai-train=no\nUser-agent: *\nAllow: /\n"}, true},
		{request{tdmrep: reserves, header: []string{"tdm-reservation: 0"}}, false},
		{request{tdmrep: reserves, header: []string{"tdm-reservation: 0, 0"}}, true},
		{request{tdmrep: reserves, header: []string{"tdm-reservation: 0", "tdm-reservation: 0"}}, true},
		{request{tdmrep: reserves, head: `<head><meta name="tdm-reservation" content="false"></head>`}, true},
		{request{header: []string{"tdm-reservation: 1"}, head: `<head><meta name="tdm-reservation" content="no"></head>`}, true},
		{request{tdmrep: `{"tdm":1}`, header: []string{"tdm-reservation: 0"}, profile: rules.Strict}, false}, // the page counts in place of the file
	} {
		if _, refused := c.judge(t).Refuses(signal.PurposeTraining); refused != c.refused {
			t.Errorf("%s%s%v%s: refused %v, want %v", strings.ReplaceAll(c.robots, "\n", " | "), c.tdmrep, c.header, c.head, refused, c.refused)
		}
	}
}
