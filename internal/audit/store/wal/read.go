package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"heed/internal/ownfile"
)

// readBlocks returns the blocks of a file of the tail, and the octets up to the end
// of the last.
func readBlocks(data []byte, store string) (blocks []Block, size int64, err error) {
	if len(data) < int(Start) {
		return nil, 0, nil // cut off while the header was written
	}
	if string(data[:len(tailMagic)]) != tailMagic {
		return nil, 0, errors.New("is no tail of a record: move it away")
	}
	if string(data[len(tailMagic):Start]) != store {
		return nil, 0, fmt.Errorf("belongs to another record: %w, or bring back the record it was written beside", ErrDamaged)
	}
	at := int(Start)
	for {
		b, length := Cut(data[at:])
		if length == 0 {
			break
		}
		blocks = append(blocks, b)
		at += length
	}
	last := uint64(0)
	if n := len(blocks); n > 0 {
		last = blocks[n-1].Number
	}
	if len(later(data[at:], last)) > 0 {
		return nil, 0, fmt.Errorf("is damaged at octet %d, with decisions after it: %w", at, ErrDamaged)
	}
	return blocks, int64(at), nil
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

// blockLength returns the length of the block at the start of data according to its
// header; 0 without one.
func blockLength(data []byte) int {
	if len(data) < BlockStart {
		return 0
	}
	return BlockStart + int(binary.LittleEndian.Uint32(data))
}

// Cut returns the block at the start of data and its length; 0 when it is not
// complete and valid.
func Cut(data []byte) (b Block, length int) {
	length = blockLength(data)
	if length <= BlockStart || length > len(data) || crc32.Checksum(data[8:length], castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return Block{}, 0
	}
	return Block{binary.LittleEndian.Uint64(data[8:]), data[BlockStart:length]}, length
}

// Blocks returns the blocks in the tail of the record at path, which may be open for
// writing.
func Blocks(path, store string) (all []Block) {
	for _, name := range Paths(path) {
		file, err := ownfile.ReadRegular(name, maxTail*2)
		if err != nil {
			continue
		}
		if blocks, _, err := readBlocks(file.Data, store); err == nil {
			all = append(all, blocks...)
		}
	}
	return all
}

// Undamaged returns the blocks in the tail of the record at path that can be read, also
// those after damaged ones.
func Undamaged(path, store string) (all []Block) {
	for _, name := range Paths(path) {
		file, err := ownfile.ReadRegular(name, maxTail*2)
		if err != nil || !bytes.HasPrefix(file.Data, []byte(tailMagic+store)) {
			continue
		}
		last := uint64(0)
		for data := file.Data[Start:]; len(data) > 0; {
			b, length := Cut(data)
			if length == 0 {
				data = later(data, last)
				continue
			}
			all, last, data = append(all, b), b.Number, data[length:]
		}
	}
	return all
}

// HasBlocks reports whether the tail of the record at path has blocks.
func HasBlocks(path string) bool {
	for _, name := range Paths(path) {
		if info, err := os.Stat(name); err == nil && info.Size() > Start {
			return true
		}
	}
	return false
}
