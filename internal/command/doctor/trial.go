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

// pages are those that a command fetches, http first: a tunnel, which Node uses for http too,
// waits after a failed handshake.
var pages = [...]string{"http://" + doctorHost + allowedPath, "http://" + doctorHost + refusedPath,
	"https://" + doctorHost + allowedPath, "https://" + doctorHost + refusedPath}

// trial is the fetch of one page.
type trial struct {
	status int    // exit status; -1 when it was killed or did not start
	output string // stdout and stderr
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
	var tried [len(pages)]trial
	for i, page := range pages {
		tried[i] = execute(ctx, environ, line(args, page))
	}
	if finish(nil) == nil {
		return nil, errEnded
	}
	return diagnose(args, tried, judgedOf(&record)), nil
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

// diagnose evaluates the fetches of a command by what heed judged.
func diagnose(args []string, tried [len(pages)]trial, judged []judgedRequest) *diagnosis {
	came := func(url, verdict, reason string) bool {
		return slices.ContainsFunc(judged, func(j judgedRequest) bool {
			return strings.HasPrefix(j.URL, url) && (verdict == "" || j.Verdict == verdict) && (reason == "" || j.Reason == reason)
		})
	}
	refused := func(i int) bool { return tried[i].status != 0 && came(pages[i], "refuse", "rule") }
	d := &diagnosis{Name: console.Truncated(strings.Join(args, " "), 40)}
	d.ProxyHTTP = came(pages[0], "allow", "")
	d.ProxyHTTPS = came("https://"+doctorHost, "", "") || came(doctorHost+":443", "", "")
	d.Trusted = tried[2].status == 0 && came(pages[2], "allow", "")
	d.Refusal = d.ProxyHTTP && refused(1) && (!d.Trusted || refused(3))
	d.Missing = d.missing(args)
	for i, t := range tried {
		if allowed := i%2 == 0; (t.status == 0) != allowed && !d.well() {
			lines := strings.Split(strings.TrimSpace(t.output), "\n")
			d.LastLine = console.Quoted(lines[len(lines)-1])
			break
		}
	}
	return d
}

// execute runs a command line.
func execute(ctx context.Context, environ, line []string) trial {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = environ
	cmd.WaitDelay = time.Second // for children that hold its output open
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return trial{-1, err.Error()}
	}
	return trial{cmd.ProcessState.ExitCode(), string(out)}
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

// doctorSite is a site on a loopback address, over http and https, that serves any host.
// Its certificates are signed by its own authority.
type doctorSite struct {
	authority   *ca.Authority
	http, https net.Listener
	server      *http.Server
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
	s := &doctorSite{authority: authority, server: &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: doctorTimeout, ErrorLog: log.New(io.Discard, "", 0)}}
	if s.http, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if s.https, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, s.http.Close())
	}
	secure := tls.NewListener(s.https, &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return authority.Leaf(strings.ToLower(hello.ServerName))
	}})
	for _, l := range []net.Listener{s.http, secure} {
		go s.server.Serve(l) // until it is closed: a listener on loopback does not fail before
	}
	return s, nil
}

func (s *doctorSite) close() { _ = s.server.Close() }

// answer answers all hosts in the same way.
func answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/robots.txt":
		fmt.Fprint(w, "User-agent: *\nDisallow: "+refusedPath+"\n")
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		fmt.Fprint(w, strings.Repeat("0123456789", 4)+"\trefs/heads/main\n")
	default:
		fmt.Fprintln(w, "a page of heed doctor")
	}
}

// config returns the proxy.toml of a heed that reaches the site and trusts its authority.
func (s *doctorSite) config() []byte {
	return fmt.Appendf(nil, "[access]\nprivate_destinations = \"allow\"\n[upstream]\nca_file = %q\n[upstream.resolve]\n\"%s:80\" = %q\n\"%[2]s:443\" = %[4]q\n",
		s.authority.CertPath(), doctorHost, s.http.Addr(), s.https.Addr())
}
