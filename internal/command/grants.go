package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heed/internal/terms"
	"heed/rules"
)

// What may be granted while heed runs.
const (
	grantsFile  = "granted.json"       // in the state directory
	maxBreak    = 7 * 24 * time.Hour   // of `heed mode observe`
	maxGrant    = 366 * 24 * time.Hour // of `heed allow`
	maxGrants   = 1000                 // of both kinds together
	maxReason   = 500                  // octets
	anotherTime = "\nWrite a time such as 30m, 2h or 14d"
)

// grantedBreak is a break that `heed mode observe` began.
type grantedBreak struct {
	ID string `json:"id"`
	terms.Break
}

// grantedException is an exception that `heed allow` or `heed refuse` added.
type grantedException struct {
	ID      string            `json:"id"`
	Host    terms.HostPattern `json:"host"`
	Path    string            `json:"path"` // as in robots.txt
	Refuse  bool              `json:"refuse,omitempty"`
	Client  string            `json:"client"` // empty: all, which only a refusal is for
	Reason  string            `json:"reason"`
	Since   time.Time         `json:"since"`
	Expires time.Time         `json:"expires,omitzero"` // zero: it lasts until it is ended, as only a refusal may
}

// granted is what was added to the settings while heed runs, the latest first.
type granted struct {
	Last       int                `json:"last"` // the last id
	Breaks     []grantedBreak     `json:"breaks"`
	Exceptions []grantedException `json:"exceptions"`
}

// clone returns a granted of its own that says the same.
func (g granted) clone() granted {
	g.Breaks, g.Exceptions = slices.Clone(g.Breaks), slices.Clone(g.Exceptions)
	return g
}

// grants keeps what was granted: in force, and in a file that a restart reads.
type grants struct {
	path  string
	log   *slog.Logger
	now   func() time.Time
	amend func(func(*terms.Book) *terms.Book) // puts it in force

	mu    sync.Mutex
	held  granted
	timer *time.Timer // until the next one ends; nil: none does
}

