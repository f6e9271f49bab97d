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

// HMAC fills its key up with zeros: a salt with some more has the same hashes.
func TestHeed_AnyOtherSizeOfASaltIsFound(t *testing.T) {
	t.Parallel()
	m := newMade(t).entries(100)
	var salt []byte
	must.OK(t, m.db.QueryRow("SELECT salt FROM commits WHERE n = 2").Scan(&salt))
	for _, changed := range [][]byte{append(salt, 0), append(salt, make([]byte, saltSize)...), salt[:saltSize-1]} {
		m.exec("UPDATE commits SET salt = ? WHERE n = 2", changed)
		m.found("a salt of %d octets has %d", len(salt), len(changed))
	}
}
