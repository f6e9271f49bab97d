package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"heed/cache"
	"heed/rules"
)

// Who holds the rules that an answer of check rests on.
const (
	byFile  = "file"  // the one of --robots
	byHeed  = "heed"  // the running one, which was asked
	byStore = "store" // a copy that a heed stored and that is fresh
	bySite  = "site"  // the site itself, which was asked just now

	byRecord   = "record"   // the record of the decision
	byOperator = "operator" // a file that the settings put in place of the site's
)

// source says for people whose rules decided and how old they are; empty when
// no rules were looked up.
func (a *judgement) source() string {
	age := a.age().String() + " old"
	switch {
	case a.Robots == "":
		return ""
	case a.By == byFile:
		return "by " + quoted(a.Robots)
	case a.Stale && a.By == byHeed:
		return "by the running heed's copy, " + age + ", since the site cannot be asked"
	case a.Stale:
		return "by a copy " + age + ", since the site cannot be asked"
	case a.By == byOperator:
		return "by the file that the settings name in place of the site's"
	case a.By == byHeed:
		return "by the running heed's copy, " + age
	case a.By == byStore:
		return "by the stored copy, " + age
	}
	return "asked just now"
}

// age is how old the rules are, for people.
func (a *judgement) age() time.Duration {
	return time.Duration(a.Age * float64(time.Second)).Round(time.Second)
}

// policies returns where the rules come from when this process judges: the
// file named, else stored copies that are fresh and the sites.
func (c *CheckCmd) policies(a *App) (policyOf, error) {
	if c.Robots != "" {
		text, err := readRobots(a, c.Robots)
		if err != nil {
			return nil, err
		}
		profile, _ := rules.ParseProfile(c.Profile) // it was checked
		policy := newParsed(profile).of(text)
		return func(_ context.Context, o rules.Origin, _ string) (*rules.Policy, string, string) {
			return policy(o), c.Robots, byFile
		}, nil
	}
	cfg, err := Load(c.Config, a.Defaults)
	if err != nil {
		return nil, err
	}
	var stored *storedCopies
	if !c.Fresh {
		stored = findStored(cfg)
	}
	ways, err := newEgresses(cfg, a.Environ)
	if err != nil {
		return nil, err
	}
	ways.stored = stored
	out, err := ways.take(way{Profile: c.Profile})
	if err != nil {
		return nil, err
	}
	start := a.Now()
	return func(ctx context.Context, o rules.Origin, userAgent string) (*rules.Policy, string, string) {
		slow := time.AfterFunc(time.Second, func() { a.progress("waiting for " + o.RobotsURL()) })
		defer slow.Stop()
		p := out.policies.Policy(ctx, o, userAgent)
		if at := p.Source().FetchedAt; at.Before(start) {
			return p, o.RobotsURL(), byStore
		}
		return p, o.RobotsURL(), bySite
	}, nil
}

func readRobots(a *App, path string) (text string, err error) {
	in := a.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("the robots.txt cannot be read: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, rules.MaxBytes+1))
	if err != nil {
		return "", fmt.Errorf("the robots.txt cannot be read: %w", err)
	}
	return string(data), nil
}

// storedCopies are the policies that a heed stored, to be looked into and left
// as they are. It is safe for concurrent use.
type storedCopies struct {
	path   string         // of the file
	client *controlClient // of the heed that has the file open; nil: nobody has
}

// findStored returns what this user's heed stored; nil when there is no state
// directory.
func findStored(cfg *Config) *storedCopies {
	state, ok := ownState()
	if !ok {
		return nil
	}
	s := &storedCopies{path: cfg.Cache.File}
	if s.path == "" {
		s.path = filepath.Join(state, policiesFile)
	}
	if _, err := readStatus(context.Background(), state); err == nil {
		s.client = newControlClient(state)
	}
	return s
}

// way returns the part that is of one way to the sites.
func (s *storedCopies) way(id string) cache.Keeper {
	if s.client != nil {
		return &heedsCopies{s.client, id}
	}
	return cache.LookInto(s.path, id)
}

// heedsCopies are what a running heed stored of one way.
type heedsCopies struct {
	client *controlClient
	id     string
}

// Load asks that heed. What cannot be had is not there: then the site is asked.
func (h *heedsCopies) Load(key string) (record, snapshot []byte, ok bool) {
	got, err := h.client.stored(context.Background(), &storedKey{h.id, []byte(key)})
	if err != nil || !got.Found {
		return nil, nil, false
	}
	return got.Record, got.Snapshot, true
}

// Save leaves all as it is.
func (h *heedsCopies) Save(string, []byte, []byte) bool { return false }

// Drop leaves all as it is.
func (h *heedsCopies) Drop(string) bool { return false }