// openGrants reads what was granted before a restart and puts it in force. What
// has ended meanwhile is told. A file that cannot be read is an error: what was
// granted is not to be lost in silence, and no exception is guessed.
func openGrants(g *grants) (*grants, error) {
	data, err := os.ReadFile(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &g.held)
	}
	if err != nil {
		return nil, fmt.Errorf("what was granted with `heed mode` and `heed allow` cannot be read from %s: %w\nRemove the file, and grant it again", g.path, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g, g.putLocked(g.held)
}

// list returns what is in force now.
func (g *grants) list() granted {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept, _ := g.held.without(g.now())
	return kept
}

// observe begins a break. It ends by the wall clock, as it is told: the other
// clock stands still while a machine sleeps.
func (g *grants) observe(b terms.Break) (*grantedBreak, error) {
	b.Since, b.Until = b.Since.Round(0), b.Until.Round(0)
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.held.clone()
	next.Last++
	kept := grantedBreak{strconv.Itoa(next.Last), b}
	next.Breaks = append([]grantedBreak{kept}, next.Breaks...)
	if err := g.putLocked(next); err != nil {
		return nil, err
	}
	g.log.Warn("break-glass: only observed from now on", "until", b.Until, "client", b.Client, "host", b.Host.String(), "reason", b.Reason)
	return &kept, nil
}

// enforce ends all breaks and returns how many there were.
func (g *grants) enforce() (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.held.clone()
	ended := len(next.Breaks)
	next.Breaks = nil
	if err := g.putLocked(next); err != nil {
		return 0, err
	}
	g.log.Warn("break-glass: ended by hand, the settings hold again", "breaks", ended)
	return ended, nil
}

// allow adds an exception, which ends by the wall clock too.
func (g *grants) allow(e grantedException) (*grantedException, error) {
	e.Since, e.Expires = e.Since.Round(0), e.Expires.Round(0)
	if _, err := e.terms(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.held.clone()
	next.Last++
	e.ID = strconv.Itoa(next.Last)
	next.Exceptions = append([]grantedException{e}, next.Exceptions...)
	if err := g.putLocked(next); err != nil {
		return nil, err
	}
	what, verb := "an exception was granted", "allow"
	if e.Refuse {
		what, verb = "stopped: refused from now on", "refuse"
	}
	g.log.Warn(what, "id", e.ID, "host", e.Host.String(), verb, e.Path, "client", e.Client, "expires", e.Expires, "reason", e.Reason)
	return &e, nil
}

// end ends an exception before its time and reports whether there was one.
func (g *grants) end(id string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.held.clone()
	next.Exceptions = slices.DeleteFunc(next.Exceptions, func(e grantedException) bool { return e.ID == id })
	if len(next.Exceptions) == len(g.held.Exceptions) {
		return false, nil
	}
	if err := g.putLocked(next); err != nil {
		return false, err
	}
	g.log.Warn("a granted exception was ended by hand", "id", id)
	return true, nil
}

// putLocked saves what is granted, puts it in force, and waits for the next end.
// What cannot be saved does not hold.
func (g *grants) putLocked(next granted) error {
	next, ended := next.without(g.now())
	if len(next.Breaks)+len(next.Exceptions) > maxGrants {
		return fmt.Errorf("%d are granted already\nEnd some, or write lasting exceptions into proxy.toml", maxGrants)
	}
	hosts, breaks, err := next.terms()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	temp, err := writeTemp(g.path, append(text, '\n'), 0o600)
	if err != nil {
		return fmt.Errorf("it cannot be saved for a restart: %w", err)
	}
	if err := os.Rename(temp, g.path); err != nil {
		return errors.Join(fmt.Errorf("it cannot be saved for a restart: %w", err), os.Remove(temp))
	}
	g.held = next
	g.amend(func(b *terms.Book) *terms.Book {
		return amended(b.With(breaks, hosts), func(in *inForce) { in.Granted = next.orNil() })
	})
	for _, text := range ended {
		g.log.Warn("a grant has ended by itself: the settings hold again", "grant", text)
	}
	g.waitLocked()
	return nil
}

// waitLocked waits for the next grant to end, to tell of it. It ends by itself
// whether or not anybody waits.
func (g *grants) waitLocked() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	var first time.Time
	for _, end := range g.held.ends() {
		if first.IsZero() || end.Before(first) {
			first = end
		}
	}
	if !first.IsZero() {
		g.timer = time.AfterFunc(first.Sub(g.now()), g.expire)
	}
}

func (g *grants) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.putLocked(g.held.clone()); err != nil {
		g.log.Error("a grant that has ended could not be taken out of its file", "error", err)
	}
}

// orNil returns g; nil when nothing is granted.
func (g granted) orNil() *granted {
	if len(g.Breaks)+len(g.Exceptions) == 0 {
		return nil
	}
	return &g
}

// close ends the waiting.
func (g *grants) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
}

func (g granted) ends() (ends []time.Time) {
	for _, b := range g.Breaks {
		ends = append(ends, b.Until)
	}
	for _, e := range g.Exceptions {
		if !e.Expires.IsZero() {
			ends = append(ends, e.Expires)
		}
	}
	return ends
}

// without returns what has not ended now, and what has, in words.
func (g granted) without(now time.Time) (left granted, ended []string) {
	left.Last, left.Breaks, left.Exceptions = g.Last, []grantedBreak{}, []grantedException{}
	for _, b := range g.Breaks {
		if now.Before(b.Until) {
			left.Breaks = append(left.Breaks, b)
		} else {
			ended = append(ended, b.words())
		}
	}
	for _, e := range g.Exceptions {
		if e.Expires.IsZero() || now.Before(e.Expires) {
			left.Exceptions = append(left.Exceptions, e)
		} else {
			ended = append(ended, e.words())
		}
	}
	return left, ended
}

