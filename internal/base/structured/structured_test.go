package structured_test

import (
	"fmt"
	"testing"

	"heed/internal/base/structured"
	"heed/internal/tools/testkit/must"
)

func TestDictionary(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"train-ai=n, search=y":   "[{train-ai n n } {search y y }]",
		"a=1, b, c=\"n\", d=n":   `[{a  1 } {b  ?1 } {c  "n" } {d n n }]`,
		"a=y, b=n, a=n":          "[{a n n } {b n n }]",
		"a=(x y);q=1, b=y;p=(z)": "error",
		"a=(x y);q=1, b=y;p=z":   "[{a   } {b y y ;p=z}]",
		"a=y,":                   "error",
		"A=y":                    "error",
		"":                       "[]",
	} {
		got := "error"
		if all, err := structured.Dictionary([]string{value}); err == nil {
			got = fmt.Sprint(all)
		}
		must.Equal(t, got, want, "%q", value)
	}
}

func TestFilterList(t *testing.T) {
	t.Parallel()
	ours := func(name string) bool { return name == "heed" }
	for value, want := range map[string]string{
		`heed; error=x, "other"; a=1`: `"other";a=1`,
		`heed`:                        ``,
		`"heed", a`:                   `a`,
		`a,`:                          `error`,
	} {
		got, err := structured.FilterList([]string{value}, ours)
		if err != nil {
			got = "error"
		}
		must.Equal(t, got, want, "%q", value)
	}
}
