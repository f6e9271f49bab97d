package cache

import "time"

// When a site that failed is asked again.
const (
	// ownRetry is the wait after a failure that was heed's own.
	ownRetry = 10 * time.Second

	// A site's Retry-After is obeyed within these bounds. The lower one doubles
	// with every failure up to lastConnect, so that one that says "at once"
	// forever is not asked forever.
	minRetryAfter = time.Second
	maxRetryAfter = maxLifetime

	// Each wait is lengthened by up to a quarter (see backoff), so that the
	// longest are 15 minutes and one minute.
	firstRetry   = time.Minute
	lastRetry    = 12 * time.Minute
	firstConnect = time.Second
	lastConnect  = 48 * time.Second
)

// retryIn returns how long a site is left alone after a failure: as long as it
// asks for, else a wait that grows with every failure. A site that was never
// reached carries no burden, so it is tried sooner: people expect one that
// comes up to work.
func retryIn(a answer, failures int, now time.Time, jitter float64) time.Duration {
	if a.ours {
		return ownRetry
	}
	if a.noConnection {
		return backoff(firstConnect, lastConnect, failures, jitter)
	}
	if d, ok := retryAfter(a.header, now); ok {
		return min(max(d, backoff(minRetryAfter, lastConnect, failures, 0)), maxRetryAfter)
	}
	return backoff(firstRetry, lastRetry, failures, jitter)
}

// backoff doubles from first to last, lengthened by up to a quarter.
func backoff(first, last time.Duration, failures int, jitter float64) time.Duration {
	d := last
	if shift := failures - 1; shift < 10 {
		d = min(first<<shift, last)
	}
	return d + time.Duration(jitter*float64(d)/4)
}
