package replay

import (
	"cmp"
	"encoding/hex"
	"slices"
	"time"
)

// part is a Result in the making.
type part struct {
	Result
	why     map[Why]int64 // without counts
	changes *Changes      // nil: nothing is asked of what would have been
}

func newPart(asked bool) *part {
	p := &part{Result: *newResult(), why: map[Why]int64{}}
	if asked {
		p.changes = newChanges()
	}
	return p
}

// count counts an entry that was judged.
func (p *part) count(a *again) {
	if a.late {
		p.Late++
	} else {
		p.Entries++
		p.Engines[a.ground.engine]++
	}
	switch a.class {
	case Same:
		p.Same++
		return
	case Different:
		p.Different++
	case OtherEngine:
		p.OtherEngine++
	case Redacted:
		p.Redacted++
	case Incomplete:
		p.Incomplete++
	case NotByRules:
		p.NotByRules++
	}
	p.why[Why{Class: a.class, Reason: a.ground.verdict.Reason, Why: a.said}]++
	if (a.class == Different || a.class == OtherEngine) && len(p.Examples) < maxExamples {
		p.Examples = append(p.Examples, a.example())
	}
}

// example tells of an entry by itself.
func (a *again) example() Example {
	return Example{
		Seq: a.seq, ID: uuidText(a.id), Time: time.UnixMicro(a.time).UTC(), URL: a.url(), Agent: a.asker.userAgent,
		Recorded: a.ground.verdict, Now: a.verdict, Engine: a.ground.engine, Late: a.late, What: a.said,
	}
}

// url returns what was asked for; empty when no host was learnt.
func (a *again) url() string {
	if a.origin.Host == "" {
		return ""
	}
	return a.origin.String() + a.target
}

// uuidText writes a UUID as text (RFC 9562 §4).
func uuidText(id []byte) string {
	s := hex.EncodeToString(id)
	if len(s) != 32 {
		return s
	}
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// add adds what one part came to.
func (r *Result) add(p *part) {
	r.Entries += p.Entries
	r.Same += p.Same
	r.Late += p.Late
	r.Different += p.Different
	r.OtherEngine += p.OtherEngine
	r.Redacted += p.Redacted
	r.Incomplete += p.Incomplete
	r.NotByRules += p.NotByRules
	for engine, n := range p.Engines {
		r.Engines[engine] += n
	}
	for w, n := range p.why {
		r.addWhy(w, n)
	}
	r.Examples = append(r.Examples, p.Examples...)
	slices.SortStableFunc(r.Examples, func(a, b Example) int {
		return cmp.Or(cmp.Compare(boolOf(a.Engine != r.Engine), boolOf(b.Engine != r.Engine)), cmp.Compare(a.Seq, b.Seq))
	})
	r.Examples = r.Examples[:min(len(r.Examples), maxExamples)]
	if r.If != nil {
		r.If.add(p.changes)
	}
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// addWhy counts n more of w.
func (r *Result) addWhy(w Why, n int64) {
	i := slices.IndexFunc(r.Why, func(known Why) bool { return known.Class == w.Class && known.Reason == w.Reason && known.Why == w.Why })
	switch {
	case i >= 0:
		r.Why[i].Count += n
	case len(r.Why) >= maxWhys && w.Reason != others: // a damaged record may give as many as it has entries
		r.addWhy(Why{Class: w.Class, Reason: others}, n)
	default:
		w.Count = n
		r.Why = append(r.Why, w)
	}
}

// A Result tells at most maxWhys reasons by themselves; what is beyond them stands
// under others, for each class.
const (
	maxWhys = 200
	others  = "others"
)

// compareWhy orders by class, the most frequent first.
func compareWhy(a, b Why) int {
	return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Why, b.Why))
}
