package command

import (
	"fmt"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes in the settings, written with a unit: "256MiB".
type ByteSize int64

// byteUnits are the units of sizes, the largest first of those that count by
// 1024: String uses no other.
var byteUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// maxByteSize is the largest size that can be set: no overflow follows from it.
const maxByteSize = 1 << 50

// parseByteSize reads a whole number and a unit.
func parseByteSize(s string) (ByteSize, error) {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > maxByteSize/u.bytes {
			break
		}
		return ByteSize(n * u.bytes), nil
	}
	return 0, fmt.Errorf(`%q is not a size; write a whole number and a unit, such as "64MiB" or "1GiB"`, s)
}

// String writes b in the largest unit that leaves it whole.
func (b ByteSize) String() string {
	for _, u := range byteUnits[:4] {
		if int64(b) >= u.bytes && int64(b)%u.bytes == 0 {
			return strconv.FormatInt(int64(b)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}
