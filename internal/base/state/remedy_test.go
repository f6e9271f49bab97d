package state

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

func TestRemedyNamesWhatIsWrong(t *testing.T) {
	for want, err := range map[string]error{
		"Make room on the disk of the state directory, or set HEED_STATE to another one":             fmt.Errorf("write: %w", syscall.ENOSPC),
		"Mount the file system of the state directory for writing, or set HEED_STATE to another one": syscall.EROFS,
		"Make the state directory writable, or set HEED_STATE to another one":                        syscall.EACCES,
	} {
		if got := Remedy(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if !Full(t.TempDir()+"/audit.db", syscall.ENOSPC) || Full(t.TempDir()+"/audit.db", errors.New("disk I/O error")) {
		t.Error("a full disk is not the one that is full")
	}
}
