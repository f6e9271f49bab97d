// Package wal is the log in front of audit.db, which is called its tail: two append-only
// files to which blocks of rows are written before they take effect.
package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"heed/internal/base/ownfile"
)

// Bounds of the tail.
const (
	switchSize = 8 << 20  // Log.SwitchAt
	maxTail    = 64 << 20 // octets of a file; writes beyond it are refused until audit.db is completed
)

// A file of the tail begins with tailMagic and the id of its record. Blocks follow:
// the length of the rows, a CRC-32C over everything after it, the number of the
// block, and the rows.
const (
	tailMagic  = "heed tail 1\n"
	IDSize     = 36                             // octets of the id of a record, a UUID as text
	Start      = int64(len(tailMagic) + IDSize) // where the blocks of a file begin
	BlockStart = 4 + 4 + 8                      // octets of a block before its rows
)

// castagnoli is the table of CRC-32C, which processors compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The errors of a log that cannot be written.
var (
	ErrFull = errors.New("audit.db has not been completed for too long, and the tail before it is full")
	ErrHeld = errors.New("another heed writes to it")
	// ErrDamaged is the error of Read for a tail of another record or with damaged blocks.
	ErrDamaged = errors.New("keep a copy, and move it away")
	// ErrMoved is the error of SameFile for a file that has another name, or none, now.
	ErrMoved = errors.New("is no longer where it was: bring it back, or restart heed")
)

// Log is the log to which decisions are written first: two files, so that
// one can be emptied while the other is written. It is not safe for concurrent use.
type Log struct {
	Files    [2]*os.File // as Paths names them
	Size     [2]int64    // octets up to the end of the last block
	Active   int         // the file that is written
	SwitchAt int64       // octets of a file after which the other one is used, when it is empty
	Number   uint64      // of the last block written

	// Sync is called with a file after each block. Nil: the system writes to the disk later.
	Sync func(*os.File) error

	last  [2]uint64 // the number of the last block; 0: none
	store string
	dirty bool // there may be octets after Size, which must not be read
	head  []byte
}

// Suffixes are those of the names of the two files beside a record.
var Suffixes = [2]string{".tail", ".tail2"}

// Paths returns the two files beside the record at path.
func Paths(path string) [2]string { return [2]string{path + Suffixes[0], path + Suffixes[1]} }

// Record returns the id of the record that the tail has blocks of; empty when it has none.
func (t *Log) Record() string {
	for _, f := range t.Files {
		head := make([]byte, Start+1)
		if _, err := f.ReadAt(head, 0); err == nil && string(head[:len(tailMagic)]) == tailMagic {
			return string(head[len(tailMagic):Start])
		}
	}
	return ""
}

// Open opens and locks the tail beside path. It returns ErrHeld when another
// process has it until timeout.
func Open(path string, timeout time.Duration) (*Log, error) {
	t := &Log{SwitchAt: switchSize}
	for i, name := range Paths(path) {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Close()
			return nil, err
		}
		t.Files[i] = f
	}
	if ownfile.Lock(t.Files[0], timeout) != nil {
		t.Close()
		return nil, ErrHeld
	}
	return t, nil
}

// Present returns an error when the files are no longer those beside path, or were cut:
// what is written to them would be lost.
func (t *Log) Present(path string) error {
	for i, name := range Paths(path) {
		if err := SameFile(name, t.Files[i], t.Size[i]); err != nil {
			return err
		}
	}
	return nil
}

// SameFile returns an error when f is no longer the file with this name, or has
// fewer than size bytes.
func SameFile(name string, f *os.File, size int64) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	at, err := os.Stat(name)
	switch {
	case err != nil || !os.SameFile(at, is):
		return fmt.Errorf("its file %s %w", name, ErrMoved)
	case is.Size() < size:
		return errors.New("its file " + name + " was cut by another program: restart heed")
	}
	return nil
}

// Close closes the files, which ends the lock.
func (t *Log) Close() {
	for _, f := range t.Files {
		if f != nil {
			f.Close()
		}
	}
}

// Block is the rows of one write.
type Block struct {
	Number uint64
	Rows   []byte
}

// Read returns the blocks of both files in their order, and the number of octets
// after the last complete block, a write that was not acknowledged. It returns an
// error for the tail of another record, and for blocks after a damaged one.
func (t *Log) Read(store string) (all []Block, torn int64, err error) {
	t.store = store
	for i, f := range t.Files {
		data, err := io.ReadAll(io.NewSectionReader(f, 0, maxTail*2))
		if err != nil {
			return nil, 0, err
		}
		blocks, size, err := readBlocks(data, store, false)
		if err != nil {
			return nil, 0, fmt.Errorf("%s %w", f.Name(), err)
		}
		torn += int64(len(data)) - size
		t.Size[i] = size
		if n := len(blocks); n > 0 {
			t.last[i] = blocks[n-1].Number
		}
		if t.last[i] > t.Number {
			t.Number, t.Active = t.last[i], i
		}
		if len(all) > 0 && len(blocks) > 0 && blocks[0].Number < all[0].Number {
			all, blocks = blocks, all
		}
		all = append(all, blocks...)
	}
	t.dirty = torn > 0
	return all, torn, nil
}

