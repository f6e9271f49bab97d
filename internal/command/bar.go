package command

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// bar shows on a terminal how far long work has come, once it has taken a
// second. progress is told how much of all is done, and may be called as often
// as one likes; end takes the bar away. Where nobody looks, nothing is shown.
func (a *App) bar(what string) (progress func(done, all int64), end func()) {
	if !isTerminal(a.Stderr) {
		return func(int64, int64) {}, func() {}
	}
	var so, of atomic.Int64
	quit, gone := make(chan struct{}), make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(gone)
		for wait := progressAfter; ; wait = progressEvery {
			select {
			case <-quit:
				fmt.Fprint(a.Stderr, clearLine)
				return
			case <-time.After(wait):
				fmt.Fprint(a.Stderr, clearLine+"heed: "+what+" "+barWords(so.Load(), of.Load(), time.Since(begun)))
			}
		}
	}()
	return func(done, all int64) { so.Store(done); of.Store(all) }, func() { close(quit); <-gone }
}

const barWidth = 30

// barWords draws how far it is.
func barWords(done, all int64, taken time.Duration) string {
	if all <= 0 || done <= 0 {
		return fmt.Sprintf("for %s", taken.Round(time.Second))
	}
	part := min(1, float64(done)/float64(all))
	filled := int(part * barWidth)
	left := time.Duration(float64(taken) * (1 - part) / part)
	return fmt.Sprintf("[%s%s] %3.0f %%, %d of %d, %s left",
		strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), 100*part, done, all, left.Round(time.Second))
}
