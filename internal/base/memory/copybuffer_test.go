package memory

import "testing"

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
	if n := len(last.Octets); n != len(smallBuffer{}) {
		t.Errorf("one buffer more than %d has %d octets", maxLargeBuffers, n)
	}
	if n := len(buffers[0].Octets); n != len(largeBuffer{}) {
		t.Errorf("a buffer that has grown has %d octets", n)
	}
	buffers[0].Free()
	if last.Grow(); len(last.Octets) != len(largeBuffer{}) {
		t.Error("a buffer cannot grow when another one was freed")
	}
	for i := range buffers[1:] {
		buffers[1+i].Free()
	}
	if n := len(largeInUse); n != 0 {
		t.Errorf("%d large buffers are in use after all were freed", n)
	}
}
