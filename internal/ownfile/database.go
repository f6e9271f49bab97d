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
	open    int    // descriptors
	claimed bool   // by one of them
	closing []*os.File
}

// Using notes that SQLite opens the database at path in this process. The caller calls ended
// after SQLite has closed it. It returns the path under which this process has opened the
// database already, since SQLite finds the files beside it by that name; else path. Without a
// file there it does nothing.
func Using(path string) (at string, ended func()) {
	databases.Lock()
	defer databases.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return path, func() {}
	}
	d := databaseLocked(info, path)
	if is, err := os.Stat(d.path); d.conns > 0 && err == nil && os.SameFile(is, info) {
		path = d.path
	}
	d.conns++
	return path, func() {
		databases.Lock()
		defer databases.Unlock()
		d.conns--
		d.tidyLocked()
	}
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
	if info, err := os.Stat(path); err == nil && databaseLocked(info, path).claimed {
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
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	d := databaseLocked(info, path)
	defer d.tidyLocked()
	if d.conns > 0 {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, n)
	n, err = io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
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
		return unlock(f.File)
	}
	return nil
}
