package state

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Space is what a file uses, and what its file system has left.
type Space struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`          // with the files beside it whose names begin with its name
	Free  *int64 `json:"free,omitempty"` // octets that this user can still write to its file system; nil: unknown
}

// SpaceOf returns the space of the file at path. A file that does not exist has no bytes.
func SpaceOf(path string) Space {
	dir, name := filepath.Split(path)
	f := Space{Path: path, Free: free(filepath.Clean(dir))}
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return f
	}
	for _, e := range entries {
		if !isPart(e.Name(), name) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			f.Bytes += info.Size()
		}
	}
	return f
}

// isPart reports whether the file is name, or one that is kept beside it: name-wal,
// name.tail.
func isPart(file, name string) bool {
	rest, ok := strings.CutPrefix(file, name)
	return ok && (rest == "" || rest[0] == '-' || rest[0] == '.')
}

// Growth measures how fast a file grows. It is safe for concurrent use.
type Growth struct {
	path  string
	limit int64
	since time.Time
	size  int64 // at since
}

// minGrowth is the shortest time from which a growth is derived.
const minGrowth = 10 * time.Minute

// WatchSpace begins to measure the growth of the file at path. limit is the size from which on
// its oldest content is removed; 0: none.
func WatchSpace(path string, limit int64, now time.Time) *Growth {
	return &Growth{path: path, limit: limit, since: now, size: SpaceOf(path).Bytes}
}

// Growing is a file that grows.
type Growing struct {
	Space
	Limit  int64    `json:"limit,omitempty"`         // octets from which on its oldest content is removed; 0: none
	PerDay int64    `json:"bytes_per_day,omitempty"` // growth since the measurement began; 0: unknown, or none
	Days   *float64 `json:"days_left,omitempty"`     // until it reaches Limit or the file system is full; nil: unknown
}

// Now returns the space of the file. The growth is unknown in the first ten minutes.
func (g *Growth) Now(now time.Time) Growing {
	is := Growing{Space: SpaceOf(g.path), Limit: g.limit}
	grown, taken := is.Bytes-g.size, now.Sub(g.since)
	if taken < minGrowth || grown <= 0 {
		return is
	}
	perDay := float64(grown) / taken.Hours() * 24
	is.PerDay = int64(perDay)
	switch {
	case is.UntilLimit():
		is.Days = new(float64(max(0, is.Limit-is.Bytes)) / perDay)
	case is.Free != nil:
		is.Days = new(float64(*is.Free) / perDay)
	}
	return is
}

// UntilLimit reports whether Limit is reached before the file system is full.
func (g *Growing) UntilLimit() bool {
	return g.Limit > 0 && (g.Free == nil || g.Limit-g.Bytes < *g.Free)
}
