package store

import (
	"context"
	"testing"

	"heed/internal/tools/testkit/must"
)

// prove verifies the record and fails the test when that cannot be done.
func prove(t testing.TB, path string, seals ...*Seal) *Proof {
	t.Helper()
	proof := must.Get(Verify(context.Background(), path, seals, nil))(t)
	if proof.Whole {
		must.Equal(t, miscountOf(t, path), "", "a whole record has rows that its commits do not have")
	}
	return proof
}

func TestHeed_AnEmptyRecordIsWhole(t *testing.T) {
	t.Parallel()
	proof := prove(t, newMade(t).path)
	must.True(t, proof.Whole && proof.Head.Commit == 0, "damage %v, head %+v", proof.Damage, proof.Head)
}
