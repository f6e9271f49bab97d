package table

import (
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestLayout(t *testing.T) {
	t.Parallel()
	l := NewLayout(Column{Head: "site"}, Column{Head: "pages", Kind: Count}, Column{Head: "time", Kind: Seconds}).AtLeast(8, 0, 0)
	rows := [][]any{{"a.test", int64(1234567), 50000.0}, {"b\x1b.test", int64(0), nil}}
	for _, row := range rows {
		l.Fit(row)
	}
	must.Equal(t, l.Head(), "site            pages    time")
	for i, want := range []string{"a.test      1,234,567  13.9 h", "b\\x1b.test          0       -"} {
		must.Equal(t, l.Row(rows[i]), want)
	}
}

// A narrow terminal shows sentences whole and other texts cut.
func TestTable_Lines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	x := List([]int64{1500, 2, 3}, 2, func(n *int64) []any { return []any{*n, long, nil, "a rule", "2026-05-01T12:00:00Z"} },
		Column{Head: "n", Kind: Times}, Column{Head: "site"}, Column{Head: "waited", Kind: Figure}, Column{Head: "why", Kind: Sentence}, Column{Head: "seen", Kind: Moment})
	x.Paged = 1
	if got := x.Lines(); x.More != 1 || len(got) != 3 || got[1] != "1,500 x  "+long[:47]+"…       -  a rule  2026-05-01 12:00:00" {
		t.Errorf("%d more, %q", x.More, got)
	}
	if got := x.AsText().Lines(); got[0] != "n        site"+strings.Repeat(" ", 58)+"waited  why" || got[2] != "2 x      "+long+"  -       a rule" {
		t.Errorf("%q", got)
	}
}

func TestWrap_ANumberKeepsItsSign(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("word ", 15)
	must.Equal(t, Wrap(words+"5.0 % more", "  "), "  "+words[:74]+"\n  5.0 % more")
}

func TestCSV_NoFormulas(t *testing.T) {
	t.Parallel()
	for v, want := range map[any]string{nil: "", int64(-3): "-3", 0.5: "0.5", "=1+1": "'=1+1", "a\nb": `a\nb`} {
		must.Equal(t, CSV(v), want, "%v", v)
	}
}
