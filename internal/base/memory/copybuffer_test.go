package memory

import (
	"testing"

	"heed/internal/tools/testkit/must"
)

// Clients that stop reading keep the memory of their answers: only some of them keep
// much, and those that follow are served with less.
func TestCopyBuffers_FewAreLarge(t *testing.T) {
	buffers := make([]CopyBuffer, maxLargeBuffers+1)
	for i := range buffers {
		buffers[i] = NewCopyBuffer()
		buffers[i].Grow()
		buffers[i].Grow() // once is enough
	}
	last := &buffers[maxLargeBuffers]
	must.Equal(t, len(last.Octets), len(smallBuffer{}), "octets of one buffer more than %d", maxLargeBuffers)
	must.Equal(t, len(buffers[0].Octets), len(largeBuffer{}), "octets of a buffer that has grown")
	buffers[0].Free()
	if last.Grow(); len(last.Octets) != len(largeBuffer{}) {
		t.Error("a buffer cannot grow when another one was freed")
	}
	for i := range buffers[1:] {
		buffers[1+i].Free()
	}
	must.Equal(t, len(largeInUse), 0, "large buffers in use after all were freed")
}
