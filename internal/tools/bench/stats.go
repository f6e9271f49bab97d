package main

import "slices"

// quantile returns the value below which the share q of the values lies, with
// linear interpolation between neighbours. It returns 0 for no values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// ratio returns the median of a[i]/b[i] over the rounds that both have and in which
// b is not 0, and whether there is such a round.
func ratio(a, b []float64) (float64, bool) {
	var quotients []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			quotients = append(quotients, a[i]/b[i])
		}
	}
	return median(quotients), len(quotients) > 0
}
