package store_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit/store"
)

// The files were written by earlier versions of heed. The hashes of their heads
// were noted then. A heed that is to write to one moves it aside as it is.
func TestVerify_RecordsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]struct {
		hash              string
		entries, refusals int
	}{
		"layout1.db": {"f49970ae460b65b38b317c474111afc63036ddd180bcaebd4e9a7f1dc61ebbf0", 12, 4},
		"engine2.db": {"721e5f1aa99adece0052eba1808fe9a2d1375995329bae7543b16b3d3ba224d9", 15, 1},
	} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		still := func(when string, entries int) {
			t.Helper()
			proof, err := store.Verify(context.Background(), path, &store.Seal{Hash: made.hash}, nil)
			if err != nil || !proof.Whole || proof.Rows["entry"] != int64(entries) {
				t.Fatalf("%s, %s: %+v, %v", name, when, proof, err)
			}
		}
		still("as it was made", made.entries)
		db := view(t, path)
		if n := count(t, db, "SELECT count(*) FROM decisions WHERE verdict = 'refuse' AND rule = 'Disallow: /private'"); n != made.refusals {
			t.Errorf("%s has %d refusals", name, n)
		}
		db.Close()
		w := open(t, path, store.Options{Heed: "test"})
		if err := w.Decided(asked(policy("site.test"), "/")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(""); err != nil {
			t.Fatal(err)
		}
		proof, err := store.Verify(context.Background(), path, nil, nil)
		if err != nil || !proof.Whole || proof.Rows["entry"] != 1 || !strings.Contains(proof.Follows, made.hash) {
			t.Errorf("%s: the record that continues it: %+v, %v", name, proof, err)
		}
		path = strings.TrimSuffix(path, ".db") + ".layout1.db"
		still("moved aside", made.entries)
		if all, err := store.Records(path, filepath.Join(filepath.Dir(path), name)); err != nil || len(all) != 2 {
			t.Errorf("%s: both together: %v, %v", name, all, err)
		}
	}
}

// layout2.db is of the present layout: its verdicts, purposes and answers of sites are read,
// and a heed that writes to it continues it. It is use.db of the script audit_purpose.
func TestVerify_TheRecordOfThisLayout(t *testing.T) {
	t.Parallel()
	const hash = "ad0793760bfa93b3b1011963815bf7f147a5fcbcaf9f563222490b17e93fa2be"
	data, err := os.ReadFile(filepath.Join("testdata", "layout2.db"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "layout2.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	verified := func(entries int64) {
		t.Helper()
		proof, err := store.Verify(t.Context(), path, &store.Seal{Hash: hash}, nil)
		if err != nil || !proof.Whole || proof.Rows["entry"] != entries || proof.Follows != "" {
			t.Fatalf("%+v, %v", proof, err)
		}
	}
	verified(20)
	for query, want := range map[string]int{
		"purpose = 'training'": 5, "purpose IS NULL": 5,
		"reason = 'signal' AND signals IS NOT NULL":            3,
		"reason = 'licence' AND signals LIKE '%0.015%'":        2,
		"late_reason = 'signal' AND status = 403":              1,
		"site_status = 200 AND page_signals LIKE '%noindex%'":  1,
		"site_answer = 'legal' AND status = 451 AND from_site": 4,
		"rule = 'Disallow: /private' AND reason = 'rule'":      4,
	} {
		if n := count(t, view(t, path), "SELECT count(*) FROM decisions WHERE "+query); n != want {
			t.Errorf("%s: %d decisions, want %d", query, n, want)
		}
	}
	w := open(t, path, store.Options{Heed: "test"})
	if err := w.Decided(asked(policy("site.test"), "/")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(""); err != nil {
		t.Fatal(err)
	}
	verified(21)
}
