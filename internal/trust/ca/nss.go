package ca

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of the search for NSS databases in a home directory.
const (
	maxNSSDepth       = 8 // of directories
	maxNSSDirectories = 20_000
)

// nssFile is the file of an NSS database.
const nssFile = "cert9.db"

// nssRoots are the directories of a home, beside hidden ones, in which programs keep their
// profiles.
var nssRoots = []string{"snap", "Library"}

// nssSkipped are directories without profiles that are often large.
var nssSkipped = []string{".cache", ".git", ".npm", ".cargo", ".rustup", ".gradle", ".m2", "node_modules"}

// family is the programs that share a kind of NSS database.
type family struct {
	name     string
	programs []string // in the PATH
	mark     string   // part of the paths of its databases, in lower case
	create   string   // commands that make one that they read; empty: they make it themselves
}

// families are the known ones.
var families = []family{
	{"Chrome, Chromium", []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "brave-browser", "microsoft-edge", "vivaldi"}, "pki/nssdb",
		"mkdir -p -m 700 ~/.pki/nssdb && certutil -N -d sql:$HOME/.pki/nssdb --empty-password"},
	{"Firefox", []string{"firefox", "firefox-esr"}, "firefox", ""},
	{"Thunderbird", []string{"thunderbird"}, "thunderbird", ""},
}

// nssStores returns the NSS databases in the user's home, and a Store for each browser
// that is installed and has none yet.
func (m Machine) nssStores() []Store {
	if m.home == "" {
		return nil
	}
	dirs, all := m.nssDirectories(maxNSSDirectories)
	var stores []Store
	had := map[string]bool{}
	for _, dir := range dirs {
		name := "another program"
		if i := slices.IndexFunc(families, func(f family) bool { return strings.Contains(strings.ToLower(filepath.ToSlash(dir)), f.mark) }); i >= 0 {
			name = families[i].name
		}
		had[name] = true
		stores = append(stores, m.nssStore(name, dir))
	}
	for _, f := range families {
		i := slices.IndexFunc(f.programs, func(p string) bool { _, err := m.look(p); return err == nil })
		if i >= 0 && !had[f.name] && m.goos != "darwin" { // Chrome has the system's there
			cure := "start " + f.programs[i] + " once, which makes it"
			if f.create != "" {
				cure = f.create
			}
			stores = append(stores, Store{Name: "the NSS database of " + f.programs[i], absent: f.programs[i] + " has none yet", cure: cure + "; then run `heed ca install` again"})
		}
	}
	if !all {
		stores = append(stores, Store{Name: "NSS databases", absent: "the home directory has more directories than are searched", cure: "add the certificate to those that are not named above: certutil -A -d sql:DIR -t C,, -n heed -i \"$(heed ca path)\""})
	}
	return stores
}

// nssDirectories returns the directories of the user's NSS databases, those nearest to the
// home first; all is false when most were searched and there are
// more. Links are followed only in
// the known place of a snap.
func (m Machine) nssDirectories(most int) (dirs []string, all bool) {
	queue, seen := m.nssBeginnings(), map[string]bool{}
	for looked := 0; len(queue) > 0; looked++ {
		if looked == most {
			return dirs, false
		}
		dir := queue[0]
		queue = queue[1:]
		if real, err := filepath.EvalSymlinks(dir); err != nil || seen[real] {
			continue
		} else {
			seen[real] = true
		}
		if info, err := os.Stat(filepath.Join(dir, nssFile)); err == nil && info.Mode().IsRegular() {
			dirs = append(dirs, dir)
		}
		if depth := strings.Count(strings.TrimPrefix(dir, m.home), string(filepath.Separator)); depth >= maxNSSDepth {
			continue
		}
		entries, _ := os.ReadDir(dir) // one that cannot be read has no database of this user's
		for _, e := range entries {
			if e.Type() == fs.ModeDir && !slices.Contains(nssSkipped, e.Name()) {
				queue = append(queue, filepath.Join(dir, e.Name()))
			}
		}
	}
	return dirs, true
}

// nssBeginnings returns the directories in which NSS databases are searched.
func (m Machine) nssBeginnings() []string {
	begin := []string{filepath.Join(m.home, ".pki"), filepath.Join(m.home, ".local", "share", "pki")}
	if data := m.getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		begin = append(begin, filepath.Join(data, "pki"))
	}
	begin = append(begin, filepath.Join(m.home, "snap", "chromium", "current", ".pki"))
	entries, _ := os.ReadDir(m.home) // one that cannot be read has no database of this user's
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") && !slices.Contains(nssSkipped, e.Name())
		if e.Type() == fs.ModeDir && (hidden || slices.Contains(nssRoots, e.Name())) {
			begin = append(begin, filepath.Join(m.home, e.Name()))
		}
	}
	return begin
}
