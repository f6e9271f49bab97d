package store

import (
	"context"
	"testing"

	"heed/internal/tools/testkit/must"
)

// prove verifies the record and fails the test when that cannot be done.
func prove(t testing.TB, path string, seals ...*Seal) *Proof {
	t.Helper()
	proof, err := Verify(context.Background(), path, seals, nil)
	must.OK(t, err)
	if proof.Whole {
		must.Equal(t, miscountOf(t, path), "", "a whole record has rows that its commits do not have")
	}
	return proof
}

func TestHeed_ARecordAsItWasWrittenIsWhole(t *testing.T) {
	t.Parallel()
	n := entriesOf(2000)
	m := newMade(t).entries(n)
	proof := prove(t, m.path)
	if !proof.Whole || proof.Damage != nil {
		t.Fatalf("damage %v", proof.Damage)
	}
	if proof.Head.Hash != m.before.hash.String() || proof.Head.Commit != m.before.n || proof.Rows["entry"] != int64(n) {
		t.Errorf("head %+v, rows %v; the last commit is %d, %x", proof.Head, proof.Rows, m.before.n, m.before.hash)
	}
}

func TestHeed_AnEmptyRecordIsWhole(t *testing.T) {
	t.Parallel()
	if proof := prove(t, newMade(t).path); !proof.Whole || proof.Head.Commit != 0 {
		t.Errorf("damage %v, head %+v", proof.Damage, proof.Head)
	}
}
