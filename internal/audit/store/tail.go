package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"
)

// Bounds of the tail.
const (
	turnSize = 8 << 20  // tail.turnAt
	maxTail  = 64 << 20 // octets of a file: more is refused until audit.db has caught up
)

// A file of the tail begins with tailMagic and the id of the record it belongs
// to. Blocks follow: the length of the rows, a CRC-32C over all that comes
// after it, the number of the block, rows.
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

// tail is the log that decisions are written to first: two files in turn, so
// that one can be emptied while the other is written. Not safe for concurrent use.
type tail struct {
	files  [2]*os.File
	size   [2]int64  // octets of whole blocks and what stands before them
	last   [2]uint64 // the number of the last block; 0: there is none
	turn   int       // which is written
	turnAt int64     // octets of a file after which the other one is, when it is empty
	number uint64    // of the last block written
	store  string
	sync   func(*os.File) error // after each block; nil: the system keeps what was written
	dirty  bool                 // there may be octets after size that nobody must ever read
	head   []byte
}

// tailPaths returns the two files beside the record at path.
func tailPaths(path string) [2]string { return [2]string{path + ".tail", path + ".tail2"} }

// openTail opens the tail beside path, locked: the error is errHeld when it is
// another process's until patience is over.
func openTail(path string, patience time.Duration) (*tail, error) {
	t := &tail{turnAt: turnSize}
	for i, name := range tailPaths(path) {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.close()
			return nil, err
		}
		t.files[i] = f
		if i > 0 {
			continue
		}
		if !lockSoon(f, patience) {
			t.close()
			return nil, errHeld
		}
	}
	return t, nil
}

// lockSoon locks f, within patience, and reports whether it did.
func lockSoon(f *os.File, patience time.Duration) bool {
	for end := time.Now().Add(patience); lock(f) != nil; time.Sleep(20 * time.Millisecond) {
		if !time.Now().Before(end) {
			return false
		}
	}
	return true
}

func (t *tail) close() {
	for _, f := range t.files {
		if f != nil {
			f.Close()
		}
	}
}

// block is what was written at once.
type block struct {
	number uint64
	rows   []byte
}

// read returns the blocks of both files in their order, and the number of octets
// after the last whole block, which nobody was told was written. The tail of
// another record is an error, and so are blocks after one that is damaged.
func (t *tail) read(store string) (all []block, torn int64, err error) {
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
			t.number, t.turn = t.last[i], i
		}
		if len(all) > 0 && len(blocks) > 0 && blocks[0].number < all[0].number {
			all, blocks = blocks, all
		}
		all = append(all, blocks...)
	}
	t.dirty = torn > 0
	return all, torn, nil
}

// readBlocks returns the blocks of a file of the tail and the octets up to the
// end of the last.
func readBlocks(data []byte, store string) (blocks []block, size int64, err error) {
	if len(data) < int(tailStart) {
		return nil, 0, nil // cut off while it was begun
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
	if next := at + claimed(data[at:]); next > at && next < len(data) {
		if b, length := cutBlock(data[next:]); length > 0 && (len(blocks) == 0 || b.number > blocks[len(blocks)-1].number) {
			return nil, 0, fmt.Errorf("is damaged at octet %d, with decisions after it: keep a copy, and move it away", at)
		}
	}
	return blocks, int64(at), nil
}

// claimed is the length that the block at the start of data says it has; 0 when
// there is none.
func claimed(data []byte) int {
	if len(data) < blockStart {
		return 0
	}
	return blockStart + int(binary.LittleEndian.Uint32(data))
}

// cutBlock returns the block at the start of data and its length; 0 when there
// is none that is whole.
func cutBlock(data []byte) (b block, length int) {
	length = claimed(data)
	if length <= blockStart || length > len(data) || crc32.Checksum(data[8:length], castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return block{}, 0
	}
	return block{binary.LittleEndian.Uint64(data[8:]), data[blockStart:length]}, length
}

// write appends a block. After an error nothing of it is ever read.
func (t *tail) write(rows []byte) error {
	if t.size[t.turn] > t.turnAt && t.size[1-t.turn] <= tailStart {
		t.turn = 1 - t.turn
	}
	i := t.turn
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
func (t *tail) put(i int, b []byte) error {
	_, err := t.files[i].WriteAt(b, t.size[i])
	if err == nil && t.sync != nil {
		err = t.sync(t.files[i])
	}
	if err != nil {
		t.dirty = true
		_ = t.clean() // else before the next write
		return err
	}
	t.size[i] += int64(len(b))
	return nil
}

// probe fails when nothing can be written.
func (t *tail) probe() error {
	if t.size[t.turn] > maxTail {
		return errTailFull
	}
	t.dirty = true
	if _, err := t.files[t.turn].WriteAt(make([]byte, 4096), t.size[t.turn]); err != nil {
		return err
	}
	return t.clean()
}

// clean removes what comes after the last block in both files.
func (t *tail) clean() error {
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

// spent reports whether a file that is not written any more has nothing but
// blocks up to the one with this number.
func (t *tail) spent(number uint64) bool {
	i := 1 - t.turn
	return t.size[i] > tailStart && t.last[i] <= number
}

// drop empties the file that is not written; with all, both.
func (t *tail) drop(all bool) error {
	for i, f := range t.files {
		if i == t.turn && !all || t.size[i] <= tailStart {
			continue
		}
		if err := f.Truncate(0); err != nil {
			return err
		}
		t.size[i], t.last[i] = 0, 0
	}
	return nil
}

// octets is how many the tail has.
func (t *tail) octets() int64 { return t.size[0] + t.size[1] }
