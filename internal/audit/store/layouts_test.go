package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit/store"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// The files were written by earlier versions of heed. The hashes of their heads
// were noted then. A heed that is to write to one moves it aside as it is.
func TestVerify_RecordsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]struct {
		hash              string
		layout            int
		entries, refusals int
	}{
		"layout2.db": {"ad0793760bfa93b3b1011963815bf7f147a5fcbcaf9f563222490b17e93fa2be", 2, 20, 4},
		"engine2.db": {"d33ed0ab61491e176e768229e46e76b69548ab2befd09ec110d8cc3fd2f66170", 2, 15, 1},
		"layout3.db": {"56dab2e73a06b743651c7889fc7b188ab10ad0f84f53280b23bf5632e171a04b", 3, 20, 4},
		"layout4.db": {"188c60b7938a2484772e198da2d05d77590970b4d5f2f7c8e460bf5d4956b671", 4, 20, 4},
	} {
		path := testkit.Copy(t, "testdata/"+name)
		still := func(when string, entries int) {
			t.Helper()
			proof, err := store.Verify(context.Background(), path, []*store.Seal{{Hash: made.hash}}, nil)
			must.Need(t, err == nil && proof.Whole && proof.Rows["entry"] == int64(entries),
				"%s, %s: %+v, %v", name, when, proof, err)
		}
		still("as it was made", made.entries)
		db := view(t, path)
		n := count(t, db, "SELECT count(*) FROM decisions WHERE verdict = 'refuse' AND rule = 'Disallow: /private'")
		must.True(t, n == made.refusals, "%s has %d refusals", name, n)
		db.Close()
		if made.layout == int(store.Schema) {
			continue
		}
		w := open(t, path, store.Options{Heed: "test"})
		must.OK(t, w.Decided(asked(policy("site.test"), "/")))
		must.OK(t, w.Close(""))
		proof, err := store.Verify(context.Background(), path, nil, nil)
		must.True(t, err == nil && proof.Whole && proof.Rows["entry"] == 1 && strings.Contains(proof.Follows, made.hash),
			"%s: the record that continues it: %+v, %v", name, proof, err)
		aside := fmt.Sprintf("%s.layout%d.db", strings.TrimSuffix(path, ".db"), made.layout)
		earlier, err := store.Continued(path)
		must.True(t, err == nil && len(earlier) == 1 && earlier[0] == aside, "%s: it continues %q, %v", name, earlier, err)
		path = aside
		still("moved aside", made.entries)
		all, err := store.Records(path, filepath.Join(filepath.Dir(path), name))
		must.True(t, err == nil && len(all) == 2, "%s: both together: %v, %v", name, all, err)
	}
}

// layout2.db to layout4.db are use.db of the script audit_purpose, as the heeds of then wrote
// it: their verdicts, purposes and answers of sites are read.
func TestVerify_TheDecisionsOfEachLayout(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"layout2.db", "layout3.db", "layout4.db"} {
		db := view(t, testkit.Copy(t, "testdata/"+name))
		for query, want := range map[string]int{
			"purpose = 'training'": 5, "purpose IS NULL": 5,
			"reason = 'signal' AND signals IS NOT NULL":            3,
			"reason = 'licence' AND signals LIKE '%0.015%'":        2,
			"late_reason = 'signal' AND status = 403":              1,
			"site_status = 200 AND page_signals LIKE '%noindex%'":  1,
			"site_answer = 'legal' AND status = 451 AND from_site": 4,
			"rule = 'Disallow: /private' AND reason = 'rule'":      4,
		} {
			must.Equal(t, count(t, db, "SELECT count(*) FROM decisions WHERE "+query), want, "%s, %s: decisions", name, query)
		}
	}
}
