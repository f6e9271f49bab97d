package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/config/clientenv"
	"heed/internal/control"
	"heed/internal/daemon/run"
	"heed/internal/output/console"
	"heed/internal/trust/ca"
)

const (
	doctorTimeout = 2 * time.Minute // for one fetch, on a busy machine
	doctorHost    = "doctor.test"   // RFC 6761 §6.2 reserves .test
)

// trial is one fetch.
type trial struct {
	scheme, path string
	status       int    // exit status; -1 when it was killed or did not start
	output       string // stdout and stderr
}

// trials are the fetches of a command.
var trials = []trial{
	{scheme: "http", path: allowedPath},
	{scheme: "http", path: refusedPath}, // before https: a tunnel, which Node uses for http too, waits after a failed handshake
	{scheme: "https", path: allowedPath},
	{scheme: "https", path: refusedPath},
}

// examine tries a command with a separate heed and site, in a temporary directory that it
// removes.
func examine(ctx context.Context, a *console.App, args []string) (found *diagnosis, err error) {
	dir, err := os.MkdirTemp("", "heed-doctor-")
	if err != nil {
		return nil, fmt.Errorf("the temporary directory cannot be created: %w\nSet TMPDIR to a directory that you may write to", err)
	}
	defer os.RemoveAll(dir)
	site, err := openDoctorSite(filepath.Join(dir, "site"), a.Now)
	if err != nil {
		return nil, err
	}
	defer site.close()
	state, settings := filepath.Join(dir, "state"), filepath.Join(dir, config.FileName)
	if err := errors.Join(os.Mkdir(state, 0o700), os.WriteFile(settings, site.config(), 0o600)); err != nil {
		return nil, err
	}
	cfg, err := config.Load(settings, a.Defaults)
	if err != nil {
		return nil, err
	}
	m, err := run.JoinOrStart(ctx, state, cfg.File, &control.JoinRequest{Version: console.Version(), Config: cfg.JoinHash(), Asked: true, Log: true})
	if err != nil {
		return nil, err
	}
	defer endHeed(m, state)
	environ, err := run.ClientEnviron(a, m, state, clientenv.Inspect(a.Environ, state))
	if err != nil {
		return nil, err
	}
	environ = clientenv.SetVariable(environ, "GIT_TERMINAL_PROMPT", "0")
	var record bytes.Buffer // whole when the run has been finished
	finish := run.ReadStream(m, &record, io.Discard, false)
	tried := slices.Clone(trials)
	for i := range tried {
		t := &tried[i]
		t.status, t.output = execute(ctx, environ, line(args, t.scheme+"://"+doctorHost+t.path))
	}
	if finish(nil) == nil {
		return nil, errEnded
	}
	return diagnose(args, tried, site, judgedOf(&record)), nil
}

// endHeed leaves the heed that judged, which has no other client, and waits until it
// has exited.
func endHeed(m *control.RunClient, stateDir string) {
	m.Leave()
	ctx, cancel := context.WithTimeout(context.Background(), control.ExitTimeout)
	defer cancel()
	m.Client.Retire(ctx)
	if lock, err := state.Acquire(stateDir, control.ExitTimeout); err == nil {
		lock.Release()
	}
}

// line returns a command line with an address in place of {}, or at its end.
func line(args []string, address string) []string {
	if !slices.ContainsFunc(args, func(word string) bool { return strings.Contains(word, "{}") }) {
		return append(slices.Clone(args), address)
	}
	out := make([]string, len(args))
	for i, word := range args {
		out[i] = strings.ReplaceAll(word, "{}", address)
	}
	return out
}

