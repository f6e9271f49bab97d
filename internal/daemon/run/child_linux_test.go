package run

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heed/internal/control"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A log that is not read for longer than heed's timeout is complete all the same once it
// is read; a signal ends the wait.
func TestTheLogOfARunWaitsForItsReader(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "log")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	reader := must.Get(os.OpenFile(pipe, os.O_RDWR, 0))(t)
	defer reader.Close()
	log := must.Get(openRunLog(pipe, nil))(t)
	line := strings.Repeat("x", 1023) + "\n"
	for range 1000 { // more than a pipe holds
		must.Get(log.Write([]byte(line)))(t)
	}
	stopped := make(chan os.Signal, 1)
	stopped <- os.Interrupt
	err := log.wait(stopped, nil)
	must.True(t, err != nil, "a signal during the wait, and the log is said to be whole")
	ended, told := make(chan error, 1), make(chan bool, 1)
	go func() { ended <- log.wait(nil, func() { told <- true }) }()
	select {
	case <-told:
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(2*control.EndTimeout + testkit.Patience):
		t.Fatal("the wait is not reported")
	}
	in := bufio.NewReader(reader)
	for i := range 1000 {
		got, err := in.ReadString('\n')
		must.Need(t, err == nil && got == line, "line %d: %v", i, err)
	}
	must.OK(t, <-ended, "after all was read")
}
