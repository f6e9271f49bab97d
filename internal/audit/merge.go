package audit

// Merge calls each with the values of several sources, the first one by before
// among those that come next. A source returns the zero value after its last one. Merge
// returns the first error.
func Merge[T comparable](sources []func() (T, error), before func(a, b T) bool, each func(T) error) (err error) {
	var none T
	heads := make([]T, len(sources))
	for i, next := range sources {
		if heads[i], err = next(); err != nil {
			return err
		}
	}
	for {
		first := -1
		for i, v := range heads {
			if v != none && (first < 0 || before(v, heads[first])) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		if err := each(heads[first]); err != nil {
			return err
		}
		if heads[first], err = sources[first](); err != nil {
			return err
		}
	}
}
