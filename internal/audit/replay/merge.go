package replay

import (
	"context"
	"database/sql"
	"errors"
	"iter"
)

// ListAll calls each with the decisions of several records, ordered by time,
// and the place of the record that each is from. It ends with each's first error.
func ListAll(ctx context.Context, records []*sql.DB, f Filter, each func(record int, d *Decision) error) error {
	type head struct {
		*Decision
		next func() (*Decision, error, bool)
	}
	heads := make([]head, len(records))
	for i, db := range records {
		next, stop := iter.Pull2(decisions(ctx, db, f))
		defer stop()
		heads[i].next = next
	}
	take := func(i int) (err error) {
		var ok bool
		if heads[i].Decision, err, ok = heads[i].next(); !ok {
			return nil
		}
		return err
	}
	for i := range heads {
		if err := take(i); err != nil {
			return err
		}
	}
	for {
		first := -1
		for i := range heads {
			if heads[i].Decision != nil && (first < 0 || heads[i].Time.Before(heads[first].Time)) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		if err := each(first, heads[first].Decision); err != nil {
			return err
		}
		if err := take(first); err != nil {
			return err
		}
	}
}

var errEnough = errors.New("enough")

// decisions is List as a sequence, which an error ends.
func decisions(ctx context.Context, db *sql.DB, f Filter) iter.Seq2[*Decision, error] {
	return func(yield func(*Decision, error) bool) {
		err := List(ctx, db, f, func(d *Decision) error {
			if !yield(d, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && err != errEnough {
			yield(nil, err)
		}
	}
}
