package memory

import "sync"

// CopyBuffer is pooled memory through which octets are copied. It is small until Grow.
// Make it with NewCopyBuffer. It is not safe for concurrent use.
type CopyBuffer struct {
	Octets []byte
	small  *smallBuffer
	large  *largeBuffer // nil: it has not grown
}

type (
	smallBuffer = [32 << 10]byte
	largeBuffer = [128 << 10]byte
)

// maxLargeBuffers is how many buffers are large at a time: a client that stops reading
// keeps its buffer.
const maxLargeBuffers = 64

var (
	smallBuffers = sync.Pool{New: func() any { return new(smallBuffer) }}
	largeBuffers = sync.Pool{New: func() any { return new(largeBuffer) }}
	largeInUse   = make(chan struct{}, maxLargeBuffers)
)

// NewCopyBuffer returns a small buffer, which Free gives back.
func NewCopyBuffer() CopyBuffer {
	small := smallBuffers.Get().(*smallBuffer)
	return CopyBuffer{Octets: small[:], small: small}
}

// Grow makes b large, unless too many are: fewer system calls save a third of the CPU
// time of copying 10 MB. What b contains is lost.
func (b *CopyBuffer) Grow() {
	if b.large != nil {
		return
	}
	select {
	case largeInUse <- struct{}{}:
		b.large = largeBuffers.Get().(*largeBuffer)
		b.Octets = b.large[:]
	default:
	}
}

// Free gives back the memory of b, which may not be used afterwards.
func (b *CopyBuffer) Free() {
	smallBuffers.Put(b.small)
	if b.large != nil {
		largeBuffers.Put(b.large)
		<-largeInUse
	}
}
