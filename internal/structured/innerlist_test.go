package structured_test

import (
	"fmt"
	"testing"

	"heed/internal/structured"
)

func TestNameLists(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`a=("x" "y";key="k";req);created=1;tag="t", b=()`: `[{a [{x [] "x"} {y [{key k} {req true}] "y";key="k";req}] [{created 1} {tag t}] ("x" "y";key="k";req);created=1;tag="t"} {b [] [] ()}]`,
		`a=(  "x"  )`: `[{a [{x [] "x"}] [] ("x")}]`,
		``:            `[]`,
		`a="x"`:       structured.ErrMember.Error(),
		`a=(x)`:       structured.ErrMember.Error(),
		`a=("x"`:      "error",
	} {
		got := ""
		all, err := structured.NameLists([]string{value})
		switch {
		case err == structured.ErrMember:
			got = err.Error()
		case err != nil:
			got = "error"
		default:
			got = fmt.Sprint(all)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	texts, err := structured.Strings([]string{`a="x"`, `b="y";p`})
	if err != nil || fmt.Sprint(texts) != "[{a x true} {b y false}]" {
		t.Errorf("%v, %v", texts, err)
	}
	octets, err := structured.ByteSequences([]string{`a=:AQI=:`})
	if err != nil || fmt.Sprint(octets) != "[{a [1 2] true}]" {
		t.Errorf("%v, %v", octets, err)
	}
	for _, value := range []string{`a=x`, `a=("x")`, `a`, `a=1`, `"x"`} {
		if _, err := structured.Strings([]string{value}); err == nil {
			t.Errorf("%s is taken for strings", value)
		}
		if _, err := structured.ByteSequences([]string{value}); err == nil {
			t.Errorf("%s is taken for octets", value)
		}
	}
	for value, want := range map[string]string{`"x"`: "x", ` "a\"b" `: `a"b`, `x`: "error", `"x";p`: "error", `"x", "y"`: "error", ``: "error"} {
		got, err := structured.String([]string{value})
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

func TestSerialized(t *testing.T) {
	t.Parallel()
	lines := []string{`a="x"; p=1`, `b=( "y"  z)`, `a="w"`}
	for key, want := range map[string]string{"a": `"w"`, "b": `("y" z)`, "c": ""} {
		if got, ok, err := structured.Serialized(lines, key); got != want || ok != (want != "") || err != nil {
			t.Errorf("%s: %q, %v, %v", key, got, ok, err)
		}
	}
	if _, ok, err := structured.Serialized([]string{"("}, "a"); ok || err == nil {
		t.Error("no error")
	}
}
