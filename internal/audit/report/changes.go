package report

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"heed/internal/audit/store"
)

// answer is what a site sent when it was asked for its rules.
type answer struct {
	*store.Answer
	site   string
	record int // that has its octets
}

// snapshots notes the sites' answers that record i has, without their bytes.
func (b *builder) snapshots(i int, n *names) error {
	return b.readers[i].Answers(func(a *store.Answer) {
		if s := n.sites[a.Site]; s.selected {
			b.answers = append(b.answers, answer{a, b.siteName(s.origin), i})
		}
	})
}

// Bounds of what a report shows of changes.
const (
	mostChanges = 1000     // with their diff, the latest; the others are listed without
	mostDiff    = 16 << 10 // octets of one diff
)

// changes lists where a site's answer was another one than before, the latest
// first.
func (b *builder) changes() ([]Change, error) {
	slices.SortStableFunc(b.answers, func(x, y answer) int {
		return cmp.Or(strings.Compare(x.site, y.site), strings.Compare(x.AskedAs, y.AskedAs), cmp.Compare(x.Time, y.Time))
	})
	from, to := b.query.window()
	var found [][2]*answer
	for i := 1; i < len(b.answers); i++ {
		was, is := &b.answers[i-1], &b.answers[i]
		if was.site == is.site && was.AskedAs == is.AskedAs && (was.SHA256 != is.SHA256 || was.SHA256 == "" && was.Status != is.Status) && is.Time >= from && is.Time < to {
			found = append(found, [2]*answer{was, is})
		}
	}
	slices.SortStableFunc(found, func(x, y [2]*answer) int { return cmp.Compare(y[1].Time, x[1].Time) })
	list := make([]Change, 0, len(found))
	for i, f := range found {
		c := Change{Site: f[0].site, AskedAs: f[0].AskedAs, Before: f[0].answer(), After: f[1].answer(), Cut: i >= mostChanges}
		if !c.Cut {
			if err := b.compare(&c, f); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	return list, nil
}

func (a *answer) answer() Answer { return Answer{moment(a.Time), a.Status, a.SHA256} }

// compare writes the diff of the two files, when there are two.
func (b *builder) compare(c *Change, f [2]*answer) error {
	if f[0].Body == 0 || f[1].Body == 0 {
		return nil
	}
	var texts [2][]byte
	for i, a := range f {
		var err error
		if texts[i], err = b.readers[a.record].Body(a.Body); err != nil {
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
