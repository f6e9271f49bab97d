// Package cache has an origin's Policy at hand: from memory, else from the
// site, asked once for all who wait.
//
// The way of a look-up: Cache.Policy (cache.go) finds a fresh entry in the store
// (store.go, shortcut.go, place.go, shown.go), or in what outlives the process
// (keep.go, record.go, file.go, filetrouble.go, pending.go, bolt.go), or in what
// other heeds know (fleet.go), or waits for a fetch (fetch.go, lane.go,
// redirect.go, body.go, coding.go), whose answer the pure function next (state.go,
// challenge.go, lifetime.go, profile.go, retry.go) turns into the next entry
// (entry.go). People look at what is held through held.go, and from outside of a
// running heed through look.go.
//
// Outside packages: github.com/patrickmn/go-cache, imported by store.go alone;
// go.etcd.io/bbolt, from file.go on; github.com/andybalholm/brotli and
// github.com/klauspost/compress, by coding.go.
package cache
