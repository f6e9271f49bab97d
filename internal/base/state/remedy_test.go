package state

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestRemedyNamesWhatIsWrong(t *testing.T) {
	for want, err := range map[string]error{
		"Make room on the disk of the state directory, or set HEED_STATE to another one":             fmt.Errorf("write: %w", syscall.ENOSPC),
		"Mount the file system of the state directory for writing, or set HEED_STATE to another one": syscall.EROFS,
		"Make the state directory writable, or set HEED_STATE to another one":                        syscall.EACCES,
	} {
		must.Equal(t, Remedy(err), want, err)
	}
	must.True(t, Full(t.TempDir()+"/audit.db", syscall.ENOSPC) && !Full(t.TempDir()+"/audit.db", errors.New("disk I/O error")),
		"a full disk is not the one that is full")
}
