package memory

// stackRoom is what a request of a new connection needs of a stack, with a TLS handshake
// before it, in bytes.
const stackRoom = 5 << 10

// ReserveStack makes room on the stack of the calling goroutine. A stack that grows by
// and by is copied each time, with all the frames that are on it by then: at the
// beginning of a goroutine there are few.
//
//go:noinline
func ReserveStack() { touchFirst(new([stackRoom]byte)) }

// touchFirst keeps room on the stack: it does not escape, and is not left out.
//
//go:noinline
func touchFirst(room *[stackRoom]byte) { room[0] = 1 }
