package audit

import (
	"errors"
	"slices"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// unwritable is a recorder that cannot write.
type unwritable struct{}

func (unwritable) Decided(*Entry) error { return errors.New("disk full") }

func (unwritable) Ended(*Entry) { panic("never decided") }

// remembering is a recorder that remembers the verdicts it was told at the end.
type remembering struct{ ended []rules.Decision }

func (n *remembering) Decided(*Entry) error { return nil }

func (n *remembering) Ended(e *Entry) { n.ended = append(n.ended, e.Decision) }

func TestRecording_WhenOneRecorderFailsTheOthersSayThatTheRequestWasRefused(t *testing.T) {
	first, last, observer := &remembering{}, &remembering{}, &remembering{}
	e := &Entry{Judged: ByPath, Decision: rules.Decision{Verdict: rules.Allow, Reason: rules.ReasonNoRule}}
	all := Recording{[]Recorder{first, unwritable{}, last}, []Observer{observer}}
	err := all.Decided(e)
	must.Need(t, err != nil, "the failure is not told")
	want := []rules.Decision{{Reason: rules.ReasonRecord}}
	must.True(t, slices.Equal(first.ended, want) && slices.Equal(last.ended, want) && e.Decision == want[0],
		"recorded %+v and %+v, the entry says %+v", first.ended, last.ended, e.Decision)
	must.Same(t, observer.ended, want, "observed")
	must.Equal(t, e.Outcome.Status, 503, "the status that its client gets")
}

func TestRecording_AnObserverSeesADecisionOnceAtItsEnd(t *testing.T) {
	recorder, observer := &remembering{}, &remembering{}
	all, e := Recording{[]Recorder{recorder}, []Observer{observer}}, &Entry{Judged: ByPath}
	err := all.Decided(e)
	must.Need(t, err == nil && len(observer.ended) == 0, "%v, observed before the end: %+v", err, observer.ended)
	if all.Ended(e); len(observer.ended) != 1 || len(recorder.ended) != 1 {
		t.Errorf("observed %+v, recorded %+v", observer.ended, recorder.ended)
	}
}
