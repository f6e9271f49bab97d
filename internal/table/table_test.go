package table

import "testing"

func TestLayout(t *testing.T) {
	t.Parallel()
	l := NewLayout(Column{Head: "site"}, Column{Head: "pages", Kind: Count}, Column{Head: "time", Kind: Seconds}).AtLeast(8, 0, 0)
	rows := [][]any{{"a.test", int64(1234567), 50000.0}, {"b\x1b.test", int64(0), nil}}
	for _, row := range rows {
		l.Fit(row)
	}
	if got, want := l.Head(), "  site            pages    time"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for i, want := range []string{"  a.test      1,234,567  13.9 h", "  b\\x1b.test          0       -"} {
		if got := l.Row(rows[i]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCSV_NoFormulas(t *testing.T) {
	t.Parallel()
	for v, want := range map[any]string{nil: "", int64(-3): "-3", 0.5: "0.5", "=1+1": "'=1+1", "a\nb": `a\nb`} {
		if got := CSV(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
