package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heed/internal/base/memo"
	"heed/internal/base/ownfile"
	"heed/internal/output/console"
	"heed/internal/pace"
	"heed/internal/pace/fleet"
	"heed/internal/pace/retryafter"
	"heed/rules"
)

// pacer implements proxy.Pacer with one version of the settings.
type pacer struct {
	*pace.Scheduler
	settings         *pace.Settings // current
	ignoreRetryAfter bool           // pacing.retry_after = "observe"
	addresses        *addresses     // of sites
}

// Paced implements proxy.Pacer.
func (p *pacer) Paced(o rules.Origin, hints []*rules.RateHint) bool {
	return p.Scheduler.Paced(o, hints, p.settings)
}

// Answered implements proxy.Pacer.
func (p *pacer) Answered(o rules.Origin, status int, h http.Header, sent time.Time) string {
	if !p.ignoreRetryAfter {
		return p.Scheduler.Answered(o, status, h, sent)
	}
	if asked, ok := retryafter.Parse(h, time.Now()); ok && asked > 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		return fmt.Sprintf("the site asks all clients to wait for %v (Retry-After), which is not kept", asked)
	}
	return ""
}

// Turn implements proxy.Pacer.
func (p *pacer) Turn(ctx context.Context, ask *pace.Ask) pace.Answer {
	ask.Settings = p.settings
	var at netip.Addr
	if p.settings.ByAddress && !ask.RobotsTxt {
		at = p.addresses.of(ctx, ask.Origin)
	}
	return p.TakeAt(ctx, ask, at)
}

const (
	// turnsName is the file of the last starts, in the state directory.
	turnsName = "turns.json"
	// turnsPause is how long changes are collected before they are written.
	turnsPause = time.Second
	// turnsShare is the least ratio of the pause after a write to the duration of the
	// write, which grows with the number of sites.
	turnsShare = 50
	// maxCheckpoints is the greatest number of checkpoints that are written, and
	// maxTurnsFile the greatest size in octets that is read.
	maxCheckpoints = 100_000
	maxTurnsFile   = 64 << 20
)

// turnsFile stores the last starts of requests to paced sites, so that a restart causes no
// burst. While heed runs, the file is slightly out of date and marked as incomplete: after
// a crash, the delay of every site is applied once from the start.
type turnsFile struct {
	path    string
	log     *slog.Logger
	turns   *pace.Scheduler
	fleet   *fleet.Store // nil: no fleet
	changed atomic.Bool  // since it was written
	end     chan struct{}
	ended   sync.WaitGroup
	// Used only by the goroutine that writes:
	failing bool // the last write failed
	written fleet.Membership
}

// keptTurns is the content of the file.
type keptTurns struct {
	Complete bool              `json:"complete"` // no request has started since it was written
	Turns    []pace.Checkpoint `json:"turns"`

	Fleet *fleet.Membership `json:"fleet,omitempty"` // nil: no fleet
}

// openTurnsFile returns a scheduler that continues from the file of an earlier heed, and
// saves it until close. A file that cannot be read is logged and treated as incomplete.
func openTurnsFile(path string, store *fleet.Store, log *slog.Logger) *turnsFile {
	f := &turnsFile{path: path, fleet: store, log: log, end: make(chan struct{})}
	c := pace.Config{Changed: func() { f.changed.Store(true) }}
	if store != nil {
		c.Shared = store.Lanes()
	}
	f.turns = pace.New(c)
	since := time.Now()
	kept, err := readTurns(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		since = time.Time{}
	case err != nil:
		log.Warn("the last starts at sites cannot be read: the delay of each site applies once from now on", "error", err)
	case kept.Complete:
		since = time.Time{}
	}
	f.turns.Restore(kept.Turns, since)
	if store != nil {
		f.joinFleet(kept.Fleet)
	}
	f.save(false)
	f.ended.Go(f.keep)
	return f
}

