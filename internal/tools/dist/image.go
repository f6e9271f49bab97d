package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// The user of the image.
const (
	imagePasswd = "heed:x:65532:65532:heed:/state:/sbin/nologin\n"
	imageGroup  = "heed:x:65532:\n"
)

// systemRoots is where Debian and many others keep the root certificates.
const systemRoots = "/etc/ssl/certs/ca-certificates.crt"

// makeImage writes the directory that the Dockerfile is built in, for linux on the
// processor of this machine or of -targets, and prints how to build the image.
func (j *job) makeImage() error {
	t := target{"linux", runtime.GOARCH}
	if len(j.targets) == 1 {
		t = j.targets[0]
	}
	if t.os != "linux" || !slices.Contains(allTargets, t) {
		return fmt.Errorf("an image is made for linux on amd64 or arm64, not for %v", t)
	}
	program, err := j.build(t)
	if err != nil {
		return err
	}
	dir := filepath.Join(j.out, "image-"+t.arch)
	if err := j.stageImage(dir, program); err != nil {
		return err
	}
	fmt.Printf("docker build --platform %v -t heed %s\nor: buildah build --format docker --platform %v -t heed %s\n", t, dir, t, dir)
	return nil
}

// stageImage writes the files of the image to dir, beside the Dockerfile.
func (j *job) stageImage(dir, program string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	root := filepath.Join(dir, "rootfs")
	put := func(data []byte, err error, mode os.FileMode, name string) error {
		path := filepath.Join(dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, data, mode)
		}
		return err
	}
	copyTo := func(from string, mode os.FileMode, name string) error {
		data, err := os.ReadFile(from)
		return put(data, err, mode, name)
	}
	return errors.Join(
		copyTo(filepath.Join(j.root, "internal", "tools", "dist", "Dockerfile"), 0o644, "Dockerfile"),
		copyTo(program, 0o755, "rootfs/usr/bin/heed"),
		copyTo(systemRoots, 0o644, "rootfs"+systemRoots),
		copyTo(filepath.Join(j.root, "proxy.toml"), 0o644, "rootfs/etc/heed/proxy.toml"),
		put([]byte(imagePasswd), nil, 0o644, "rootfs/etc/passwd"),
		put([]byte(imageGroup), nil, 0o644, "rootfs/etc/group"),
		put(j.licences, nil, 0o644, "rootfs/usr/share/doc/heed/copyright"),
		os.Mkdir(filepath.Join(dir, "state"), 0o700),
		os.Mkdir(filepath.Join(root, "tmp"), 0o777),
	)
}
