package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"heed/internal/base/ownfile"
	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/rules"
)

// File and number of grants (mode overrides and exceptions).
const (
	grantsFile    = "granted.json" // in the state directory
	maxGrantsFile = 16 << 20       // octets of the file with them
	maxGrants     = 1000           // mode overrides and exceptions together
)

// grants applies mode overrides and exceptions, and stores them in a file for restarts.
type grants struct {
	path  string
	log   *slog.Logger
	now   func() time.Time
	rules func() *acl.Rules                 // in force
	amend func(func(*acl.Rules) *acl.Rules) // applies the grants

	mu      sync.Mutex
	current control.Granted
	timer   *time.Timer // until the next grant ends; nil: none ends
}

// openGrants reads the grants from before a restart and applies them. Those that have
// ended since are logged. A file that cannot be read is an error, so that no grant is lost
// silently.
func openGrants(g *grants) (*grants, error) {
	file, err := ownfile.ReadRegular(g.path, maxGrantsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal(file.Data, &g.current)
	}
	if err != nil {
		return nil, fmt.Errorf("what was granted with `heed mode` and `heed allow` cannot be read from %s: %w\nRemove the file, and grant it again", g.path, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g, g.putLocked(g.current)
}

// list returns the grants that have not ended.
func (g *grants) list() control.Granted {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept, _, _ := g.current.Without(g.now())
	return kept
}

// change applies and saves the grants as edit changes them.
func (g *grants) change(edit func(next *control.Granted)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.current.Clone()
	edit(&next)
	return g.putLocked(next)
}

// observe begins a mode override. It ends by the wall clock, since the monotonic clock stops
// while a machine sleeps.
func (g *grants) observe(b acl.ModeOverride) (*control.Break, error) {
	b.Since, b.Until = b.Since.Round(0), b.Until.Round(0)
	kept := control.Break{ModeOverride: b}
	err := g.change(func(next *control.Granted) {
		next.Last++
		kept.ID = strconv.Itoa(next.Last)
		next.Breaks = slices.Insert(next.Breaks, 0, kept)
	})
	if err != nil {
		return nil, err
	}
	g.log.Warn("break-glass: only observed from now on", "until", b.Until, "client", b.Client, "host", b.Host.String(), "reason", b.Reason)
	return &kept, nil
}

// enforce ends all mode overrides and returns how many there were.
func (g *grants) enforce() (ended int, err error) {
	err = g.change(func(next *control.Granted) { ended, next.Breaks = len(next.Breaks), nil })
	if err != nil {
		return 0, err
	}
	g.log.Warn("break-glass: ended by hand, the settings apply again", "breaks", ended)
	return ended, nil
}

// allow adds an exception, which ends by the wall clock.
func (g *grants) allow(e control.Exception) (*control.Exception, error) {
	e.Since, e.Expires = e.Since.Round(0), e.Expires.Round(0)
	err := g.change(func(next *control.Granted) {
		next.Last++
		e.ID = strconv.Itoa(next.Last)
		next.Exceptions = slices.Insert(next.Exceptions, 0, e)
	})
	if err != nil {
		return nil, err
	}
	what, verb := "an exception was granted", "allow"
	if e.Refuse {
		what, verb = "stopped: refused from now on", "refuse"
	}
	g.log.Warn(what, "id", e.ID, "host", e.Host.String(), verb, e.Path, "client", e.Client, "expires", e.Expires, "reason", e.Reason)
	return &e, nil
}

// end removes an exception. advice ends the error when there is none with the id.
func (g *grants) end(id, advice string) error {
	found := false
	err := g.change(func(next *control.Granted) {
		before := len(next.Exceptions)
		next.Exceptions = slices.DeleteFunc(next.Exceptions, func(e control.Exception) bool { return e.ID == id })
		found = len(next.Exceptions) < before
	})
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("there is no exception or block with the id %s\n%s", console.Quoted(id), advice)
	}
	g.log.Warn("a granted exception was ended by hand", "id", id)
	return nil
}

// putLocked saves next without the grants that have ended, applies it, and sets the timer
// for the next end. Grants that cannot be saved are not applied.
func (g *grants) putLocked(next control.Granted) error {
	next, ended, end := next.Without(g.now())
	if len(next.Breaks)+len(next.Exceptions) > maxGrants {
		return fmt.Errorf("%d are granted already\nEnd some, or write lasting exceptions into proxy.toml", maxGrants)
	}
	if _, err := next.AddTo(nil); err != nil {
		return err
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := ownfile.Write(g.path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("it cannot be saved for a restart: %w", err)
	}
	g.current = next
	g.amend(func(b *acl.Rules) *acl.Rules {
		amended, _ := next.AddTo(b) // checked
		return config.AmendRules(amended, func(in *config.RecordedSettings) { in.Granted = next })
	})
	for _, text := range ended {
		g.log.Warn("a grant has expired: the settings apply again", "grant", text)
	}
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	if !end.IsZero() {
		g.timer = time.AfterFunc(end.Sub(g.now()), g.expire)
	}
	return nil
}

// expire logs which grants have ended, and updates the file: rules check the time themselves.
func (g *grants) expire() {
	if err := g.change(func(*control.Granted) {}); err != nil {
		g.log.Error("a grant that has ended could not be taken out of its file", "error", err)
	}
}

// close stops the timer.
func (g *grants) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
}

// check checks the members that mode overrides and exceptions have in common.
func (g *grants) check(q *control.GrantRequest, most time.Duration) error {
	if err := control.CheckReason(q.Reason); err != nil {
		return err
	}
	if q.For <= 0 && !q.Refuse || q.For > most {
		return fmt.Errorf("--for: it can be at most %d days", most/(24*time.Hour))
	}
	if q.Client != "" && q.Client != acl.RunName && g.rules().ClientNamed(q.Client) == nil {
		return fmt.Errorf("--client: the running heed has no [[client]] called %s\nSee `heed config show`", console.Quoted(q.Client))
	}
	return nil
}

func (g *grants) postBreak(_ context.Context, q *control.GrantRequest) (*control.Break, error) {
	if err := g.check(q, control.MaxBreak); err != nil {
		return nil, err
	}
	now := g.now()
	b := acl.ModeOverride{Mode: acl.Observe, Client: q.Client, Since: now, Until: now.Add(q.For), Reason: q.Reason}
	if q.Host != "" {
		var err error
		if b.Host, err = acl.ParseHostPattern(q.Host); err != nil {
			return nil, fmt.Errorf("--host: %w", err)
		}
	}
	return g.observe(b)
}

func (g *grants) postException(_ context.Context, q *control.GrantRequest) (*control.Exception, error) {
	if q.Client == "" && !q.Refuse {
		return nil, fmt.Errorf("--client is needed: the name of the [[client]] that the exception is for")
	}
	if err := g.check(q, control.MaxGrant); err != nil {
		return nil, err
	}
	host, path, err := control.ParsePattern(q.Pattern)
	if err != nil {
		return nil, err
	}
	now := g.now()
	if o, err := rules.ParseOrigin("https", host.String()); err == nil && !q.Refuse && g.rules().For(nil, o, now).Site.NeverAllow {
		return nil, fmt.Errorf("the settings let no exception allow anything at %s (never_allow)\nAsk the author of that setting", host)
	}
	e := control.Exception{Host: host, Path: path, Refuse: q.Refuse, Client: q.Client, Reason: q.Reason, Since: now}
	if q.For > 0 {
		e.Expires = now.Add(q.For)
	}
	return g.allow(e)
}
