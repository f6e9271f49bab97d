package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// Environment variables that make this program something else than the benchmark:
// the load generator, or a proxy to compare heed with.
const (
	roleVariable     = "HEED_BENCH_ROLE"
	settingsVariable = "HEED_BENCH_SETTINGS" // of a proxy, JSON
)

// roles are what this program can be besides the benchmark.
var roles = map[string]func() error{
	"load":          serveLoad,
	"goproxy":       shippedGoproxy,
	"goproxy-tuned": tunedGoproxy,
	"reverseproxy":  bareReverseProxy,
	"relay":         bareRelay,
	"icap-204":      icap204,
}

// runRole runs the role that the environment names. It reports false if there is
// none.
func runRole() (status int, ran bool) {
	role := os.Getenv(roleVariable)
	if role == "" {
		return 0, false
	}
	run, ok := roles[role]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s is %q\n", roleVariable, role)
		return 1, true
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// proxySettings are what a proxy of this program needs.
type proxySettings struct {
	Listen          string
	CACert, CAKey   string // PEM files, for intercepted connections
	Hosts           string // file in the form of /etc/hosts
	Site            string // the address of the site's plain http
	ConnectionLimit int    // of idle connections to one site
}

// roleCommand is the command of a proxy of this program, which trusts the CAs in the
// PEM file siteRoots.
func roleCommand(ctx context.Context, binary, role, siteRoots string, settings proxySettings) (*exec.Cmd, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(inheritedEnv(), roleVariable+"="+role, settingsVariable+"="+string(text), "SSL_CERT_FILE="+siteRoots)
	return cmd, nil
}

func readSettings() (s proxySettings, err error) {
	err = json.Unmarshal([]byte(os.Getenv(settingsVariable)), &s)
	return s, err
}

// inheritedEnv is what all contenders get of the environment: enough to run, and the
// settings of the Go runtime.
func inheritedEnv() (env []string) {
	for _, name := range []string{"PATH", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
