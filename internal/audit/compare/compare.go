// Package compare compares the requests of two records and their verdicts, such as
// those of one crawl on two days or under two settings.
package compare

import (
	"context"
	"math"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/rules"
)

// Result is the comparison of two records. They are equal when Different, OnlyA and
// OnlyB are empty.
type Result struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// Both counts the requests of both records. Of these AllowedA were allowed in A and not in
	// B, and AllowedB in B and not in A; one that was only observed was not allowed.
	Both     int64 `json:"both"`
	AllowedA int64 `json:"allowed_in_a_only"`
	AllowedB int64 `json:"allowed_in_b_only"`
	// Equal counts those of both with the same verdict, reason, group and rule, of which the
	// line may differ; with Options the same verdict is enough.
	Equal     int64    `json:"equal"`
	Different []Change `json:"different"` // requests of both with another verdict, in the order of B
	OnlyA     []Single `json:"only_a"`    // in the order of the record
	OnlyB     []Single `json:"only_b"`
}

// Options is by what requests are the same.
type Options struct {
	// IgnoreAgent compares the requests of other agents, which other groups of a robots.txt
	// may decide on.
	IgnoreAgent bool
	// ByURL compares by the URL alone, whatever agents and methods. A URL counts once.
	ByURL bool
}

// Mixed is the verdict on a URL that was allowed at times and not at others.
const Mixed = "mixed"

// Side is one of the records.
type Side struct {
	File     string  `json:"file"`
	Requests int64   `json:"requests"`
	Engines  []int64 `json:"engines"` // the numbers of the engines that judged
}

// Request identifies a request in both records. Of several with the same Request, the
// first of one record is compared with the first of the other, and so on.
type Request struct {
	Agent  string `json:"agent,omitempty"` // store.AgentName; empty: it is ignored
	Method string `json:"method,omitempty"`
	// URL has its target as safetext.Octets writes it, and one word for the values that
	// the record keeps as keyed hashes. Empty: no host was known.
	URL string `json:"url"`
}

// Change is a request with its verdicts in both records.
type Change struct {
	Request
	A store.Verdict `json:"a"`
	B store.Verdict `json:"b"`
}

// Single is a request that only one record has.
type Single struct {
	Request
	store.Verdict
}

// EqualRecords reports whether there is no difference.
func (r *Result) EqualRecords() bool { return len(r.Different)+len(r.OnlyA)+len(r.OnlyB) == 0 }

// request is a request of the first record.
type request struct {
	Request
	verdict *store.Verdict
	matched bool
}

// Records compares two records. A request counts once, with its last verdict.
func Records(ctx context.Context, a, b *store.Record, o Options) (*Result, error) {
	r := &Result{Different: []Change{}, OnlyA: []Single{}, OnlyB: []Single{}}
	var all []*request
	open := map[Request][]*request{} // that have no counterpart yet
	err := o.read(ctx, a, &r.A, func(q Request, v *store.Verdict) {
		x := &request{Request: q, verdict: v}
		all, open[q] = append(all, x), append(open[q], x)
	})
	if err != nil {
		return nil, err
	}
	err = o.read(ctx, b, &r.B, func(q Request, v *store.Verdict) {
		queue := open[q]
		if len(queue) == 0 {
			r.OnlyB = append(r.OnlyB, Single{q, *v})
			return
		}
		x := queue[0]
		open[q], x.matched = queue[1:], true
		r.pair(x, v, o != Options{})
	})
	for _, x := range all {
		if !x.matched {
			r.OnlyA = append(r.OnlyA, Single{x.Request, *x.verdict})
		}
	}
	return r, err
}

// pair counts a request of A and its verdict in B.
func (r *Result) pair(x *request, v *store.Verdict, byVerdict bool) {
	r.Both++
	switch allow := rules.Allow.String(); {
	case x.verdict.Verdict == v.Verdict, x.verdict.Verdict == Mixed, v.Verdict == Mixed:
	case x.verdict.Verdict == allow:
		r.AllowedA++
	case v.Verdict == allow:
		r.AllowedB++
	}
	if same(x.verdict, v) || byVerdict && x.verdict.Verdict == v.Verdict {
		r.Equal++
		return
	}
	r.Different = append(r.Different, Change{x.Request, *x.verdict, *v})
}

func same(a, b *store.Verdict) bool {
	return a.Verdict == b.Verdict && a.Reason == b.Reason && a.Group == b.Group && a.Rule == b.Rule
}

// read calls row with the requests of a record by what o compares; by URL with each once.
func (o Options) read(ctx context.Context, record *store.Record, side *Side, row func(Request, *store.Verdict)) error {
	var order []Request
	verdicts := map[Request]*store.Verdict{}
	err := read(ctx, record, side, func(q Request, v *store.Verdict) {
		if o.IgnoreAgent {
			q.Agent = ""
		}
		if !o.ByURL {
			row(q, v)
			return
		}
		q.Agent, q.Method = "", ""
		switch before := verdicts[q]; {
		case before == nil:
			order, verdicts[q] = append(order, q), v
		case before.Verdict != v.Verdict:
			verdicts[q] = &store.Verdict{Verdict: Mixed}
		}
	})
	for _, q := range order {
		row(q, verdicts[q])
	}
	return err
}

// read calls row with the requests of a record, in its order, and sets side.
func read(ctx context.Context, record *store.Record, side *Side, row func(Request, *store.Verdict)) error {
	r, err := record.Read(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	file, err := r.File()
	if err != nil {
		return err
	}
	side.File, side.Engines = record.Path, file.Engines
	agents, sites, verdicts := map[int64]string{}, map[int64]string{}, map[int64]*store.Verdict{}
	all := &store.Filter{}
	if err := r.Clients(all, func(c *store.Client) { agents[c.ID] = store.AgentName(c.Configured(), c.Tokens) }); err != nil {
		return err
	}
	if err := r.Sites(all, func(id int64, o rules.Origin, _ bool) { sites[id] = o.String() }); err != nil {
		return err
	}
	if err := r.Bases(0, math.MaxInt64, func(b *store.Basis) { verdicts[b.ID] = &b.Verdict }); err != nil {
		return err
	}
	return r.Requests(all, true, func(q *store.Request) error {
		side.Requests++
		v := memo.At(verdicts, q.Basis) // of a damaged record it is empty: heed audit verify reports that
		x := Request{Agent: agents[q.Client], Method: q.Method}
		if q.Redacted {
			q.Target = audit.MaskRedacted(q.Target)
		}
		if site := sites[q.Site]; site != "" {
			x.URL = site + safetext.Octets(q.Target)
		}
		row(x, v)
		return nil
	})
}
