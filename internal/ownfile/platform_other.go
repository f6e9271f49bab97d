//go:build !unix

package ownfile

import (
	"errors"
	"io/fs"
	"os"
)

var errLock = errors.New("this system has no file locks that heed knows")

// TryLock fails: it works only on Unix.
func TryLock(*os.File) error { return errLock }

// Lock fails: it works only on Unix.
func Lock(*os.File) error { return errLock }

const nonblock = 0

// others is empty: the mode does not show it.
func others(string, fs.FileInfo) string { return "" }
