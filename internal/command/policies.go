package command

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"heed/cache"
)

const (
	// policiesFile is where policies are kept, in the state directory, when
	// cache.file names no other place.
	policiesFile = "policies.db"
	// fileShare is how many times as much as in memory is kept on disk. The file
	// may be twice as long.
	fileShare = 2
	// leastPolicy is about what the smallest policy takes in memory: no more
	// than so many fit.
	leastPolicy = 1 << 10
)

// openPolicies opens the file that policies outlive the process in.
func openPolicies(cfg *Config, state string, log *slog.Logger) (*cache.File, error) {
	path := cmp.Or(cfg.Cache.File, filepath.Join(state, policiesFile))
	return cache.OpenFile(path, fileShare*int64(cfg.Cache.MaxBytes), log)
}

// policyMemory is the room for policies that all ways to the sites share: what
// cache.max_bytes leaves beside what waits for the disk, and half of it at least.
func policyMemory(cfg *Config) *cache.Memory {
	all := int64(cfg.Cache.MaxBytes)
	room := max(all-cache.FileMemory, all/2)
	return cache.NewMemory(int(room/leastPolicy), room)
}

// identity tells the way w from all others, those of other settings too: what
// was fetched through one proxy, or from the place that upstream.resolve names,
// says nothing about the site that is found another way.
func (s *egresses) identity(w way) (string, error) {
	p := w.Proxy
	if p == nil {
		p = s.proxy
	}
	what := struct {
		Proxy   *upstreamProxy
		Roots   string
		CA      []byte
		Resolve map[string]string
		Hosts   []hostWay `json:",omitempty"`
	}{Proxy: p, Hosts: s.hosts, Roots: w.Roots, Resolve: s.cfg.Upstream.Resolve}
	if s.cfg.Upstream.CAFile != "" {
		var err error
		if what.CA, err = os.ReadFile(s.cfg.Upstream.CAFile); err != nil {
			return "", fmt.Errorf("upstream.ca_file: %w", err)
		}
	}
	text, err := json.Marshal(what)
	if err != nil {
		panic("plain strings cannot be marshalled: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
