package report

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// answer is a row of snapshot: what a site said when it was asked for its rules.
type answer struct {
	site    origin
	askedAs string
	time    int64
	status  int64
	sha256  string // empty: no file
	record  int    // where its bytes are
	body    int64
}

// snapshots notes what r has of the sites' answers, without their bytes.
func (b *builder) snapshots(r Record, n *names) error {
	b.records++
	return each(r, `SELECT s.site, coalesce(s.asked_as, ''), s.time, s.status, coalesce(hex(b.sha256), ''), coalesce(s.body, 0)
		FROM snapshot s LEFT JOIN body b ON b.id = s.body`, func(scan scanner) error {
		a := answer{record: b.records - 1}
		var id int64
		if err := scan(&id, &a.askedAs, &a.time, &a.status, &a.sha256, &a.body); err != nil {
			return err
		}
		if s := n.sites[id]; !s.skip {
			a.site, a.sha256 = b.origins.keys[s.number], strings.ToLower(a.sha256)
			b.answers = append(b.answers, a)
		}
		return nil
	})
}

// Bounds of what a report shows of changes.
const (
	mostChanges = 1000     // with their diff, the latest; the others are listed without
	mostDiff    = 16 << 10 // octets of one diff
)

// changes lists where a site's answer was another one than before, the latest
// first.
func (b *builder) changes(records []Record) ([]Change, error) {
	slices.SortStableFunc(b.answers, func(x, y answer) int {
		return cmp.Or(strings.Compare(x.site.String(), y.site.String()), strings.Compare(x.askedAs, y.askedAs), cmp.Compare(x.time, y.time))
	})
	from, to := b.query.window()
	var found [][2]*answer
	for i := 1; i < len(b.answers); i++ {
		was, is := &b.answers[i-1], &b.answers[i]
		if was.site == is.site && was.askedAs == is.askedAs && (was.sha256 != is.sha256 || was.sha256 == "" && was.status != is.status) && is.time >= from && is.time < to {
			found = append(found, [2]*answer{was, is})
		}
	}
	slices.SortStableFunc(found, func(x, y [2]*answer) int { return cmp.Compare(y[1].time, x[1].time) })
	list := make([]Change, 0, len(found))
	for i, f := range found {
		c := Change{Site: f[0].site.String(), AskedAs: f[0].askedAs, Before: f[0].told(), After: f[1].told(), Cut: i >= mostChanges}
		if !c.Cut {
			if err := c.compare(f, records); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	return list, nil
}

func (a *answer) told() Answer { return Answer{micros(a.time), a.status, a.sha256} }

// compare writes the diff of the two files, when there are two.
func (c *Change) compare(f [2]*answer, records []Record) error {
	if f[0].body == 0 || f[1].body == 0 {
		return nil
	}
	var texts [2][]byte
	for i, a := range f {
		var err error
		if texts[i], err = bodyOf(records[a.record], a.body); err != nil {
			return err
		}
	}
	text := diff.Diff("before", texts[0], "after", texts[1])
	_, text, _ = bytes.Cut(text, []byte("+++ after\n"))
	if c.Cut = len(text) > mostDiff; c.Cut {
		text = text[:bytes.LastIndexByte(text[:mostDiff], '\n')+1]
	}
	c.Diff = string(text)
	return nil
}

// mostBody is how long a robots.txt may be that is looked at: no record holds
// longer ones, but a file may say that it does.
const mostBody = 8 << 20

// bodyOf returns the bytes of a robots.txt.
func bodyOf(r Record, id int64) ([]byte, error) {
	var packed []byte
	if err := each(r, "SELECT zlib FROM body WHERE id = ?", func(scan scanner) error { return scan(&packed) }, id); err != nil {
		return nil, err
	}
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err == nil {
		packed, err = io.ReadAll(io.LimitReader(z, mostBody))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: robots.txt %d cannot be unpacked: %w\nSee `heed audit verify`", r.Name, id, err)
	}
	return packed, nil
}

// fileOf reads what a record is.
func fileOf(r Record) (f File, x extent, err error) {
	f.Name = r.Name
	if x, err = extentOf(r); err != nil {
		return f, x, err
	}
	f.Decisions = x.n
	if x.n > 0 {
		f.First, f.Last, f.Pruned = micros(x.from), micros(x.to), x.first-1
	}
	for query, read := range map[string]func(scanner) error{
		"SELECT coalesce((SELECT value FROM about WHERE key = 'store'), ''), coalesce((SELECT value FROM about WHERE key = 'created'), '')": func(scan scanner) error { return scan(&f.Store, &f.Created) },
		"SELECT DISTINCT heed FROM run ORDER BY 1":                        func(scan scanner) error { return appendRow(scan, &f.Heeds) },
		"SELECT DISTINCT engine FROM ground ORDER BY 1":                   func(scan scanner) error { return appendRow(scan, &f.Engines) },
		"SELECT DISTINCT hash FROM configuration ORDER BY 1":              func(scan scanner) error { return appendRow(scan, &f.Configs) },
		"SELECT DISTINCT note FROM run WHERE note IS NOT NULL ORDER BY 1": func(scan scanner) error { return appendRow(scan, &f.Notes) },
		"SELECT n, hash FROM commits WHERE n = (SELECT max(n) FROM commits)": func(scan scanner) error {
			var hash []byte
			err := scan(&f.Commit, &hash)
			f.Head = hex.EncodeToString(hash)
			return err
		},
	} {
		if err := each(r, query, read); err != nil {
			return f, x, err
		}
	}
	return f, x, nil
}

func appendRow[T any](scan scanner, list *[]T) error {
	var value T
	err := scan(&value)
	*list = append(*list, value)
	return err
}
