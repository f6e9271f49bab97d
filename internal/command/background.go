package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// How a background heed comes and goes.
const (
	startPatience = 15 * time.Second // from the start of a background heed until it is ready
	joinPatience  = 30 * time.Second // from the first attempt to join until one has succeeded
	goPatience    = 12 * time.Second // for a heed that is about to end
	readyWord     = "ready"          // what a background heed prints when it can be joined
	heldWord      = "held"           // what it prints when another one was first
	idlePatience  = 30 * time.Second // for the next run, before it ends by itself
	backgroundLog = "background.log" // in the state directory
)

// joinOrStart joins the heed of the state directory. When there is none it
// starts one in the background with the settings of configFile, however many
// runs want to at the same time: those who ask while another starts it wait
// and join.
func joinOrStart(ctx context.Context, state, configFile string, j *join) (*membership, error) {
	c := newControlClient(state)
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	for ctx.Err() == nil {
		m, err := c.join(ctx, j)
		var refused *refusedJoin
		switch {
		case err == nil:
			return m, nil
		case errors.Is(err, errNotRunning):
		case errors.As(err, &refused) && (refused.Again || refused.Retire && c.retire(ctx)):
		default:
			return nil, err
		}
		if err := startOnce(ctx, state, configFile); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no heed could be joined in %s within %v\nSee %s", state, joinPatience, filepath.Join(state, backgroundLog))
}

// startOnce starts a background heed unless one answers. One process at a time
// is past the lock, and looks again there.
func startOnce(ctx context.Context, state, configFile string) error {
	gate, err := os.OpenFile(filepath.Join(state, "start.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the state directory cannot be locked: %w\nMake it writable, or set HEED_STATE to another place", err)
	}
	defer gate.Close()
	if err := waitLock(gate); err != nil {
		return fmt.Errorf("the state directory cannot be locked: %w\nSet HEED_STATE to a directory on a local file system", err)
	}
	if status, err := readStatus(ctx, state); err == nil && !status.Ending {
		return nil
	}
	return startBackground(ctx, state, configFile)
}

// startBackground starts this program once more, detached, as the heed that
// runs join, and waits until it is ready.
func startBackground(ctx context.Context, state, configFile string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("heed does not find its own program: %w\nStart it yourself with `heed serve`", err)
	}
	log, err := os.OpenFile(filepath.Join(state, backgroundLog), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the log of the background heed cannot be written: %w\nMake the state directory writable, or set HEED_STATE to another place", err)
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	args := []string{"serve", "--background"}
	if configFile != "" {
		args = append(args, "--config", configFile)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = backgroundEnviron(os.Environ(), state)
	cmd.Dir = state                     // not the user's directory, which may have to go
	cmd.Stdout, cmd.Stderr = write, log // what it says before it is ready goes to the pipe, a crash to the log
	detach(cmd)
	err = cmd.Start()
	write.Close()
	if err != nil {
		return fmt.Errorf("the background heed cannot be started: %w\nStart it yourself with `heed serve`", err)
	}
	defer cmd.Process.Release() // it outlives this process, which does not wait for it
	return awaitReady(ctx, read, cmd.Process)
}

// awaitReady reads what a background heed says until it is ready.
func awaitReady(ctx context.Context, said *os.File, p *os.Process) error {
	end := time.Now().Add(startPatience)
	if limit, ok := ctx.Deadline(); ok && limit.Before(end) {
		end = limit
	}
	_ = said.SetReadDeadline(end) // pipes know deadlines
	text, err := io.ReadAll(io.LimitReader(said, 16<<10))
	words := strings.TrimSpace(string(text))
	switch {
	case words == readyWord, words == heldWord:
		return nil
	case err != nil:
		_ = p.Kill() // it may have ended since
		return fmt.Errorf("the background heed was not ready in time\nStart it yourself with `heed serve` to see why")
	case words == "":
		return errors.New("the background heed ended before it was ready\nStart it yourself with `heed serve` to see why")
	}
	return errors.New(strings.TrimPrefix(words, "heed: "))
}

// backgroundEnviron is environ without what belongs to one run alone: the
// proxies and CAs it names travel with the run that asks for them.
func backgroundEnviron(environ []string, state string) []string {
	own := namesOf(proxyURL, overProxy, nothing, overEmpty, bundle, overBundle)
	own = append(own, "SSL_CERT_DIR", "HEED_STATE")
	environ = slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(own, name)
	})
	return append(environ, "HEED_STATE="+state)
}
