package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ownLicence is what can be said of heed itself.
const ownLicence = `heed: the owner has stated no licence for heed itself. Without one, copyright law
alone applies: ask the owner before you distribute or change it.

heed contains code of others. What follows are the licences of Go's standard library
and of each module in the program, as their authors distribute them.
`

// licences returns the copyright file: what is known of heed's own licence, and the
// licences of the standard library and of the modules. It is an error when a module has
// none.
func licences(root string, modules []module) ([]byte, error) {
	goroot, err := output(root, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	version, err := output(root, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	modules = append([]module{{Path: "The Go standard library", Version: version, Dir: goroot}}, modules...)
	var b bytes.Buffer
	b.WriteString(ownLicence)
	for _, m := range modules {
		texts, err := licenceFiles(m.Dir)
		if err != nil {
			return nil, err
		}
		if len(texts) == 0 {
			return nil, fmt.Errorf("the module %s %s has no licence file in %s\nFind out under which terms it may be distributed", m.Path, m.Version, m.Dir)
		}
		for _, path := range texts {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "\n%s\n%s %s, %s\n%s\n\n%s\n", line, m.Path, m.Version, filepath.Base(path), line, bytes.TrimSpace(text))
		}
	}
	return b.Bytes(), nil
}

var line = strings.Repeat("-", 78)

// module is a module of the module cache.
type module struct{ Path, Version, Dir string }

// linkedModules returns the modules whose packages are linked into heed for any target,
// sorted by path.
func linkedModules(root string) ([]module, error) {
	found := map[string]module{}
	for _, t := range allTargets {
		cmd := exec.Command("go", "list", "-deps", "-json=Module", ".")
		cmd.Dir, cmd.Stderr = root, os.Stderr
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list, for %v: %w", t, err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct{ Module *module }
			if err := d.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				return nil, fmt.Errorf("go list, for %v: %w", t, err)
			}
			if p.Module != nil && p.Module.Version != "" { // else heed, or the standard library
				found[p.Module.Path] = *p.Module
			}
		}
	}
	var all []module
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// licenceName is the name of a file with a licence, or with a notice that must go with it.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

// licenceFiles returns the files at the top of a module that contain licences, sorted.
func licenceFiles(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() && licenceName.MatchString(e.Name()) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}
