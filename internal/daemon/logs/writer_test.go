package logs

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// disk takes room octets and then no more.
type disk struct {
	mu   sync.Mutex
	held bytes.Buffer
	room int
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(d.room, len(p))
	d.room -= n
	d.held.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// A disk that fills up in the middle of a line tears none apart: what did not
// fit comes first when there is room again.
func TestHeed_ALogOutlivesAFullDisk(t *testing.T) {
	d := &disk{room: 10}
	log := NewWriter(d)
	for _, line := range []string{"first\n", "second\n", "third\n"} {
		_, _ = log.Write([]byte(line)) // whether it fits shows later
	}
	err := log.Drain(DrainTimeout / 10)
	must.True(t, errors.Is(err, syscall.ENOSPC), "while the disk is full: %v", err)
	err = log.Err()
	must.True(t, errors.Is(err, syscall.ENOSPC), "nothing is to be decided while the disk is full: %v", err)
	d.mu.Lock()
	d.room = 1000
	d.mu.Unlock()
	_, err = log.Write([]byte("fourth\n"))
	must.True(t, err == nil || errors.Is(err, syscall.ENOSPC), "%v", err)
	must.OK(t, log.Drain(testkit.Patience))
	must.Equal(t, d.held.String(), "first\nsecond\nthird\nfourth\n", "the log holds")
	must.OK(t, log.Err(), "after there was room again")
}

// pieces keeps what each Write was given.
type pieces struct {
	mu  sync.Mutex
	all []string
}

func (p *pieces) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, string(b))
	return len(b), nil
}

func (p *pieces) written() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// Under load a system call for each line would cost more than the line: lines of ten
// milliseconds share one. None is lost, and their order stays.
func TestHeed_LinesOfABusyLogShareWrites(t *testing.T) {
	out := &pieces{}
	log := NewWriter(out)
	var want strings.Builder
	begun := time.Now()
	for i := 0; time.Since(begun) < 10*writeEvery; i++ {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		must.Get(log.Write([]byte(line)))(t)
		runtime.Gosched()
	}
	must.OK(t, log.Drain(testkit.Patience))
	all := out.written()
	must.Equal(t, strings.Join(all, ""), want.String(), "lines are missing, or in another order")
	most := 2 + int(time.Since(begun)/writeEvery)
	must.True(t, len(all) <= most, "%d writes in %v; want at most %d", len(all), time.Since(begun), most)
}

// A user who waits for a line sees it immediately, and an error does not wait for others.
func TestHeed_AnUrgentLineIsNotDelayed(t *testing.T) {
	out := &pieces{}
	log := newWriter(out, time.Hour)
	for i, line := range []string{"the first one\n", "error\n", "another error\n"} {
		must.Get(log.Write([]byte(line)))(t)
		if i > 0 {
			log.Hurry()
		}
		testkit.Until(t, "the line in the log", func() bool { return strings.HasSuffix(strings.Join(out.written(), ""), line) })
	}
}

// Text that is made only when it is written comes before the text that follows it, and is
// waited for at the end.
func TestHeed_GatheredTextIsWritten(t *testing.T) {
	out := &pieces{}
	log := NewWriter(out)
	gathered := make(chan string, 2)
	log.Gather(func() {
		select {
		case text := <-gathered:
			_, err := log.Write([]byte(text))
			must.True(t, err == nil, "%v", err)
		default:
		}
	})
	gathered <- "first\n"
	log.Wake()
	testkit.Until(t, "the gathered line in the log", func() bool { return strings.Join(out.written(), "") == "first\n" })
	gathered <- "second\n"
	must.OK(t, log.Drain(testkit.Patience))
	must.Equal(t, strings.Join(out.written(), ""), "first\nsecond\n")
}
