package audit

import "heed/rules"

// Recorder keeps decisions, and may refuse them.
type Recorder interface {
	// Decided is called before any byte of the request leaves and before any
	// byte of a refusal returns. An error refuses the request.
	Decided(*Entry) error
	// Ended is called once for each Entry that Decided accepted, when the
	// exchange is over, however it ended. The Entry does not change afterwards; it holds
	// the whole exchange in memory as long as it is kept.
	Ended(*Entry)
}

// Observer sees each decision once, when its exchange has ended, and never refuses it.
type Observer interface{ Ended(*Entry) }

// Recording has each decision recorded before it takes effect, and observed when its exchange
// has ended.
type Recording struct {
	Recorders []Recorder
	Observers []Observer
}

// Decided implements Recorder. When a recorder fails, the decision becomes a refusal and ends
// with it: those before it record its end, those after it record it as refused.
func (all Recording) Decided(e *Entry) error {
	for i, r := range all.Recorders {
		if err := r.Decided(e); err != nil {
			e.Decision, e.Detail = rules.Decision{Reason: rules.ReasonRecord}, err.Error()
			for _, later := range all.Recorders[i+1:] {
				if later.Decided(e) == nil {
					later.Ended(e)
				}
			}
			Recording{all.Recorders[:i], all.Observers}.Ended(e)
			return err
		}
	}
	return nil
}

// Ended implements Recorder.
func (all Recording) Ended(e *Entry) {
	for _, r := range all.Recorders {
		r.Ended(e)
	}
	for _, o := range all.Observers {
		o.Ended(e)
	}
}
