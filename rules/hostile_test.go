package rules_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"heed/rules"
)

// What a hostile site or client may try: to lose a rule on the way, or to make
// a decision cost more than it may.

// TestHeed_LongEscapedPatternsAreFound has rules that begin with the same
// 48,000 octets of packed text.
func TestHeed_LongEscapedPatternsAreFound(t *testing.T) {
	const count = 40
	var file strings.Builder
	file.WriteString("User-agent: *\n")
	for i := range count {
		fmt.Fprintf(&file, "Disallow: /%s%02d\n", strings.Repeat("\xFF", 16_000), i)
	}
	p := standard(file.String())
	begin := "/" + strings.Repeat("%FF", 16_000)
	for i := range count {
		if d := p.Decide(nil, begin+fmt.Sprintf("%02d", i)); d.Line != i+2 {
			t.Errorf("rule %d: %v by line %d", i, d.Verdict, d.Line)
		}
	}
	if d := p.Decide(nil, begin); d.Verdict != rules.Allow {
		t.Errorf("without the end: %v by line %d", d.Verdict, d.Line)
	}
}

// TestHeed_AFileOfOneLineIsNotLostToTheLimit has no line break within the limit:
// what is read of its line is there all the same.
func TestHeed_AFileOfOneLineIsNotLostToTheLimit(t *testing.T) {
	long := "User-agent: * Disallow: /a " + strings.Repeat("x", rules.MaxBytes)
	if d := standard(long).Decide(nil, "/a%20"+strings.Repeat("x", rules.MaxLine)); d.Line != 1 {
		t.Errorf("%v by line %d", d.Verdict, d.Line)
	}
}

// TestHeed_TheLimitCutsNoLineOfUTF16 has a letter whose second octet is that of
// a line feed in the line that the limit cuts.
func TestHeed_TheLimitCutsNoLineOfUTF16(t *testing.T) {
	head := "User-agent: *\nDisallow: /\n"
	head += strings.Repeat("#"+strings.Repeat("x", 1022)+"\n", 2047)
	pad := (rules.MaxBytes-2)/2 - len(head) - len("\nAllow: /\u0A41\u0A41")
	file := utf16(head+strings.Repeat("\n", pad)+"\nAllow: /\u0A41\u0A41\u0A41private\n", false)
	if len(file) < rules.MaxBytes {
		t.Fatalf("%d octets are too few", len(file))
	}
	for cut := range 6 {
		body := utf16(head+strings.Repeat("\n", pad+cut)+"\nAllow: /\u0A41\u0A41\u0A41private\n", false)
		if d := standard(body).Decide(nil, "/\u0A41\u0A41x"); d.Verdict != rules.Refuse {
			t.Errorf("cut %d: %v by line %d %q", cut, d.Verdict, d.Line, d.Rule)
		}
	}
}

// TestHeed_WhatIsTooCostlyToReadIsRefused asks for an ambiguous target among
// very many wildcards: a short one is read, a long one is not.
func TestHeed_WhatIsTooCostlyToReadIsRefused(t *testing.T) {
	p := standard("User-agent: *\n" + strings.Repeat("Disallow: /*a*b*c*d\n", 1<<13+1))
	for target, want := range map[string]rules.Reason{
		"/x/../y":                              rules.ReasonNoRule,
		"/" + strings.Repeat("x", 2000):        rules.ReasonNoRule,
		"/x/../" + strings.Repeat("x", 2000):   rules.ReasonMalformed,
		"/x/../abcd":                           rules.ReasonRule,
		"/%2f" + strings.Repeat("xabcdx", 200): rules.ReasonMalformed,
	} {
		if d := p.Decide(nil, target); d.Reason != want || (d.Verdict == rules.Allow) != (want == rules.ReasonNoRule) {
			t.Errorf("%.40s: %v, %s", target, d.Verdict, d.Reason)
		}
	}
}

// TestHeed_NamesOfVeryManyGroupsAreRemembered has names whose lists of groups
// overlap, so that not every one of them can have an index.
func TestHeed_NamesOfVeryManyGroupsAreRemembered(t *testing.T) {
	var file strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&file, "User-agent: n1,n2,n3,n4\nDisallow: /%x$\n", i)
		if i < 4 {
			fmt.Fprintf(&file, "User-agent: n%d\nDisallow: /y\n", i+1)
		}
	}
	p := standard(file.String())
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		agent := rules.Identify(name)
		for target, want := range map[string]rules.Verdict{"/0": rules.Refuse, "/7cf": rules.Refuse, "/y": rules.Refuse, "/z": rules.Allow} {
			if d := p.Decide(agent, target); d.Verdict != want {
				t.Errorf("%s, %s: %+v", name, target, d)
			}
		}
		if n := testing.AllocsPerRun(10, func() { p.Decide(agent, "/z") }); n >= 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestREP1994_ManyNamesForALongAgentTakeNoTime looks for as many names as a file
// can hold in as long a User-Agent as heed takes. One after the other that is
// 80,000,000,000 octets to look at; a second is plenty, and the bound leaves room for
// a busy machine.
func TestREP1994_ManyNamesForALongAgentTakeNoTime(t *testing.T) {
	word := strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j")
	var agent, file strings.Builder
	for i := 0; agent.Len() < 250_000; i++ {
		agent.WriteString(word.Replace(strconv.Itoa(i)) + "/1 ")
	}
	for i := 0; file.Len() < 4_000_000; i++ {
		file.WriteString("user-agent: " + word.Replace(strconv.Itoa(i)) + "k\n")
	}
	file.WriteString("user-agent: jjj\nDisallow: /x\n")
	p := rules.NewAs(rules.REP1994, rules.Source{State: rules.Available}, []byte(file.String()))
	begun := time.Now()
	if d := p.Decide(rules.Identify(agent.String()), "/x"); d.Verdict != rules.Refuse || d.Group != "jjj" {
		t.Errorf("%+v", d)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
