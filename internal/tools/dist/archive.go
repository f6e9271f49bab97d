package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// makeRelease makes an archive for each target, the packages, and SHA256SUMS.
func (j *job) makeRelease() error {
	var made []string
	for _, t := range j.targets {
		program, err := j.build(t)
		if err != nil {
			return err
		}
		path, err := j.makeArchive(t, program)
		if err != nil {
			return err
		}
		made = append(made, path)
		if t.os != "linux" {
			continue
		}
		if path, err = j.makeDeb(t, program); err != nil {
			return err
		}
		made = append(made, path)
	}
	slices.Sort(made)
	var sums strings.Builder
	for _, path := range made {
		s, err := sum(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", s, filepath.Base(path))
	}
	fmt.Print(sums.String())
	return os.WriteFile(filepath.Join(j.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// member is a file of an archive.
type member struct {
	name string
	mode int64
	data []byte
}

// makeArchive writes the archive of t and returns its path: a zip file for Windows,
// otherwise a compressed tar file.
func (j *job) makeArchive(t target, program string) (string, error) {
	members, err := j.members(t, program)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("heed_%s_%s_%s", strings.TrimPrefix(j.release.version, "v"), t.os, t.arch)
	var data []byte
	if t.os == "windows" {
		name += ".zip"
		data, err = zipOf(members, j.release.date)
	} else {
		name += ".tar.gz"
		data, err = tarOf(members, j.release.date)
	}
	if err != nil {
		return "", err
	}
	path := filepath.Join(j.out, name)
	return path, os.WriteFile(path, data, 0o644)
}

func (j *job) members(t target, program string) ([]member, error) {
	all := []member{{"LICENCES", 0o644, j.licences}}
	var errs []error
	add := func(path, name string, mode int64) {
		data, err := os.ReadFile(path)
		errs = append(errs, err)
		all = append(all, member{name, mode, data})
	}
	add(program, t.program(), 0o755)
	add(filepath.Join(j.root, "README.md"), "README.md", 0o644)
	add(filepath.Join(j.root, "proxy.toml"), "proxy.toml", 0o644)
	if t.os != "windows" {
		all = append(all,
			member{manName, 0o644, manPage(j.outline, j.release.version, j.release.date)},
			member{bashName, 0o644, bashCompletion(j.outline)},
			member{zshName, 0o644, zshCompletion(j.outline)})
	}
	return all, errors.Join(errs...)
}

func tarOf(members []member, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, m := range members {
		if err := w.WriteHeader(&tar.Header{Name: "heed/" + m.name, Mode: m.mode, Size: int64(len(m.data)), ModTime: date, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := w.Write(m.data); err != nil {
			return nil, err
		}
	}
	err = errors.Join(w.Close(), z.Close())
	return b.Bytes(), err
}

func zipOf(members []member, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: "heed/" + m.name, Method: zip.Deflate, Modified: date}
		h.SetMode(os.FileMode(m.mode))
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(m.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