// diagnose evaluates the fetches of a command.
func diagnose(args []string, tried []trial, site *doctorSite, judged []judgedRequest) *diagnosis {
	d := &diagnosis{Name: console.Truncated(strings.Join(args, " "), 40)}
	d.ProxyHTTP = site.requested("http", allowedPath)
	d.ProxyHTTPS = slices.ContainsFunc(judged, func(j judgedRequest) bool {
		return strings.HasPrefix(j.URL, "https://"+doctorHost) || strings.HasPrefix(j.URL, doctorHost+":443")
	})
	d.Refusal = d.ProxyHTTP
	for _, t := range tried {
		switch {
		case t.scheme == "https" && t.path == allowedPath:
			d.Trusted = t.status == 0 && site.requested(t.scheme, t.path)
		case t.path == refusedPath && (t.scheme == "http" || d.Trusted):
			d.Refusal = d.Refusal && t.status != 0 && !site.requested(t.scheme, t.path) && refusedByRule(judged, t.scheme+"://"+doctorHost+t.path)
		}
	}
	d.Missing = d.missing(args)
	if i := slices.IndexFunc(tried, func(t trial) bool { return (t.status != 0) == (t.path == allowedPath) }); i >= 0 && !d.well() {
		lines := strings.Split(strings.TrimSpace(tried[i].output), "\n")
		d.LastLine = console.Quoted(lines[len(lines)-1])
	}
	return d
}

func refusedByRule(judged []judgedRequest, address string) bool {
	return slices.ContainsFunc(judged, func(j judgedRequest) bool {
		return strings.HasPrefix(j.URL, address) && j.Verdict == "refuse" && j.Reason == "rule"
	})
}

// execute runs a command line and returns its exit status and its output. The status
// is -1 when it was killed or did not start.
func execute(ctx context.Context, environ, line []string) (status int, output string) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = environ
	cmd.WaitDelay = time.Second // for children that hold its output open
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// judgedRequest contains the fields of one line of heed's log that a diagnosis
// needs.
type judgedRequest struct {
	URL, Verdict, Reason string
}

// judgedOf parses the log of a heed.
func judgedOf(record io.Reader) []judgedRequest {
	var all []judgedRequest
	for d := json.NewDecoder(record); ; {
		var j judgedRequest
		if err := d.Decode(&j); err != nil { // the end: heed writes valid lines
			return all
		}
		all = append(all, j)
	}
}

// The pages of the doctor's site. All paths below them are answered alike, for git.
const (
	allowedPath = "/allowed"
	refusedPath = "/refused"
)

// doctorSite is a site on a loopback address, over http and https, that serves
// any host and records the requests. Its certificates are signed by its own
// authority.
type doctorSite struct {
	authority *ca.Authority
	http      net.Listener
	https     net.Listener
	server    *http.Server

	mu   sync.Mutex
	hits []string // scheme://host/path
}

// openDoctorSite starts a site. It creates dir for the files of its authority.
func openDoctorSite(dir string, now func() time.Time) (*doctorSite, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	authority, err := ca.Open(dir, now)
	if err != nil {
		return nil, err
	}
	s := &doctorSite{authority: authority}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: doctorTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	if s.http, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if s.https, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, s.http.Close())
	}
	secure := tls.NewListener(s.https, &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return authority.Leaf(strings.ToLower(hello.ServerName))
	}})
	go s.serve(s.http)
	go s.serve(secure)
	return s, nil
}

// serve serves until the site is closed; a listener on loopback does not fail before.
func (s *doctorSite) serve(l net.Listener) { _ = s.server.Serve(l) }

func (s *doctorSite) close() { _ = s.server.Close() }

// ServeHTTP answers all hosts in the same way.
func (s *doctorSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	s.mu.Lock()
	s.hits = append(s.hits, scheme+"://"+r.Host+r.URL.Path)
	s.mu.Unlock()
	switch {
	case r.URL.Path == "/robots.txt":
		fmt.Fprint(w, "User-agent: *\nDisallow: "+refusedPath+"\n")
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		fmt.Fprint(w, strings.Repeat("0123456789", 4)+"\trefs/heads/main\n")
	default:
		fmt.Fprintln(w, "a page of heed doctor")
	}
}

// requested reports whether a page, or one below it, was requested.
func (s *doctorSite) requested(scheme, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.hits, func(hit string) bool { return strings.HasPrefix(hit, scheme+"://"+doctorHost+path) })
}

// config returns the proxy.toml of a heed that reaches the site and trusts its authority.
func (s *doctorSite) config() []byte {
	return fmt.Appendf(nil, "[access]\nprivate_destinations = \"allow\"\n[upstream]\nca_file = %q\n[upstream.resolve]\n\"%s:80\" = %q\n\"%[2]s:443\" = %[4]q\n",
		s.authority.CertPath(), doctorHost, s.http.Addr(), s.https.Addr())
}
