package ownfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// SQLite holds POSIX locks on a database and on the index of its write-ahead log. The system
// releases all such locks of a process when it closes any descriptor of the file
// (fcntl(2); https://sqlite.org/howtocorrupt.html, 2.2), and another program, which finds no
// lock, then removes the log. So these files are opened outside SQLite in this file alone,
// and none is closed while SQLite has the database open in this process.

// databases are those that SQLite or a Descriptor has open in this process.
var databases struct {
	sync.Mutex
	all []*database
}

// database is identified by its device and inode, since it may have several paths.
type database struct {
	info    fs.FileInfo
	path    string // without links
	conns   int    // of SQLite
	readers []*Use // of these
	open    int    // descriptors
	claimed bool   // by one of them
	bare    bool   // there was no write-ahead log when SQLite opened it first
	closing []*os.File
	ending  chan struct{} // closed when readers may begin again; nil: they may
}

// Use is a connection of SQLite to a database.
type Use struct {
	of   []*database
	stop func()
}

// Using notes that SQLite opens the database at path in this process. It returns the path
// under which this process has opened the database already, since SQLite finds the files
// beside it by that name; else path. stop ends what a reader does, so that its owner closes
// it: see EndReaders, during which a reader waits here. Nil: it is no reader.
func Using(path string, stop func()) (at string, u *Use) {
	u = &Use{stop: stop}
	for {
		databases.Lock()
		d := databaseAtLocked(path)
		if d == nil || stop == nil || d.ending == nil {
			if d != nil {
				if is, err := os.Stat(d.path); d.conns > 0 && err == nil && os.SameFile(is, d.info) {
					path = d.path
				}
				u.addLocked(d)
			}
			databases.Unlock()
			return path, u
		}
		ended := d.ending
		databases.Unlock()
		<-ended
	}
}

// Opened notes that SQLite has opened the database at path: it may be new, or in the place of
// another one.
func (u *Use) Opened(path string) {
	databases.Lock()
	defer databases.Unlock()
	if d := databaseAtLocked(path); d != nil && !slices.Contains(u.of, d) {
		u.addLocked(d)
	}
}

func (u *Use) addLocked(d *database) {
	u.of = append(u.of, d)
	if d.conns == 0 {
		d.bare = !d.hasLog()
	}
	if d.conns++; u.stop != nil {
		d.readers = append(d.readers, u)
	}
}

func (d *database) hasLog() bool {
	_, err := os.Lstat(d.path + "-wal")
	return err == nil
}

// Ended notes that SQLite has closed the connection, or could not open it. left reports that no
// other one of this process is open, and that the files are beside the database which readers
// make there.
func (u *Use) Ended() (left bool) {
	databases.Lock()
	defer databases.Unlock()
	for _, d := range u.of {
		d.conns--
		left = left || d.conns == 0 && d.bare && d.hasLog()
		d.readers = slices.DeleteFunc(d.readers, func(o *Use) bool { return o == u })
		d.tidyLocked()
	}
	u.of = nil
	return left
}

// databaseAtLocked returns the database at path; nil when there is no file.
func databaseAtLocked(path string) *database {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return databaseLocked(info, path)
}

// databaseLocked returns the database that info describes.
func databaseLocked(info fs.FileInfo, path string) *database {
	for _, d := range databases.all {
		if os.SameFile(d.info, info) {
			return d
		}
	}
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at
	}
	d := &database{info: info, path: path}
	databases.all = append(databases.all, d)
	return d
}

// tidyLocked closes the descriptors that had to stay open, and forgets a database that is
// not open.
func (d *database) tidyLocked() {
	if d.conns > 0 {
		return
	}
	for _, f := range d.closing {
		f.Close() // closed by its user before
	}
	d.closing = nil
	if d.open == 0 {
		databases.all = slices.DeleteFunc(databases.all, func(o *database) bool { return o == d })
	}
}

