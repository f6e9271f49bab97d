package plan

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"iter"
	"os"
	"slices"
)

// spill is a temporary file of blocks, each of which names the one before it that has the
// same owner. Blocks are written by one goroutine at a time, and read by any.
type spill struct {
	dir  string // empty: that of os.TempDir
	file *os.File
	out  *bufio.Writer
	size int64
}

// noBlock is the place of the block before the first.
const noBlock = -1

// blockHead is the length of the head of a block: where the one before is, and how many
// octets follow.
const blockHead = 12

// write appends a block and returns where it is. It can be read after flush.
func (s *spill) write(before int64, data []byte) (at int64, err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp(s.dir, "heed-plan-*"); err != nil {
			return 0, spillError(err)
		}
		_ = os.Remove(s.file.Name()) // where an open file may be removed: a killed process leaves none
		s.out = bufio.NewWriterSize(s.file, 256<<10)
	}
	var head [blockHead]byte
	binary.LittleEndian.PutUint64(head[:], uint64(before))
	binary.LittleEndian.PutUint32(head[8:], uint32(len(data)))
	at = s.size
	s.size += int64(blockHead + len(data))
	if _, err = s.out.Write(head[:]); err == nil {
		_, err = s.out.Write(data)
	}
	return at, spillError(err)
}

func (s *spill) flush() error {
	if s.out == nil {
		return nil
	}
	return spillError(s.out.Flush())
}

// blocks returns the URLs of the blocks that end with the one at last, a block at a time, the
// first of them first.
func (s *spill) blocks(last int64) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		var all [][2]int64 // where their URLs begin, and how many octets they have
		for last != noBlock {
			var head [blockHead]byte
			if _, err := s.file.ReadAt(head[:], last); err != nil {
				yield(nil, spillError(err))
				return
			}
			all = append(all, [2]int64{last + blockHead, int64(binary.LittleEndian.Uint32(head[8:]))})
			last = int64(binary.LittleEndian.Uint64(head[:]))
		}
		for _, block := range slices.Backward(all) {
			data := make([]byte, block[1])
			_, err := s.file.ReadAt(data, block[0])
			if !yield(urlsOf(data), spillError(err)) {
				return
			}
		}
	}
}

func (s *spill) close() {
	if s.file != nil {
		_ = s.file.Close()           // its content is not needed
		_ = os.Remove(s.file.Name()) // where an open file may not be removed
		s.file = nil
	}
}

func spillError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the URLs that wait cannot be kept in a temporary file: %w\nSet TMPDIR to a directory with more room", err)
}
