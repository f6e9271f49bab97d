package figures

import (
	"cmp"
	"math"
	"time"
)

// Percentile returns the value at or below which p percent of a sorted list lie, by the
// nearest rank; p is from 1 to 100, and the list is not empty.
func Percentile[T cmp.Ordered](sorted []T, p int) T {
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// Median returns the middle value of a sorted list, which is not empty: of an even number,
// the mean of the two in the middle.
func Median[T int64 | uint32](sorted []T) float64 {
	n := len(sorted)
	low, high := float64(sorted[(n-1)/2]), float64(sorted[n/2])
	return low + (high-low)/2
}

// Wilson returns the bounds of the 95 % interval of the share part/all by Wilson's score
// (Wilson 1927), which holds for small numbers too, and for shares near 0 and 1. all is not 0.
func Wilson(part, all int64) (low, high float64) {
	const z = 1.959963984540054 // the 97.5th percentile of the normal distribution
	n, p := float64(all), float64(part)/float64(all)
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	low, high = max(0, middle-half), min(1, middle+half)
	if part == 0 {
		low = 0
	}
	if part == all {
		high = 1
	}
	return low, high
}

// Keeps reports whether the time between two requests is at least the delay that the site
// asks for, both in the same unit.
func Keeps(gap, delay int64) bool { return gap >= delay }

// Fastest finds the most requests within any 60 seconds. The zero value is ready for use.
type Fastest struct {
	Most int64
	from int     // the first of times that is within the last minute
	list []int64 // those before from are dropped when they are the larger part
}

// Add adds a request at t, in microseconds; requests are added in the order of time.
func (f *Fastest) Add(t int64) {
	for f.from < len(f.list) && t-f.list[f.from] >= time.Minute.Microseconds() {
		f.from++
	}
	if f.from > 16 && f.from > len(f.list)/2 {
		f.list, f.from = f.list[:copy(f.list, f.list[f.from:])], 0
	}
	f.list = append(f.list, t)
	f.Most = max(f.Most, int64(len(f.list)-f.from))
}

// Share returns part of all; nil when all is 0.
func Share(part, all int64) *float64 {
	if all == 0 {
		return nil
	}
	share := float64(part) / float64(all)
	return &share
}
