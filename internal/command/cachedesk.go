package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"heed/cache"
	"heed/internal/fleet"
	"heed/rules"
)

// heldLine is what is kept of one origin, for one kind of client, as `heed
// cache` shows it.
type heldLine struct {
	Origin    string    `json:"origin"`
	For       string    `json:"for,omitempty"` // which clients; empty: all
	Way       string    `json:"way,omitempty"` // which way to the site; empty: that of the settings
	State     string    `json:"state"`         // available, stale, unavailable or unreachable
	Why       string    `json:"why"`
	Status    int       `json:"status,omitempty"`
	FetchedAt time.Time `json:"fetched_at"` // or confirmed, or tried
	NextAt    time.Time `json:"next_at"`    // when the site is asked again, at the next request from then on
	WaitAt    time.Time `json:"wait_at"`    // from when on that request waits for the answer
	Failures  int       `json:"failures,omitempty"`
	Bytes     int       `json:"bytes"` // of memory
	Shared    bool      `json:"shared,omitempty"`

	// Of show alone. The text is what was received, without its coding.
	Snapshot *rules.Snapshot `json:"snapshot,omitempty"`
	Text     *string         `json:"text,omitempty"` // nil: it is not kept
	Cut      bool            `json:"text_cut,omitempty"`
}

// maxShown is how much of a robots.txt is shown, in bytes.
const maxShown = 512 << 10

// cacheDesk answers `heed cache`.
type cacheDesk interface {
	// list calls each with all that is in memory, in no order, until it fails.
	list(ctx context.Context, each func(*heldLine) error) error
	// show returns what is kept of a host or an origin, with its text.
	show(ctx context.Context, what string) ([]*heldLine, error)
	// text returns the robots.txt kept of an origin, or of the one of a host's
	// that has one, as the site sent it but for its coding; nil: none is kept.
	text(ctx context.Context, what string) ([]byte, error)
	// purge forgets a host or an origin and returns the origins it knew.
	purge(ctx context.Context, what string) ([]string, error)
	// warm has the policy of an origin at hand, fetched if need be.
	warm(ctx context.Context, origin string) (*heldLine, error)
}

// waysDesk is the desk for ways to the sites of this process, the one of the
// settings first.
type waysDesk struct {
	ways   []*egress
	shared *fleet.Policies // list is of these; nil: of memory
}

func (k *waysDesk) list(ctx context.Context, each func(*heldLine) error) error {
	if k.shared != nil {
		return k.listShared(ctx, each)
	}
	for i, e := range k.ways {
		for h := range e.policies.Held() {
			if err := each(lineOf(h, k.wayName(i))); err != nil {
				return err
			}
		}
	}
	return nil
}

// listShared lists what the fleet shares, for all clients.
func (k *waysDesk) listShared(ctx context.Context, each func(*heldLine) error) (err error) {
	tags := func(yield func(string) bool) { err = k.shared.Tags(ctx, yield) }
	look := func(tag string) *heldLine {
		o, err := originOf(tag)
		if err != nil {
			return nil
		}
		for _, h := range k.ways[0].policies.Find(o) {
			return lineOf(h, "")
		}
		return nil // it has gone meanwhile
	}
	failed := inOrder(checkWidth, tags, look, func(line *heldLine, _ bool) error {
		if line == nil {
			return nil
		}
		return each(line)
	})
	return errors.Join(failed, err)
}

// wayName tells the ways apart in what is shown.
func (k *waysDesk) wayName(i int) string {
	if i == 0 {
		return ""
	}
	return k.ways[i].key[:8]
}

