package sealed

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket that waits for its connection is tried for tryTime at a time, and then again
// after a pause from shortPause to longPause.
const (
	tryTime    = 10 * time.Millisecond
	shortPause = time.Millisecond
	longPause  = 100 * time.Millisecond
)

// complete makes call, a connect(2) of a socket, until it has succeeded or failed, for as
// long as the thread in n waits and the time of the socket (SO_SNDTIMEO) permits.
func (g *guard) complete(notify uintptr, n *notification, socket int, call func() error) error {
	flags, err := unix.FcntlInt(uintptr(socket), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if flags&unix.O_NONBLOCK != 0 {
		return call()
	}
	before, err := unix.GetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return err
	}
	own := time.Duration(before.Nano()) // 0: none
	defer func() { _ = setSendTimeout(socket, own) }()
	began := time.Now()
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		try := tryTime
		if own > 0 {
			try = min(try, max(own-time.Since(began), time.Microsecond))
		}
		if err := setSendTimeout(socket, try); err != nil {
			return err
		}
		err := call()
		switch {
		case err != unix.EAGAIN && err != unix.EINPROGRESS && err != unix.EALREADY:
			return err
		case own > 0 && time.Since(began) >= own:
			return err
		}
		<-g.calls
		time.Sleep(pause)
		g.calls <- struct{}{}
		if g.closed.Load() || !isWaiting(notify, n) {
			return unix.EINTR
		}
	}
}

func setSendTimeout(socket int, d time.Duration) error {
	tv := unix.NsecToTimeval(int64(d))
	return unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
}

// rawConnect is connect(2) with an address as it is in memory.
func rawConnect(fd int, address []byte) error {
	var p unsafe.Pointer
	if len(address) > 0 {
		p = unsafe.Pointer(&address[0])
	}
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(p), uintptr(len(address))); errno != 0 {
		return errno
	}
	return nil
}

// connectAs is rawConnect by another user, whose permissions apply.
func connectAs(uid, gid uint32, fd int, address []byte) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		none := ^uintptr(0)
		for _, call := range [][4]uintptr{
			{unix.SYS_SETGROUPS, 0, 0, 0},
			{unix.SYS_SETRESGID, none, uintptr(gid), none},
			{unix.SYS_SETRESUID, none, uintptr(uid), none},
		} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				result <- errno
				return
			}
		}
		result <- rawConnect(fd, address)
	}()
	return <-result
}