// isDatabase reports whether a file is a database that is open in this process, or the index
// of its write-ahead log.
func isDatabase(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	databases.Lock()
	defer databases.Unlock()
	return slices.ContainsFunc(databases.all, func(d *database) bool {
		index, err := os.Stat(d.path + "-shm")
		return os.SameFile(d.info, info) || err == nil && os.SameFile(index, info)
	})
}

// EndReaders ends the readers of the claimed database in this process, and waits until they
// have been closed. Others begin only after resume was called. The error is that one has not
// been closed within a time.
func (f *Descriptor) EndReaders(within time.Duration) (resume func(), err error) {
	d := f.of
	ended := make(chan struct{})
	databases.Lock()
	d.ending = ended
	for _, u := range d.readers {
		u.stop()
	}
	databases.Unlock()
	resume = func() {
		databases.Lock()
		defer databases.Unlock()
		d.ending = nil
		close(ended)
	}
	for end := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		databases.Lock()
		n := len(d.readers)
		databases.Unlock()
		if n == 0 {
			return resume, nil
		}
		if time.Now().After(end) {
			resume()
			return nil, fmt.Errorf("%d of its readers in this process have not ended", n)
		}
	}
}

// Hold makes the claimed database look read until Release or Close: no program that locks it
// takes itself for the last one, and SQLite in this process does not either, so that neither
// writes the write-ahead log to the database and removes it when it closes. It works on Linux,
// on file systems with such locks.
func (f *Descriptor) Hold() error { return lockShared(f.File, true) }

// Release ends Hold.
func (f *Descriptor) Release() error { return lockShared(f.File, false) }

// Descriptor is a database, or a file beside it, that is open outside SQLite.
type Descriptor struct {
	*os.File
	of      *database
	claimed bool
}

// ErrClaimed is the error of a database that another process, or this one, has claimed.
var ErrClaimed = errors.New("another process has locked it")

// Claim opens the database at path for reading and writing, and locks it exclusively where
// the system can. It creates the file for its owner when there is none.
func Claim(path string) (*Descriptor, error) {
	databases.Lock()
	if d := databaseAtLocked(path); d != nil && d.claimed {
		databases.Unlock()
		return nil, ErrClaimed // without a descriptor that could not be closed
	}
	f, err := openLocked(path, path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		databases.Unlock()
		return nil, err
	}
	if f.claimed = !errors.Is(Lock(f.File, 0), syscall.EWOULDBLOCK); f.claimed {
		f.of.claimed = true
	}
	databases.Unlock()
	if !f.claimed {
		return nil, errors.Join(ErrClaimed, f.Close())
	}
	return f, nil
}

// Head returns the first octets of the file at path, up to n; none when it is a database that
// SQLite has open in this process.
func Head(path string, n int) ([]byte, error) {
	databases.Lock()
	defer databases.Unlock()
	if d := databaseAtLocked(path); d != nil {
		defer d.tidyLocked()
		if d.conns > 0 {
			return nil, nil
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, n)
	if n, err = io.ReadFull(f, head); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}

// OpenBeside opens the file with this suffix beside the database at path for reading.
func OpenBeside(path, suffix string) (*Descriptor, error) {
	databases.Lock()
	defer databases.Unlock()
	return openLocked(path, path+suffix, os.O_RDONLY)
}

func openLocked(path, name string, flag int) (*Descriptor, error) {
	file, err := os.OpenFile(name, flag|nonblock, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && name != path {
		info, err = os.Stat(path)
	}
	if err != nil {
		file.Close() // there is no database that could be open
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := databaseLocked(info, path)
	d.open++
	return &Descriptor{File: file, of: d}, nil
}

// Close closes the file; while SQLite has the database open in this process, it only releases
// the lock, and the last connection closes the file.
func (f *Descriptor) Close() error {
	databases.Lock()
	defer databases.Unlock()
	d := f.of
	d.open--
	if f.claimed {
		d.claimed = false
	}
	if d.conns == 0 {
		d.tidyLocked()
		return f.File.Close()
	}
	d.closing = append(d.closing, f.File)
	if f.claimed {
		_ = f.Release() // it may not be held
		return unlock(f.File)
	}
	return nil
}
