package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// job is the order to the load generator, over its standard input. It opens its
// connections, sends one request on each, answers ready, and waits for go. Then it
// sends requests for Duration, or Count of them, answers with a result, and holds its
// connections until the order to close them.
type job struct {
	Proxy    string // host:port
	Roots    string // PEM, of the CA that signs for intercepted sites
	Target   string // URL; with %d: the number of the target
	Targets  int64  // used one after the other
	First    int64  // the first of them
	Status   int
	Size     int // of the body; -1: it is not compared
	Mode     string
	Conns    int
	Duration time.Duration
	Count    int64   // instead of Duration
	Rate     float64 // requests per second, all connections together; 0: as many as it can
}

// result is what the load generator measured. The requests before go are not counted
// in Requests, but their wrong answers are in Wrong.
type result struct {
	Requests   int64
	Wrong      int64
	FirstWrong string
	Resumed    int64 // TLS sessions
	Reopened   int64 // connections that the proxy closed between two requests
	Elapsed    time.Duration
	P50, P99   time.Duration // of the time to answer
}

// Lines between the two processes besides the JSON of job and result.
const (
	sayReady = "ready"
	sayGo    = "go"
	sayClose = "close"
)

// generator is the load generator's process.
type generator struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
	end io.Closer
}

// startGenerator starts cmd, which runs this program, as a load generator.
func startGenerator(cmd *exec.Cmd) (*generator, error) {
	cmd.Env = append(os.Environ(), roleVariable+"=load")
	cmd.Stderr = os.Stderr
	notOrphaned(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &generator{cmd: cmd, in: json.NewEncoder(in), out: json.NewDecoder(out), end: in}, cmd.Start()
}

// prepare sends a job and waits until its connections are open.
func (g *generator) prepare(j job) error {
	if err := g.in.Encode(j); err != nil {
		return err
	}
	var said string
	if err := g.out.Decode(&said); err != nil {
		return err
	}
	if said != sayReady {
		return fmt.Errorf("the load generator cannot open its connections: %s", said)
	}
	return nil
}

// run runs the prepared job.
func (g *generator) run() (r result, err error) {
	if err := g.in.Encode(sayGo); err != nil {
		return r, err
	}
	return r, g.out.Decode(&r)
}

// release closes the connections of the job.
func (g *generator) release() error { return g.in.Encode(sayClose) }

// do runs a whole job.
func (g *generator) do(j job) (result, error) {
	if err := g.prepare(j); err != nil {
		return result{}, err
	}
	r, err := g.run()
	if err != nil {
		return r, err
	}
	return r, g.release()
}

func (g *generator) stop() error {
	g.end.Close()
	return g.cmd.Wait()
}
