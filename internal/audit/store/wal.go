package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"time"
)

// Bounds of the tail.
const (
	switchSize = 8 << 20  // wal.switchAt
	maxTail    = 64 << 20 // octets of a file; writes beyond it are refused until audit.db is completed
)

// A file of the tail begins with tailMagic and the id of its record. Blocks follow:
// the length of the rows, a CRC-32C over everything after it, the number of the
// block, and the rows.
const (
	tailMagic  = "heed tail 1\n"
	storeSize  = 36 // a UUID as text
	tailStart  = int64(len(tailMagic) + storeSize)
	blockStart = 4 + 4 + 8
)

var (
	errTailFull = errors.New("audit.db has not been completed for too long, and the tail before it is full")
	errHeld     = errors.New("another heed writes to it")
)

// wal is the tail, the log to which decisions are written first: two files, so that
// one can be emptied while the other is written. It is not safe for concurrent use.
type wal struct {
	files    [2]*os.File
	size     [2]int64  // octets up to the end of the last block
	last     [2]uint64 // the number of the last block; 0: none
	active   int       // the file that is written
	switchAt int64     // octets of a file after which the other one is used, when it is empty
	number   uint64    // of the last block written
	store    string
	sync     func(*os.File) error // after each block; nil: none, the system writes to the disk later
	dirty    bool                 // there may be octets after size, which must not be read
	head     []byte
}

// walPaths returns the two files beside the record at path.
func walPaths(path string) [2]string { return [2]string{path + ".tail", path + ".tail2"} }

// openWAL opens and locks the tail beside path. It returns errHeld when another
// process has it until timeout.
func openWAL(path string, timeout time.Duration) (*wal, error) {
	t := &wal{switchAt: switchSize}
	for i, name := range walPaths(path) {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.close()
			return nil, err
		}
		t.files[i] = f
		if i > 0 {
			continue
		}
		if !lockWithin(f, timeout) {
			t.close()
			return nil, errHeld
		}
	}
	return t, nil
}

// lockWithin tries to lock f until timeout, and reports whether it did.
func lockWithin(f *os.File, timeout time.Duration) bool {
	for end := time.Now().Add(timeout); lock(f) != nil; time.Sleep(20 * time.Millisecond) {
		if !time.Now().Before(end) {
			return false
		}
	}
	return true
}

func (t *wal) close() {
	for _, f := range t.files {
		if f != nil {
			f.Close()
		}
	}
}

// block is the rows of one write.
type block struct {
	number uint64
	rows   []byte
}

// read returns the blocks of both files in their order, and the number of octets
// after the last complete block, a write that was not acknowledged. It returns an
// error for the tail of another record, and for blocks after a damaged one.
func (t *wal) read(store string) (all []block, torn int64, err error) {
	t.store = store
	for i, f := range t.files {
		data, err := io.ReadAll(io.NewSectionReader(f, 0, maxTail*2))
		if err != nil {
			return nil, 0, err
		}
		blocks, size, err := readBlocks(data, store)
		if err != nil {
			return nil, 0, fmt.Errorf("%s %w", f.Name(), err)
		}
		torn += int64(len(data)) - size
		t.size[i] = size
		if n := len(blocks); n > 0 {
			t.last[i] = blocks[n-1].number
		}
		if t.last[i] > t.number {
			t.number, t.active = t.last[i], i
		}
		if len(all) > 0 && len(blocks) > 0 && blocks[0].number < all[0].number {
			all, blocks = blocks, all
		}
		all = append(all, blocks...)
	}
	t.dirty = torn > 0
	return all, torn, nil
}

// readBlocks returns the blocks of a file of the tail, and the octets up to the end
// of the last.
func readBlocks(data []byte, store string) (blocks []block, size int64, err error) {
	if len(data) < int(tailStart) {
		return nil, 0, nil // cut off while the header was written
	}
	if string(data[:len(tailMagic)]) != tailMagic {
		return nil, 0, errors.New("is no tail of a record: move it away")
	}
	if string(data[len(tailMagic):tailStart]) != store {
		return nil, 0, errors.New("belongs to another record: move it away, or bring back the record it was written beside")
	}
	at := int(tailStart)
	for {
		b, length := cutBlock(data[at:])
		if length == 0 {
			break
		}
		blocks = append(blocks, b)
		at += length
	}
	if next := at + blockLength(data[at:]); next > at && next < len(data) {
		if b, length := cutBlock(data[next:]); length > 0 && (len(blocks) == 0 || b.number > blocks[len(blocks)-1].number) {
			return nil, 0, fmt.Errorf("is damaged at octet %d, with decisions after it: keep a copy, and move it away", at)
		}
	}
	return blocks, int64(at), nil
}