func (k *waysDesk) show(_ context.Context, what string) ([]*heldLine, error) {
	origins, err := k.origins(what)
	if err != nil {
		return nil, err
	}
	lines := []*heldLine{}
	for _, o := range origins {
		for i, e := range k.ways {
			for _, h := range e.policies.Find(o) {
				line := lineOf(h, k.wayName(i))
				if s, ok := e.policies.Snapshot(o, h); ok {
					line.quote(s)
				}
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// quote has l show the answer that was received, and the beginning of its text.
func (l *heldLine) quote(s *rules.Snapshot) {
	body, err := s.Body()
	if err != nil {
		return // as if it were not kept; a Snapshot that is found is whole
	}
	text := string(body[:min(len(body), maxShown)])
	l.Snapshot, l.Text, l.Cut = s, &text, len(text) < len(body)
}

func (k *waysDesk) text(_ context.Context, what string) ([]byte, error) {
	origins, err := k.origins(what)
	if err != nil {
		return nil, err
	}
	for _, o := range origins {
		for _, e := range k.ways {
			for _, h := range e.policies.Find(o) {
				if s, ok := e.policies.Snapshot(o, h); ok && h.Policy.Source().State == rules.Available {
					return s.Body()
				}
			}
		}
	}
	return nil, nil
}

func (k *waysDesk) purge(ctx context.Context, what string) ([]string, error) {
	origins, err := k.origins(what)
	if err != nil {
		return nil, err
	}
	purged := []string{}
	var untold error
	for _, o := range origins {
		known := false
		for _, e := range k.ways {
			had, err := e.policies.Purge(ctx, o)
			known = known || had
			if err != nil {
				untold = fmt.Errorf("this heed has forgotten %s, but %w: the others could not be told\nTry again when it is back", printable(what), err)
			}
		}
		if known {
			purged = append(purged, o.String())
		}
	}
	return purged, untold
}

func (k *waysDesk) warm(ctx context.Context, origin string) (*heldLine, error) {
	o, err := originOf(origin)
	if err != nil {
		return nil, err
	}
	policies := k.ways[0].policies
	p := policies.Policy(ctx, o, "")
	for _, h := range policies.Find(o) {
		return lineOf(h, ""), nil
	}
	return lineOf(cache.Held{Policy: p, AskAt: p.Source().RetryAt, WaitAt: p.Source().RetryAt}, ""), nil // given up again already
}

// origins returns what a person may mean by what: an origin, or a host with
// all that is kept of it.
func (k *waysDesk) origins(what string) ([]rules.Origin, error) {
	if strings.Contains(what, "://") {
		o, err := originOf(what)
		return []rules.Origin{o}, err
	}
	var all []rules.Origin
	for _, scheme := range []string{"https", "http"} {
		o, err := rules.ParseOrigin(scheme, what)
		if err != nil {
			return nil, fmt.Errorf("%s is no host: %w", quoted(what), err)
		}
		all = append(all, o)
	}
	if all[0].HostPort() == all[1].HostPort() {
		return all, nil // a port was named
	}
	for _, e := range k.ways {
		for h := range e.policies.Held() {
			if o := h.Policy.Source().Origin; o.Host == all[0].Host && !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// originOf reads an origin or the URL of a page; a host alone means https.
func originOf(text string) (rules.Origin, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return rules.Origin{}, fmt.Errorf("%s is no URL\nWrite a host such as example.org, or https://example.org", quoted(text))
	}
	o, err := rules.OriginOf(u)
	if err != nil {
		return rules.Origin{}, fmt.Errorf("%s: %w\nWrite a host such as example.org, or https://example.org", quoted(text), err)
	}
	return o, nil
}

// lineOf puts h into words.
func lineOf(h cache.Held, way string) *heldLine {
	src := h.Policy.Source()
	line := &heldLine{
		Origin: src.Origin.String(), For: quoted(h.For), Way: way, Status: src.Status, FetchedAt: src.FetchedAt,
		NextAt: h.AskAt, WaitAt: h.WaitAt, Failures: h.Failures, Bytes: h.Bytes, Shared: h.Shared,
	}
	line.State, line.Why = wordsOf(src)
	if src.Note != "" {
		line.Why += "; " + quoted(src.Note)
	}
	if src.RetriedAs != "" {
		line.Why += "; asked as " + quoted(src.RetriedAs)
	}
	return line
}

// wordsOf says what is known of a robots.txt, and why.
func wordsOf(src rules.Source) (state, why string) {
	status := fmt.Sprintf("the site answered %d", src.Status)
	failure := "it cannot be had"
	if src.Err != nil {
		failure = quoted(src.Err.Error())
	}
	switch {
	case src.Stale:
		return "stale", "an old copy stands in: " + failure
	case src.State == rules.Unreachable:
		return "unreachable", failure
	case src.State == rules.Unavailable:
		return "unavailable", status + ": there is no file"
	case src.Status == 304:
		return "available", status + ": the file has not changed"
	}
	return "available", status
}
