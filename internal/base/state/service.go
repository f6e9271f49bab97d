package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"heed/internal/base/ownfile"
	"heed/internal/base/safetext"
)

// ServiceDir is the state directory of the heed that a package installs as a service.
const ServiceDir = "/var/lib/heed"

// search is how the state directory of a command is found.
type search struct {
	getenv  func(string) string
	home    func() (string, error)
	goos    string
	service string   // ServiceDir
	args    []string // of the command, for advice
}

func thisSearch() search {
	return search{os.Getenv, os.UserHomeDir, runtime.GOOS, ServiceDir, os.Args[1:]}
}

// Find returns the state directory of a command that concerns an existing heed or its
// record. It is that of Dir, which need not be there or be writable then, except for a user
// who has none and has not set HEED_STATE, on a machine where heed is installed as a service:
// then it is ServiceDir, which is written to say. It is an error, which names the user to run
// the command as, when this user may not read it.
func Find(say io.Writer) (string, error) { return thisSearch().find(say) }

func (s search) find(say io.Writer) (string, error) {
	service, err := s.serviceDir()
	if err != nil {
		return "", err
	}
	if service != "" {
		fmt.Fprintln(say, "heed: using the state directory of the service,", service)
		return service, nil
	}
	own, err := statePath(s.getenv, s.home, s.goos)
	if err != nil {
		return "", errors.New("this user has no home directory, and so no heed of its own\nName the state directory of the running heed: HEED_STATE=" + ServiceDir + " heed " + s.command())
	}
	if _, err := os.Lstat(own); err == nil {
		return own, checkState(own)
	}
	return own, nil // it is not made: nothing is written there
}

// Service returns ServiceDir when Find would use it, or would if this user could read it;
// otherwise "".
func Service() string {
	s := thisSearch()
	if service, err := s.serviceDir(); service != "" || err != nil {
		return s.service
	}
	return ""
}

// ServiceAdvice returns, for an error about a state directory of this user, a line on how to
// run the same command for the service, with a newline before it; "" when there is no
// service, or dir belongs to it.
func ServiceAdvice(dir string) string { return thisSearch().advice(dir) }

// serviceDir returns the state directory of the service when this user has none. The error
// is that it may not be read.
func (s search) serviceDir() (string, error) {
	if s.getenv("HEED_STATE") != "" {
		return "", nil
	}
	if own, err := statePath(s.getenv, s.home, s.goos); err == nil {
		if _, err := os.Lstat(own); !errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
	}
	owner := s.owner()
	if owner == "" {
		return "", nil
	}
	if _, err := os.ReadDir(s.service); err != nil {
		return "", fmt.Errorf("this user has no state directory, and may not read that of the service, %s\nRun: sudo -u %s heed %s", s.service, owner, s.command())
	}
	return s.service, nil
}

func (s search) advice(dir string) string {
	owner := s.owner()
	if owner == "" || filepath.Clean(dir) == s.service {
		return ""
	}
	return fmt.Sprintf("\nTo ask the service on this machine, whose state directory is %s: sudo -u %s heed %s", s.service, owner, s.command())
}

// owner returns the user that the state directory of the service belongs to, by name or
// else by number (#1001); "" when there is no such directory.
func (s search) owner() string {
	info, err := os.Stat(s.service)
	if err != nil || !info.IsDir() || s.goos != "linux" {
		return ""
	}
	uid, known := ownfile.Owner(info)
	if !known {
		return ""
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return fmt.Sprintf("'#%d'", uid)
}

// command returns the words of the command for a shell.
func (s search) command() string {
	var words []string
	for _, word := range s.args {
		words = append(words, safetext.ShellQuote(word))
	}
	return strings.Join(words, " ")
}
