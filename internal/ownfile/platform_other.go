//go:build !unix

package ownfile

import "io/fs"

const nonblock = 0

// others is empty: the mode does not show it.
func others(string, fs.FileInfo) string { return "" }
