package store

import (
	"bytes"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_ACommitIsSpeltAsItsRowInTheTable(t *testing.T) {
	t.Parallel()
	c := commit{n: 3, time: 5, last: lasts{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, outcomes: 7, exempt: 8}
	row := []any{int64(3), int64(5), int64(1), int64(2), int64(3), int64(4), int64(5), int64(6), int64(7), int64(8), int64(9), int64(7), int64(8), nil}
	for _, pruned := range [][]byte{nil, {}, {1, 2}} {
		if c.pruned = pruned; pruned != nil {
			row[13] = pruned
		}
		want, err := appendRow(nil, commits, row)
		got := c.appendBefore(nil)
		must.True(t, err == nil && bytes.Equal(got, want), "spelt %x, want %x (%v)", got, want, err)
	}
}