// readBlocks returns the blocks of a file of the tail, and the octets up to the end
// of the last. An empty store matches any record. Blocks after a damaged one are an error;
// with damaged set they are returned too.
func readBlocks(data []byte, store string, damaged bool) (blocks []Block, size int64, err error) {
	if len(data) < int(Start) {
		return nil, 0, nil // cut off while the header was written
	}
	if string(data[:len(tailMagic)]) != tailMagic {
		return nil, 0, errors.New("is no tail of a record: move it away")
	}
	if !bytes.HasPrefix(data[len(tailMagic):], []byte(store)) {
		return nil, 0, fmt.Errorf("belongs to another record: %w, or bring back the record it was written beside", ErrDamaged)
	}
	last := uint64(0)
	for rest := data[Start:]; ; {
		if b, length := Cut(rest); length > 0 {
			blocks, last, rest = append(blocks, b), b.Number, rest[length:]
			continue
		}
		at := len(data) - len(rest)
		if rest = later(rest, last); rest == nil {
			return blocks, int64(at), nil
		}
		if !damaged {
			return nil, 0, fmt.Errorf("is damaged at octet %d, with decisions after it: %w", at, ErrDamaged)
		}
	}
}

// Cut returns the block at the start of data and its length; 0 when it is not
// complete and valid.
func Cut(data []byte) (b Block, length int) {
	if len(data) < BlockStart {
		return Block{}, 0
	}
	length = BlockStart + int(binary.LittleEndian.Uint32(data))
	if length == BlockStart || length > len(data) || crc32.Checksum(data[8:length], castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return Block{}, 0
	}
	return Block{binary.LittleEndian.Uint64(data[8:]), data[BlockStart:length]}, length
}

// Write appends a block. After an error no part of it is ever read.
func (t *Log) Write(rows []byte) error {
	if t.Size[t.Active] > t.SwitchAt && t.Size[1-t.Active] <= Start {
		t.Active = 1 - t.Active
	}
	i := t.Active
	if t.Size[i]+int64(len(rows)) > maxTail {
		return ErrFull
	}
	if err := t.clean(); err != nil {
		return err
	}
	if t.Size[i] < Start {
		if err := t.put(i, []byte(tailMagic+t.store)); err != nil {
			return err
		}
	}
	b := append(t.head[:0], 0, 0, 0, 0, 0, 0, 0, 0)
	b = append(binary.LittleEndian.AppendUint64(b, t.Number+1), rows...)
	binary.LittleEndian.PutUint32(b, uint32(len(rows)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	t.head = b[:0]
	if cap(t.head) > 1<<20 {
		t.head = nil
	}
	if err := t.put(i, b); err != nil {
		return err
	}
	t.Number++
	t.last[i] = t.Number
	return nil
}

// put writes b at the end of file i.
func (t *Log) put(i int, b []byte) error {
	_, err := t.Files[i].WriteAt(b, t.Size[i])
	if err == nil && t.Sync != nil {
		err = t.Sync(t.Files[i])
	}
	if err != nil {
		t.dirty = true
		_ = t.clean() // tried again before the next write
		return err
	}
	t.Size[i] += int64(len(b))
	return nil
}

// Probe returns an error when the tail cannot be written.
func (t *Log) Probe() error {
	if t.Size[t.Active] > maxTail {
		return ErrFull
	}
	t.dirty = true
	if _, err := t.Files[t.Active].WriteAt(make([]byte, 4096), t.Size[t.Active]); err != nil {
		return err
	}
	return t.clean()
}

// clean removes the octets after the last block of both files.
func (t *Log) clean() error {
	if !t.dirty {
		return nil
	}
	for i, f := range t.Files {
		if err := f.Truncate(t.Size[i]); err != nil {
			return err
		}
	}
	t.dirty = false
	return nil
}

// Spent reports whether the inactive file has blocks, all of them up to number.
func (t *Log) Spent(number uint64) bool {
	i := 1 - t.Active
	return t.Size[i] > Start && t.last[i] <= number
}

// Drop empties the inactive file; with all, both, so that another record can use them.
func (t *Log) Drop(all bool) error {
	for i, f := range t.Files {
		if i == t.Active && !all {
			continue
		}
		if err := f.Truncate(0); err != nil {
			return err
		}
		t.Size[i], t.last[i] = 0, 0
	}
	return nil
}

// Octets returns the size of both files.
func (t *Log) Octets() int64 { return t.Size[0] + t.Size[1] }

// HasBlocks reports whether the tail of the record at path has blocks.
func HasBlocks(path string) bool {
	for _, name := range Paths(path) {
		if info, err := os.Stat(name); err == nil && info.Size() > Start {
			return true
		}
	}
	return false
}

// Blocks returns the blocks in the tail of the record at path, which may be open for writing.
// Of a file that is damaged, with blocks after that, none counts unless damaged is set; then all
// that can be read do.
func Blocks(path, store string, damaged bool) (all []Block) {
	for _, name := range Paths(path) {
		if file, err := ownfile.ReadRegular(name, maxTail*2); err == nil {
			blocks, _, _ := readBlocks(file.Data, store, damaged) // none of a file with an error
			all = append(all, blocks...)
		}
	}
	return all
}

// later returns data from the next block on that was written after the one with the number
// last; nil when there is none. data does not begin with one. Nothing follows a block whose
// write was not complete.
func later(data []byte, last uint64) []byte {
	for at := 1; at+BlockStart < len(data); at++ {
		// Only as many could have been written between.
		if n := binary.LittleEndian.Uint64(data[at+8:]); n <= last || last > 0 && n-last > uint64(at) {
			continue
		}
		if _, length := Cut(data[at:]); length > 0 {
			return data[at:]
		}
	}
	return nil
}
