package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// nfpm is the tool that makes packages.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

// packageConfig is the configuration of nfpm. It reads YAML, of which JSON is a part.
type packageConfig struct {
	Name          string            `json:"name"`
	Arch          string            `json:"arch"`
	Platform      string            `json:"platform"`
	Version       string            `json:"version"`
	VersionSchema string            `json:"version_schema"`
	Section       string            `json:"section"`
	Priority      string            `json:"priority"`
	Maintainer    string            `json:"maintainer"`
	Description   string            `json:"description"`
	MTime         time.Time         `json:"mtime"`
	Depends       []string          `json:"depends"`
	Recommends    []string          `json:"recommends"`
	Contents      []packageFile     `json:"contents"`
	Scripts       map[string]string `json:"scripts"`
	Deb           map[string]any    `json:"deb"`
}

// packageFile is a file or a directory of a package.
type packageFile struct {
	Src  string   `json:"src,omitempty"`
	Dst  string   `json:"dst"`
	Type string   `json:"type,omitempty"` // empty: a file; "config": upgrades keep the operator's; "dir"
	Info fileInfo `json:"file_info"`
}

type fileInfo struct {
	Mode  int       `json:"mode"`
	MTime time.Time `json:"mtime"`
}

const description = `forward proxy that makes any HTTP client obey robots.txt
 heed looks up the name of a client, reads what the robots.txt of a site allows
 it, answers 403 when a page is disallowed, and forwards the request unchanged
 otherwise. It handles HTTP and HTTPS, keeps the delays that sites ask for, and
 records every decision.`

// makeDebs makes the packages of the targets on Linux.
func (j *job) makeDebs() error {
	made := 0
	for _, t := range j.targets {
		if t.os == "linux" {
			program, err := j.build(t)
			if err != nil {
				return err
			}
			path, err := j.makeDeb(t, program)
			if err != nil {
				return err
			}
			made++
			fmt.Println(path)
		}
	}
	if made == 0 {
		return errors.New("packages are made for linux, which -targets does not name")
	}
	return nil
}

// makeDeb makes the package of t and returns its path.
func (j *job) makeDeb(t target, program string) (string, error) {
	stage, err := os.MkdirTemp("", "heed-deb-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(stage)
	if err := j.stageDeb(stage); err != nil {
		return "", err
	}
	text, err := json.Marshal(j.packageConfig(t, program, stage))
	if err != nil {
		return "", err
	}
	config := filepath.Join(stage, "nfpm.yaml")
	if err := os.WriteFile(config, text, 0o644); err != nil {
		return "", err
	}
	path := filepath.Join(j.out, "heed_"+j.release.debian()+"_"+t.arch+".deb")
	cmd := exec.Command("go", "run", nfpm, "package", "--config", config, "--packager", "deb", "--target", path)
	cmd.Dir, cmd.Stderr = j.root, os.Stderr
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(j.release.date.Unix(), 10))
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("nfpm: %w", err)
	}
	return path, nil
}

// stageDeb writes the files of the package that are made to dir.
func (j *job) stageDeb(dir string) error {
	changes := fmt.Sprintf("heed (%s) unstable; urgency=medium\n\n  * Built from commit time %s; see the history of the source.\n\n -- %s  %s\n",
		j.release.debian(), j.release.date.Format(time.DateTime), j.maintainer, j.release.date.Format(time.RFC1123Z))
	return errors.Join(
		j.writeDocs(dir),
		os.WriteFile(filepath.Join(dir, "copyright"), j.licences, 0o644),
		writeGzip(filepath.Join(dir, "changelog.gz"), []byte(changes)),
		writeGzip(filepath.Join(dir, "heed.1.gz"), manPage(j.outline, j.release.version, j.release.date)),
	)
}

// writeGzip writes a gzip file whose octets depend only on data.
func writeGzip(path string, data []byte) error {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func (j *job) packageConfig(t target, program, stage string) *packageConfig {
	date := j.release.date
	file := func(src, dst, kind string, mode int) packageFile {
		return packageFile{src, dst, kind, fileInfo{mode, date}}
	}
	debian := func(name string) string { return filepath.Join(j.root, "internal", "tools", "dist", "debian", name) }
	made := func(name string) string { return filepath.Join(stage, name) }
	return &packageConfig{
		Name: "heed", Arch: t.arch, Platform: t.os, Version: j.release.debian(), VersionSchema: "none",
		Section: "net", Priority: "optional", Maintainer: j.maintainer, Description: description, MTime: date,
		Depends:    []string{"init-system-helpers (>= 1.52)", "systemd-standalone-sysusers | systemd"},
		Recommends: []string{"ca-certificates"},
		Contents: []packageFile{
			file(program, "/usr/bin/heed", "", 0o755),
			file(filepath.Join(j.root, "proxy.toml"), "/etc/heed/proxy.toml", "config", 0o644),
			file(debian("heed.service"), "/usr/lib/systemd/system/heed.service", "", 0o644),
			file(debian("heed.sysusers"), "/usr/lib/sysusers.d/heed.conf", "", 0o644),
			file(made(bashName), "/usr/share/bash-completion/completions/heed", "", 0o644),
			file(made(zshName), "/usr/share/zsh/vendor-completions/_heed", "", 0o644),
			file(made("heed.1.gz"), "/usr/share/man/man1/heed.1.gz", "", 0o644),
			file(made("copyright"), "/usr/share/doc/heed/copyright", "", 0o644),
			file(made("changelog.gz"), "/usr/share/doc/heed/changelog.gz", "", 0o644),
		},
		Scripts: map[string]string{"postinstall": debian("postinst"), "preremove": debian("prerm"), "postremove": debian("postrm")},
		Deb:     map[string]any{"compression": "xz"},
	}
}
