package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"heed/internal/fleet"
	"heed/internal/pace"
	"heed/rules"
)

const (
	// turnsName is where the last starts are kept, in the state directory.
	turnsName = "turns.json"
	// turnsPause is how long changes are gathered before they are written.
	turnsPause = time.Second
	// standingLook is how often it is looked whether the fleet has changed.
	standingLook = 2 * time.Second
	// turnsShare is how many times as long as a write the pause after it is at
	// least: what is written grows with the sites.
	turnsShare = 50
	// maxTurnsMarks bounds what is written, and maxTurnsFile what is read.
	maxTurnsMarks = 100_000
	maxTurnsFile  = 64 << 20
)

// turnsFile keeps the last starts at paced sites, so that a restart brings no
// burst. While heed runs it lags a little behind, and says that it is not
// complete: after a kill, every site's delay is kept once from the start.
type turnsFile struct {
	path    string
	log     *slog.Logger
	turns   *pace.Turns
	fleet   *fleet.Store  // nil: there is none
	changed chan struct{} // has room for one
	end     chan struct{}
	ended   sync.WaitGroup
	// Of the goroutine that writes:
	failing bool // the last write did
	stood   fleet.Standing
}

// keptTurns is what is in the file.
type keptTurns struct {
	Complete bool       `json:"complete"` // nothing has started since it was written
	Turns    []keptTurn `json:"turns"`

	Fleet *fleet.Standing `json:"fleet,omitempty"` // nil: there was none
}

// keptTurn is a pace.Mark. Lane may hold any octets, and is base64.
type keptTurn struct {
	Scheme    string    `json:"scheme"`
	Authority string    `json:"authority"`
	Lane      []byte    `json:"lane,omitempty"`
	Delay     int64     `json:"delay_ms,omitempty"`
	Next      time.Time `json:"next"`
	Hold      bool      `json:"hold,omitempty"`
}

// openTurns makes the turns of all sites; close keeps them for a restart.
func (o *opened) openTurns(state string) (close func()) {
	f := openTurnsFile(filepath.Join(state, turnsName), o.fleet, o.log)
	heedPauses(o.fleet, f.turns)
	o.turns = f.turns
	return f.close
}

// openTurnsFile returns turns that go on where those of an earlier heed in the same
// state directory ended, and keeps them until close. A file that cannot be read
// is told, and taken for one that is not complete.
func openTurnsFile(path string, store *fleet.Store, log *slog.Logger) *turnsFile {
	f := &turnsFile{path: path, fleet: store, log: log, changed: make(chan struct{}, 1), end: make(chan struct{})}
	f.turns = pace.New(pace.Config{Shared: sharedTurns(store), Changed: f.change})
	since := time.Now()
	kept, err := readTurns(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		since = time.Time{}
	case err != nil:
		log.Warn("the last starts at sites cannot be read: each site's delay is kept once from now on", "error", err)
	case kept.Complete:
		since = time.Time{}
	}
	f.turns.Restore(kept.marks(), since)
	if store != nil && kept.Fleet != nil {
		store.Turns().Expect(*kept.Fleet)
	}
	f.save(false)
	f.ended.Go(f.keep)
	return f
}

func readTurns(path string) (kept keptTurns, err error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxTurnsFile {
		return kept, fmt.Errorf("%s is larger than %d MiB", path, maxTurnsFile>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return kept, err
	}
	if err := json.Unmarshal(data, &kept); err != nil {
		return keptTurns{}, fmt.Errorf("%s: %w", path, err)
	}
	return kept, nil
}

// marks are what the turns begin with.
func (k *keptTurns) marks() (all []pace.Mark) {
	for _, t := range k.Turns {
		origin, err := rules.ParseOrigin(t.Scheme, t.Authority)
		if err != nil {
			continue
		}
		all = append(all, pace.Mark{
			Origin: origin, Lane: string(t.Lane), Delay: time.Duration(t.Delay) * time.Millisecond, Next: t.Next, Hold: t.Hold,
		})
	}
	return all
}

// change has the file written soon.
func (f *turnsFile) change() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// keep writes what has changed, until close.
func (f *turnsFile) keep() {
	pause := turnsPause
	look := time.NewTicker(standingLook)
	defer look.Stop()
	for {
		select {
		case <-f.end:
			return
		case <-look.C:
			if !f.moved() {
				continue
			}
		case <-f.changed:
		}
		select {
		case <-f.end:
			return
		case <-time.After(pause):
		}
		begun := time.Now()
		f.save(false)
		pause = max(turnsPause, turnsShare*time.Since(begun))
	}
}

// moved reports whether the heed has another place in its fleet than was written.
func (f *turnsFile) moved() bool {
	if f.fleet == nil {
		return false
	}
	is := f.fleet.Turns().Standing()
	return is.Place != f.stood.Place || is.Size != f.stood.Size || is.Heeds != f.stood.Heeds
}

// close writes the last, once nothing starts any more.
func (f *turnsFile) close() {
	close(f.end)
	f.ended.Wait()
	f.save(true)
}

// save writes the file anew. That it cannot is told once.
func (f *turnsFile) save(complete bool) {
	err := f.write(complete)
	if err != nil && !f.failing {
		f.log.Warn("the last starts at sites cannot be saved for a restart", "error", err)
	}
	f.failing = err != nil
}

func (f *turnsFile) write(complete bool) error {
	marks := f.turns.Marks()
	kept := keptTurns{Complete: complete && len(marks) <= maxTurnsMarks, Turns: []keptTurn{}}
	if f.fleet != nil {
		standing := f.fleet.Turns().Standing()
		kept.Fleet, f.stood = &standing, standing
	}
	for _, m := range marks[:min(len(marks), maxTurnsMarks)] {
		kept.Turns = append(kept.Turns, keptTurn{
			Scheme: m.Origin.Scheme, Authority: m.Origin.Authority(), Lane: []byte(m.Lane),
			Delay: (m.Delay + time.Millisecond - 1).Milliseconds(), Next: m.Next, Hold: m.Hold,
		})
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	temp, err := writeTemp(f.path, append(text, '\n'), 0o600)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, f.path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}
