package command

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
)

// fullDisk takes room bytes and then no more.
type fullDisk struct {
	bytes.Buffer
	room int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(d.room, len(p))
	d.room -= n
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// A disk that fills up in the middle of a line tears none apart: what did not
// fit comes first when there is room again.
func TestHeed_ALogOutlivesAFullDisk(t *testing.T) {
	disk := &fullDisk{room: 10}
	log := &steady{out: disk}
	for _, line := range []string{"first\n", "second\n", "third\n"} {
		_, err := log.Write([]byte(line))
		if line != "first\n" && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%q: %v", line, err)
		}
	}
	if err := log.retry(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("while the disk is full: %v", err)
	}
	disk.room = 1000
	if err := log.retry(); err != nil {
		t.Error(err)
	}
	if _, err := log.Write([]byte("fourth\n")); err != nil {
		t.Error(err)
	}
	if got := disk.String(); got != "first\nsecond\nthird\nfourth\n" {
		t.Errorf("the log holds %q", got)
	}
}
