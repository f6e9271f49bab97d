package config

import (
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_SizesAreReadAndWrittenWithTheirUnit(t *testing.T) {
	for text, want := range map[string]ByteSize{
		"0B": 0, "1B": 1, "1023B": 1023, "1KiB": 1024, "256MiB": 256 << 20, "3GiB": 3 << 30, "1024TiB": 1 << 50,
	} {
		got, err := parseByteSize(text)
		must.True(t, err == nil && got == want && (got.String() == text || text == "1024TiB"),
			"%s: %d, %v, written %s", text, got, err, got)
	}
	for text, want := range map[string]ByteSize{"5 MB": 5e6, "5kB": 5000, "5KB": 5000, "2048KiB": 2 << 20} {
		got, err := parseByteSize(text)
		must.True(t, err == nil && got == want, "%s: %d, %v", text, got, err)
	}
	for _, text := range []string{"", "5", "MiB", "-1MiB", "1.5GiB", "1mib", "1025TiB", "9223372036854775807KiB", "5 M", "0x5MiB"} {
		got, err := parseByteSize(text)
		must.True(t, err != nil, "%q is taken for %d", text, got)
	}
}