// terms returns what is granted as a Book takes it.
func (g granted) terms() (hosts []terms.Host, breaks []terms.Break, err error) {
	for _, b := range g.Breaks {
		breaks = append(breaks, b.Break)
	}
	for _, e := range g.Exceptions {
		made, err := e.terms()
		if err != nil {
			return nil, nil, err
		}
		hosts = append(hosts, terms.Host{Match: []terms.HostPattern{e.Host}, Exceptions: []*terms.Exception{made}})
	}
	return hosts, breaks, nil
}

func (e *grantedException) terms() (*terms.Exception, error) {
	x := terms.Exception{Patterns: []string{e.Path}, Refuse: e.Refuse, Reason: e.Reason, Expires: e.Expires, Granted: true}
	if e.Client != "" {
		x.Clients = []string{e.Client}
	}
	return terms.NewException(x)
}

// words says whom a break is for, until when and why.
func (b *grantedBreak) words() string {
	var of []string
	if b.Client != "" {
		of = append(of, "client "+b.Client)
	}
	if b.Host != (terms.HostPattern{}) {
		of = append(of, "host "+b.Host.String())
	}
	if len(of) == 0 {
		of = []string{"everything"}
	}
	return fmt.Sprintf("%s until %s: %s", strings.Join(of, ", "), b.Until.Format(time.RFC3339), quoted(b.Reason))
}

// words says what an exception lets through, or stops, for whom, until when and why.
func (e *grantedException) words() string {
	who, until := "client "+e.Client, "until "+e.Expires.Format(time.RFC3339)
	if e.Client == "" {
		who = "all clients"
	}
	if e.Expires.IsZero() {
		until = "until it is ended"
	}
	return fmt.Sprintf("%s%s for %s %s: %s", e.Host, quoted(e.Path), who, until, quoted(e.Reason))
}

// parsePattern takes "https://example.org/api/" or "example.org/api/" apart into
// the hosts and the path pattern that an exception is for. A scheme stands for
// its port.
func parsePattern(text string) (host terms.HostPattern, path string, err error) {
	scheme, rest, named := strings.Cut(text, "://")
	if !named {
		rest = text
	}
	at := strings.IndexByte(rest, '/')
	if at < 0 {
		return host, "", fmt.Errorf("%q names no path\nWrite %q for all of the site", text, text+"/")
	}
	authority := rest[:at]
	if named {
		o, err := rules.ParseOrigin(scheme, strings.TrimPrefix(authority, "*."))
		if err != nil {
			return host, "", fmt.Errorf("%q is no address: %w\nWrite it such as https://example.org/api/", text, err)
		}
		if !strings.HasSuffix(authority, ":"+strconv.Itoa(int(o.Port))) {
			authority += ":" + strconv.Itoa(int(o.Port))
		}
	}
	if host, err = terms.ParseHostPattern(authority); err != nil {
		return host, "", err
	}
	if _, err := terms.NewException(terms.Exception{Patterns: []string{rest[at:]}}); err != nil {
		return host, "", err
	}
	return host, rest[at:], nil
}

// parseFor reads how long something is to last: 30m, 2h or 14d.
func parseFor(text string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	switch {
	case err != nil || d <= 0:
		return 0, fmt.Errorf("--for: %q is no time that something can last"+anotherTime, text)
	case d > most:
		return 0, fmt.Errorf("--for: %s is too long; at most %d days can be granted this way\nWhat is to last is written into proxy.toml", text, most/(24*time.Hour))
	}
	return d, nil
}

// checkReason returns an error for a reason that nobody could read later.
func checkReason(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("--reason is needed: the record quotes it, such as --reason 'outage of the shop, ticket 4711'")
	case len(text) > maxReason:
		return fmt.Errorf("--reason: at most %d octets are kept", maxReason)
	}
	return nil
}