// joinFleet applies the pauses that sites requested from other instances. was is the
// membership of the earlier heed; nil: none.
func (f *turnsFile) joinFleet(was *fleet.Membership) {
	if was != nil {
		f.fleet.Lanes().Expect(*was)
	}
	f.fleet.Lanes().Watch(func(host string, pause time.Duration) {
		scheme, authority, _ := strings.Cut(host, "://")
		if origin, err := rules.ParseOrigin(scheme, authority); err == nil {
			f.turns.Hold(origin, pause)
		}
	})
}

func readTurns(path string) (kept keptTurns, err error) {
	file, err := ownfile.ReadRegular(path, maxTurnsFile)
	if err != nil {
		return kept, err
	}
	if err := json.Unmarshal(file.Data, &kept); err != nil {
		return keptTurns{}, fmt.Errorf("%s: %w", path, err)
	}
	return kept, nil
}

// keep writes the file after changes, until close.
func (f *turnsFile) keep() {
	for pause := turnsPause; ; {
		select {
		case <-f.end:
			return
		case <-time.After(pause):
		}
		if begun := time.Now(); f.changed.Swap(false) || f.membershipChanged() {
			f.save(false)
			pause = max(turnsPause, turnsShare*time.Since(begun))
		}
	}
}

// membershipChanged reports whether the fleet membership differs from the written one.
func (f *turnsFile) membershipChanged() bool {
	if f.fleet == nil {
		return false
	}
	is := f.fleet.Lanes().Membership()
	return is.Place != f.written.Place || is.Size != f.written.Size || is.Heeds != f.written.Heeds
}

// close writes the complete file. It is called when no request starts any more.
func (f *turnsFile) close() {
	close(f.end)
	f.ended.Wait()
	f.save(true)
}

// save writes the file. Of consecutive failures only the first is logged.
func (f *turnsFile) save(complete bool) {
	err := f.write(complete)
	if err != nil && !f.failing {
		f.log.Warn("the last starts at sites cannot be saved for a restart", "error", err)
	}
	f.failing = err != nil
}

func (f *turnsFile) write(complete bool) error {
	turns := f.turns.Checkpoints()
	kept := keptTurns{Complete: complete && len(turns) <= maxCheckpoints, Turns: turns[:min(len(turns), maxCheckpoints)]}
	// A heed that ends leaves its place to others, unless the store is away: then they
	// cannot take it.
	if f.fleet != nil && (!complete || f.fleet.Health().Away) {
		membership := f.fleet.Lanes().Membership()
		kept.Fleet, f.written = &membership, membership
	}
	return ownfile.Write(f.path, append(console.MustJSON(kept), '\n'), 0o600)
}

// addresses finds the address by which the names of one server keep their delay together
// (pacing.min_delay_per = "address"). It is safe for concurrent use.
type addresses struct {
	resolve map[string]string // upstream.resolve
	known   memo.Kept[string, netip.Addr]
}

// Bounds of what is looked up.
const (
	maxPlaced  = 4096
	placedFor  = time.Minute
	lookupTime = 5 * time.Second
)

// of returns the address of an origin: the least of those that its name has, IPv4 before
// IPv6, so that two names with the same addresses have the same one however they are ordered.
// It is invalid when the name has none now: the request is paced by its site.
func (a *addresses) of(ctx context.Context, o rules.Origin) netip.Addr {
	host := o.Host
	if to, ok := a.resolve[o.HostPort()]; ok {
		if placed, _, err := net.SplitHostPort(to); err == nil {
			host = placed
		}
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap()
	}
	now := time.Now()
	if found, ok := a.known.Get(host, now); ok {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil && ctx.Err() != nil {
		return netip.Addr{} // the client has left, or the resolver is slow: nothing is known
	}
	least := leastAddress(all)
	a.known.Put(host, least, now.Add(placedFor), 1, maxPlaced, maxPlaced)
	return least
}

// leastAddress returns the least address, IPv4 before IPv6; an invalid one of none.
func leastAddress(all []netip.Addr) (least netip.Addr) {
	for i := range all {
		all[i] = all[i].Unmap().WithZone("")
	}
	if len(all) > 0 {
		least = slices.MinFunc(all, netip.Addr.Compare)
	}
	return least
}
