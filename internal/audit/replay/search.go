package replay

import (
	"context"
	"time"

	"heed/internal/audit/store"
)

// Search selects decisions for Latest, the last ones first.
type Search struct {
	store.Search
	Before int64 // only decisions with a smaller entry.seq; 0: all
	Limit  int   // of the decisions found; at least 1
	Most   int64 // of the decisions compared; rounded up to a multiple of searchStep, at least one
}

// Found is the result of a Search.
type Found struct {
	Decisions []*Decision
	// Next is Search.Before of the search that continues this one; 0: there are no further
	// decisions.
	Next int64
	// Looked is the number of decisions that were compared, back to the one of Since.
	Looked int64
	Since  time.Time
	Cut    bool // Most decisions were compared before Limit were found
}

// searchStep is how many decisions are read at a time.
const searchStep = 10_000

// Latest searches a record from its end.
func Latest(ctx context.Context, record *store.Record, s Search) (*Found, error) {
	r, err := record.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	first, last, err := searched(r, &s)
	if err != nil {
		return nil, err
	}
	f, l := &Found{}, &library{}
	for top := last; top >= first; {
		from := max(first, top-searchStep+1)
		if err := f.step(r, l, &s, from, top); err != nil {
			return nil, err
		}
		if top = from - 1; f.Next == 0 && top >= first {
			if f.Cut = last-top >= s.Most; f.Cut {
				f.Next = from
			}
		}
		if f.Next > 0 {
			break
		}
	}
	return f, f.setSince(r, first, last)
}

// searched returns the range of decisions that s may select.
func searched(r *store.Reader, s *Search) (first, last int64, err error) {
	if first, last, err = r.Range(); err != nil {
		return 0, 0, err
	}
	if !s.From.IsZero() {
		if first, err = r.SeqAt(s.From); err != nil {
			return 0, 0, err
		}
	}
	if !s.To.IsZero() {
		// A later decision may be recorded earlier; SeqAt accounts for that.
		to, err := r.SeqAt(s.To.Add(searchedAround))
		if err != nil {
			return 0, 0, err
		}
		last = min(last, to)
	}
	if s.Before > 0 {
		last = min(last, s.Before-1)
	}
	return first, last, nil
}

// step searches the decisions from seq first to last. It sets Next when the limit is
// reached.
func (f *Found) step(r *store.Reader, l *library, s *Search, first, last int64) error {
	part := s.Search
	part.First, part.Last = first, last
	more := s.Limit - len(f.Decisions)
	return r.Latest(&part, more+1, func(e *store.Entry) error {
		if more--; more < 0 {
			f.Next = e.Seq + 1
			return nil // it is the last one
		}
		d, err := l.decision(r, e)
		f.Decisions = append(f.Decisions, d)
		return err
	})
}

// setSince sets Looked and Since of a search in the range from first to last.
func (f *Found) setSince(r *store.Reader, first, last int64) error {
	if f.Next > 0 {
		first = f.Next
	}
	f.Looked = max(0, last-first+1)
	if f.Looked == 0 {
		return nil
	}
	return r.Latest(&store.Search{Filter: store.Filter{First: first, Last: last}, Oldest: true}, 1, func(e *store.Entry) error {
		f.Since = time.UnixMicro(e.Time).UTC()
		return nil
	})
}
