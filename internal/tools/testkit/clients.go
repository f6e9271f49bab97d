package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// clientCommands are the programs of Clients: a name to its command line, in
// which $BUILT is the folder of built programs and $SOURCE that of scripts. A JVM that
// fetches one page starts in half the time without the optimising compiler.
var clientCommands = map[string]string{
	"fetch-go":     `"$BUILT/fetch"`,
	"fetch-java":   `java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$BUILT" Fetch`,
	"fetch-node":   `"$NODE" "$SOURCE/fetch.mjs"`,
	"fetch-perl":   `perl "$SOURCE/fetch.pl"`,
	"fetch-python": `python3 "$SOURCE/fetch.py"`,

	"fetch-websocket": `"$NODE" "$SOURCE/websocket.mjs"`,
}

// Clients returns a folder, for the PATH, with programs that fetch a URL in
// the plainest way of their language: fetch-go, fetch-java, fetch-node,
// fetch-perl, fetch-python. Each takes URL [USER-AGENT], prints the page, and
// prints what its library says of a refusal on stderr, with status 1.
// fetch-websocket takes a ws URL and talks with the server. None of them knows
// of a proxy. A language missing on the machine fails the test.
func Clients(t testing.TB) string {
	t.Helper()
	built, err := builtClients()
	if err != nil {
		t.Fatalf("building the client programs: %v; %s", err, cure)
	}
	for _, language := range []string{"java", "perl", "python3"} {
		Program(t, language)
	}
	dir := t.TempDir()
	for name, line := range clientCommands {
		text := fmt.Sprintf("#!/bin/sh\nBUILT='%s' SOURCE='%s' NODE='%s'\nexec %s \"$@\"\n",
			built, filepath.Join(Root(t), clientSources), Node(t), line)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatalf("writing %s: %v", name, err)
		}
	}
	return dir
}

const clientSources = "internal/tools/testkit/testdata/clients"

var builtClients = sync.OnceValues(func() (string, error) {
	top, err := root()
	if err != nil {
		return "", err
	}
	source := filepath.Join(top, clientSources)
	dir := filepath.Join(top, buildFolder)
	if err := goBuild(top, filepath.Join(dir, "fetch"), filepath.Join(source, "fetch.go")); err != nil {
		return "", err
	}
	return dir, javaBuild(filepath.Join(source, "Fetch.java"), dir)
})

// javaBuild compiles one class unless it is there, newer than its source.
func javaBuild(source, dir string) error {
	unlock, err := lockBuilds(dir)
	if err != nil {
		return err
	}
	defer unlock()
	text, err := os.Stat(source)
	if err != nil {
		return err
	}
	class, err := os.Stat(filepath.Join(dir, "Fetch.class"))
	if err == nil && class.ModTime().After(text.ModTime()) {
		return nil
	}
	if out, err := exec.Command("javac", "-d", dir, source).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// Node is the path of a Node that can be set to use proxy variables
// (NODE_USE_ENV_PROXY), installed from npm by the test command.
func Node(t testing.TB) string {
	t.Helper()
	path := filepath.Join(Root(t), ".build/node/bin/node")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("there is no Node in .build; %s", cure)
	}
	return path
}
