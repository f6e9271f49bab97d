package command

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/ca"
	"heed/internal/terms"
	"heed/proxy"
	"heed/rules"
)

const (
	maxRuns        = 256              // at one time
	maxJoin        = 8 << 20          // bytes of a join: CA files travel in it
	runDrain       = 2 * time.Second  // for exchanges still open when a run's command has ended
	streamPatience = 10 * time.Second // for a run that does not read its log
)

// session is a run that joined: a listener and a proxy of its own.
type session struct {
	id     string
	listen string
	proxy  *proxy.Proxy
	ways   *runWays
	tally  *audit.Tally
	log    *audit.Log // onto the stream; nil when it was not asked for

	evidence *store.Writer // the run's own record; nil when it was not asked for
	recorded string        // where that is
	stream   *stream
	done     chan struct{} // closed by endRun
}

// postRun joins a run. Its proxy lives as long as the answer does: until the
// run asks for its end, goes away however it does, or heed stops.
func (d *daemon) postRun(w http.ResponseWriter, r *http.Request) {
	var j join
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJoin)).Decode(&j); err != nil {
		answer(w, http.StatusBadRequest, &refusedJoin{Message: "a join that cannot be read: " + err.Error()})
		return
	}
	s, err := d.openRun(&j, &stream{w: w})
	if err != nil {
		var refused *refusedJoin
		if !errors.As(err, &refused) {
			refused = &refusedJoin{Message: err.Error()}
		}
		answer(w, http.StatusConflict, refused)
		return
	}
	_ = s.stream.send(streamLine{Joined: d.joined(s)}) // who cannot read it has gone: the context says so
	if s.log != nil {
		go s.log.Run(r.Context())
	}
	go s.stream.pump()
	select {
	case <-r.Context().Done():
	case <-s.done:
	case <-d.stopping:
	}
	d.closeRun(s)
	if s.log != nil {
		s.log.Close("heed: cut off, since the run has ended")
	}
	s.closeEvidence(d.log)
	summary := s.tally.Summary()
	s.stream.close(streamLine{Summary: &summary})
}

// openRun makes the run's proxy and serves on it.
func (d *daemon) openRun(j *join, out *stream) (*session, error) {
	asked, err := j.terms()
	if err != nil {
		return nil, err
	}
	if err := d.admit(j); err != nil {
		return nil, err
	}
	d.changing.Lock() // between here and enter, no reload knows of the run
	defer d.changing.Unlock()
	ways := &runWays{way: j.Way}
	if err := ways.take(d.current().ways); err != nil {
		d.leave(nil)
		return nil, err
	}
	s := &session{id: audit.NewID().String(), ways: ways, tally: &audit.Tally{}, stream: out, done: make(chan struct{})}
	l, err := d.openProxy(s, j, asked)
	if err != nil {
		s.closeEvidence(d.log)
		ways.giveAll()
		d.leave(nil)
		return nil, err
	}
	d.enter(s)
	go d.serveRun(s, l)
	return s, nil
}

// openProxy makes the proxy of s, with its record and the place where it listens.
func (d *daemon) openProxy(s *session, j *join, asked terms.Run) (net.Listener, error) {
	var err error
	if s.evidence, err = d.openRunEvidence(j.Audit); err != nil {
		return nil, err
	}
	if s.evidence != nil {
		s.recorded = j.Audit.File
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		s.listen = l.Addr().String()
		s.proxy, err = proxy.New(d.proxyConfig(s, j, asked))
	}
	if err != nil {
		return nil, fmt.Errorf("no proxy for the run: %w", err)
	}
	return l, nil
}

func (d *daemon) serveRun(s *session, l net.Listener) {
	if err := s.proxy.Serve(l); err != nil {
		d.log.Error("the listener of a run ended", "listen", s.listen, "error", err)
	}
}

// proxyConfig is the shared proxy's, with what is the run's own.
func (d *daemon) proxyConfig(s *session, j *join, asked terms.Run) proxy.Config {
	c := d.shared
	s.stream.open()
	c.Announce = func(sentence string) {
		d.log.Info(sentence, "listen", s.listen)
		s.stream.notice(sentence)
	}
	var own recorders
	if j.Log {
		s.log = audit.NewLog(slog.NewJSONHandler(visible{s.stream}, nil), nil)
		own = append(own, s.log) // first: what it refuses is no decision for the others
	}
	if s.evidence != nil {
		own = append(own, s.evidence)
	}
	c.Recorder = append(own, d.shared.Recorder, s.tally)
	c.Live = d.book.ofRun(asked, s.ways.of)
	c.Settings = *c.Live()
	return c
}

// closeRun lets the run's exchanges end within a moment, then ends them.
func (d *daemon) closeRun(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), d.runDrain())
	defer cancel()
	if err := s.proxy.Shutdown(ctx); err != nil {
		d.log.Debug("exchanges of a run were cut off", "listen", s.listen)
	}
	d.leave(s) // first: then no reload takes a way for it any more
	s.ways.giveAll()
}

func (d *daemon) joined(s *session) *joined {
	status := d.status()
	return &joined{
		ID: s.id, Listen: s.listen, Own: append(status.Listeners, status.Runs...), Daemon: d.info(),
		CA: d.current().cfg.HTTPS, CADays: status.CA.DaysLeft, Unjudged: status.Unjudged,
	}
}

// rootsPEM returns every root that clients are to trust now: while the CA is
// being renewed there are two.
func rootsPEM(a *ca.Authority) string {
	var text bytes.Buffer
	for _, r := range a.Roots() {
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: r.Cert.Raw}) // memory takes it
	}
	return text.String()
}

// recorders record one after the other.
type recorders []proxy.Recorder

// Decided asks all; when one fails, the decision becomes a refusal, and all the
// others are told so: those who took the decision already, and those who were
// to come.
func (all recorders) Decided(e *audit.Entry) error {
	for i, r := range all {
		if err := r.Decided(e); err != nil {
			e.Decision, e.Detail = rules.Decision{Reason: rules.ReasonRecord}, err.Error()
			all[:i].Ended(e)
			for _, later := range all[i+1:] {
				if later.Decided(e) == nil {
					later.Ended(e)
				}
			}
			return err
		}
	}
	return nil
}

// Ended tells all.
func (all recorders) Ended(e *audit.Entry) {
	for _, r := range all {
		r.Ended(e)
	}
}
