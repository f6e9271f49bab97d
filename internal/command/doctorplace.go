package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	doctorPatience = 2 * time.Minute // for one fetch, or one preparation, on a busy machine
	doctorWidth    = 2               // runtimes tried at once
	doctorDomain   = ".doctor.test"  // below which each runtime has a host of its own; RFC 6761 §6.2 keeps it from being anybody's
)

// trial is one fetch.
type trial struct {
	scheme, path string
	status       int    // exit status; -1 when it did not end by itself
	said         string // on stdout and stderr
}

// trials are what each runtime is asked to fetch.
func trials() []trial {
	return []trial{
		{scheme: "http", path: allowedPath},
		{scheme: "http", path: refusedPath}, // before https: a tunnel, which Node uses for http too, waits after a failed handshake
		{scheme: "https", path: allowedPath},
		{scheme: "https", path: refusedPath},
	}
}

// examine tries the patients in a place of their own, which is gone afterwards.
func examine(ctx context.Context, a *App, patients []patient) (found []diagnosis, err error) {
	dir, err := os.MkdirTemp("", "heed-doctor-")
	if err != nil {
		return nil, fmt.Errorf("there is no place to try in: %w\nSet TMPDIR to a directory that you may write to", err)
	}
	defer os.RemoveAll(dir)
	site, err := openDoctorSite(filepath.Join(dir, "site"), a.Now)
	if err != nil {
		return nil, err
	}
	defer site.close()
	state, config := filepath.Join(dir, "state"), filepath.Join(dir, configName)
	if err := errors.Join(os.Mkdir(state, 0o700), os.WriteFile(config, site.config(patients), 0o600)); err != nil {
		return nil, err
	}
	cfg, err := Load(config, a.Defaults)
	if err != nil {
		return nil, err
	}
	m, err := joinOrStart(ctx, state, cfg.File, &join{Version: Version(), Config: cfg.JoinHash(), Asked: true, Log: true})
	if err != nil {
		return nil, err
	}
	defer endHeed(m, state)
	environ, err := doctorEnviron(a, m, state)
	if err != nil {
		return nil, err
	}
	var record bytes.Buffer // whole when the run has been finished
	reader := readStream(m, &record, io.Discard, false)
	tried := tryAll(ctx, patients, dir, environ, a.Environ)
	if reader.finish(m) == nil {
		return nil, errors.New("the heed that was to judge ended before the runtimes had been tried\nTry again")
	}
	judged := judgedOf(&record)
	for i := range patients {
		found = append(found, patients[i].diagnose(tried[i], site, judged))
	}
	return found, nil
}

// endHeed leaves the heed that judged, which nobody else uses, and waits for its end.
func endHeed(m *membership, state string) {
	m.leave()
	ctx, cancel := context.WithTimeout(context.Background(), goPatience)
	defer cancel()
	m.client.retire(ctx)
	if lock, err := lockState(state, goPatience); err == nil {
		lock.release()
	}
}

// doctorEnviron is the environment that heed run would give.
func doctorEnviron(a *App, m *membership, state string) ([]string, error) {
	authority, err := openCA(&Config{HTTPS: m.CA}, state, a.Now)
	if err != nil {
		return nil, err
	}
	files, err := MakeClientFiles(state, authority, Inspect(a.Environ, state), a.Now())
	if err != nil {
		return nil, err
	}
	return setVariable(ClientEnviron(a.Environ, m.Listen, files), "GIT_TERMINAL_PROMPT", "0"), nil
}

// tryAll has every patient do its fetches, a few at a time.
func tryAll(ctx context.Context, patients []patient, dir string, environ, bare []string) [][]trial {
	tried := make([][]trial, len(patients))
	slots := make(chan struct{}, doctorWidth)
	var all sync.WaitGroup
	for i := range patients {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			tried[i] = patients[i].try(ctx, filepath.Join(dir, fmt.Sprint("runtime", i)), environ, bare)
		})
	}
	all.Wait()
	return tried
}

// try prepares the patient in dir and has it fetch.
func (p *patient) try(ctx context.Context, dir string, environ, bare []string) []trial {
	done := trials()
	if err := p.prepare(ctx, dir, bare); err != nil {
		done[0].status, done[0].said = -1, err.Error()
		return done[:1]
	}
	for i := range done {
		t := &done[i]
		address := url.URL{Scheme: t.scheme, Host: p.host(), Path: t.path}
		t.status, t.said = execute(ctx, dir, environ, p.line(dir, address.String()))
	}
	return done
}

// prepare writes and builds the program that fetches, where there is one to build.
func (p *patient) prepare(ctx context.Context, dir string, environ []string) error {
	if p.source == "" {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, p.sourceName), []byte(p.source), 0o600); err != nil {
		return err
	}
	if status, said := execute(ctx, dir, environ, p.build); status != 0 {
		return fmt.Errorf("%s: %s", strings.Join(p.build, " "), said)
	}
	return nil
}

// execute runs a command line and returns its exit status and all it said.
func execute(ctx context.Context, dir string, environ, line []string) (status int, said string) {
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = environ
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		cmd.Dir = dir
	}
	cmd.WaitDelay = time.Second // for what it started and left behind
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// judgedAs is one line of heed's record, as far as it is asked for.
type judgedAs struct {
	Method, URL, Verdict, Reason string
}

func judgedOf(record io.Reader) []judgedAs {
	var all []judgedAs
	for d := json.NewDecoder(record); ; {
		var j judgedAs
		if err := d.Decode(&j); err != nil { // the end: these lines are heed's own
			return all
		}
		all = append(all, j)
	}
}
