package redirect

import "errors"

// ErrDirect is wrapped by the error of Original for a connection that was made to the
// listener itself: the kernel has redirected nothing.
var ErrDirect = errors.New("the client connected to the listener itself; only redirected connections are served here")
