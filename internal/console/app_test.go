package console

import (
	"bytes"
	"io"
	"testing"
)

func TestHeed_ErrorsWithAStatusSayNothingMore(t *testing.T) {
	var errs bytes.Buffer
	a := &App{Stderr: &errs, Stdout: io.Discard}
	if got := a.Fail(Exit(7)); got != 7 || errs.Len() != 0 {
		t.Errorf("status %d, stderr %q", got, errs.String())
	}
}
