package ca

import (
	"os"
	"os/exec"
	"runtime"
)

// Machine is the system and user whose stores are meant.
type Machine struct {
	goos   string
	home   string // of the user, for browsers' databases
	euid   int
	getenv func(string) string
	look   func(program string) (string, error)
	run    runner
}

// ThisMachine is the system this process runs on and the user it acts as.
func ThisMachine() Machine {
	home, _ := os.UserHomeDir() // without a home there are no browsers' databases
	return Machine{
		goos: runtime.GOOS, home: home, euid: os.Geteuid(),
		getenv: os.Getenv, look: exec.LookPath, run: runCommand,
	}
}

// Stores returns the stores found: the system's, the NSS databases of the
// user's browsers, and the one of the Java in JAVA_HOME or else in PATH. A
// store that was found and cannot be changed is among them and says why when
// it is used.
func (m Machine) Stores() []Store {
	stores := m.systemStores()
	if m.goos != "windows" { // where certutil is another program, and Firefox reads the system's store
		stores = append(stores, m.nssStores()...)
	}
	return append(stores, m.javaStores()...)
}
