package proxy

import (
	"errors"
	"log/slog"
	"runtime/debug"

	"heed/internal/audit"
)

// steadyRecorder is a Recorder whose panics are errors like any other: what it
// could not record is refused, and nothing else is harmed.
type steadyRecorder struct {
	Recorder
	log *slog.Logger
}

var errRecorder = errors.New("the recorder failed inside heed")

// Decided implements Recorder.
func (s steadyRecorder) Decided(e *audit.Entry) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.tell(e, v)
			err = errRecorder
		}
	}()
	return s.Recorder.Decided(e)
}

// Ended implements Recorder. By then the client has its answer.
func (s steadyRecorder) Ended(e *audit.Entry) {
	defer func() {
		if v := recover(); v != nil {
			s.tell(e, v)
		}
	}()
	s.Recorder.Ended(e)
}

func (s steadyRecorder) tell(e *audit.Entry, fault any) {
	s.log.Error("the recorder failed inside heed", "id", e.ID, "panic", fault, "stack", string(debug.Stack()))
}
