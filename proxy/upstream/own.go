package upstream

import (
	"crypto/rand"
	"sync"
)

// OwnField is the field of a fetch of heed's own by which heed recognises it when the proxy
// that it goes through asks about it. Its value counts once, and not after the fetch, so that
// it is of no use to a site that gets it.
const OwnField = "Heed-Fetch"

// OwnFetches are the fetches of heed's own that are under way through another proxy. The zero
// value is ready, and safe for concurrent use.
type OwnFetches struct {
	mu     sync.Mutex
	values map[string]bool
}

// Begin returns the value of OwnField for one fetch. The caller must call end after it.
func (o *OwnFetches) Begin() (value string, end func()) {
	value = rand.Text()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.values == nil {
		o.values = map[string]bool{}
	}
	o.values[value] = true
	return value, func() { o.Claim(value) }
}

// Claim reports whether value is that of a fetch under way, once.
func (o *OwnFetches) Claim(value string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.values[value]
	delete(o.values, value)
	return known
}