// blockLength returns the length of the block at the start of data according to its
// header; 0 without one.
func blockLength(data []byte) int {
	if len(data) < blockStart {
		return 0
	}
	return blockStart + int(binary.LittleEndian.Uint32(data))
}

// cutBlock returns the block at the start of data and its length; 0 when it is not
// complete and valid.
func cutBlock(data []byte) (b block, length int) {
	length = blockLength(data)
	if length <= blockStart || length > len(data) || crc32.Checksum(data[8:length], castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return block{}, 0
	}
	return block{binary.LittleEndian.Uint64(data[8:]), data[blockStart:length]}, length
}

// write appends a block. After an error no part of it is ever read.
func (t *wal) write(rows []byte) error {
	if t.size[t.active] > t.switchAt && t.size[1-t.active] <= tailStart {
		t.active = 1 - t.active
	}
	i := t.active
	if t.size[i]+int64(len(rows)) > maxTail {
		return errTailFull
	}
	if err := t.clean(); err != nil {
		return err
	}
	if t.size[i] < tailStart {
		if err := t.put(i, []byte(tailMagic+t.store)); err != nil {
			return err
		}
	}
	b := append(t.head[:0], 0, 0, 0, 0, 0, 0, 0, 0)
	b = append(binary.LittleEndian.AppendUint64(b, t.number+1), rows...)
	binary.LittleEndian.PutUint32(b, uint32(len(rows)))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	t.head = b[:0]
	if cap(t.head) > 1<<20 {
		t.head = nil
	}
	if err := t.put(i, b); err != nil {
		return err
	}
	t.number++
	t.last[i] = t.number
	return nil
}

// put writes b at the end of file i.
func (t *wal) put(i int, b []byte) error {
	_, err := t.files[i].WriteAt(b, t.size[i])
	if err == nil && t.sync != nil {
		err = t.sync(t.files[i])
	}
	if err != nil {
		t.dirty = true
		_ = t.clean() // tried again before the next write
		return err
	}
	t.size[i] += int64(len(b))
	return nil
}

// probe returns an error when the tail cannot be written.
func (t *wal) probe() error {
	if t.size[t.active] > maxTail {
		return errTailFull
	}
	t.dirty = true
	if _, err := t.files[t.active].WriteAt(make([]byte, 4096), t.size[t.active]); err != nil {
		return err
	}
	return t.clean()
}

// clean removes the octets after the last block of both files.
func (t *wal) clean() error {
	if !t.dirty {
		return nil
	}
	for i, f := range t.files {
		if err := f.Truncate(t.size[i]); err != nil {
			return err
		}
	}
	t.dirty = false
	return nil
}

// spent reports whether the inactive file has blocks, all of them up to number.
func (t *wal) spent(number uint64) bool {
	i := 1 - t.active
	return t.size[i] > tailStart && t.last[i] <= number
}

// drop empties the inactive file; with all, both.
func (t *wal) drop(all bool) error {
	for i, f := range t.files {
		if i == t.active && !all || t.size[i] <= tailStart {
			continue
		}
		if err := f.Truncate(0); err != nil {
			return err
		}
		t.size[i], t.last[i] = 0, 0
	}
	return nil
}

// octets returns the size of both files.
func (t *wal) octets() int64 { return t.size[0] + t.size[1] }

// DropWAL removes the files of the tail beside a record that is closed permanently,
// so that the record is one file. A file that is not empty is kept.
func DropWAL(path string) error {
	var all error
	for _, name := range walPaths(path) {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			err = os.Remove(name)
		}
		all = errors.Join(all, err)
	}
	return all
}
