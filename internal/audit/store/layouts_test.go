package store_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"heed/internal/audit/store"
)

// TestHeed_RecordsOfEveryLayoutStayReadable: files that heeds made once, and their
// heads as they were noted down then. None is ever made anew.
func TestHeed_RecordsOfEveryLayoutStayReadable(t *testing.T) {
	for name, hash := range map[string]string{
		"layout1.db": "f49970ae460b65b38b317c474111afc63036ddd180bcaebd4e9a7f1dc61ebbf0",
	} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		still := func(when string, entries int64) {
			t.Helper()
			proof, err := store.Verify(context.Background(), path, &store.Seal{Hash: hash}, nil)
			if err != nil || !proof.Whole || proof.Rows["entry"] != entries {
				t.Fatalf("%s, %s: %+v, %v", name, when, proof, err)
			}
		}
		still("as it was made", 12)
		if n := count(t, view(t, path), "SELECT count(*) FROM decisions WHERE verdict = 'refuse' AND rule = 'Disallow: /private'"); n != 4 {
			t.Errorf("%s has %d refusals", name, n)
		}
		w := open(t, path, store.Options{Heed: "test"})
		if err := w.Decided(asked(policy("site.test"), "/")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(""); err != nil {
			t.Fatal(err)
		}
		still("written on", 13)
	}
}
