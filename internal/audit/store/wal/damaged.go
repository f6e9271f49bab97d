package wal

import (
	"bytes"
	"encoding/binary"

	"heed/internal/ownfile"
)

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
