// Command heed is a forward HTTP proxy that makes any client keep the Robots
// Exclusion Protocol (RFC 9309).
package main

import (
	_ "embed"
	"os"

	"heed/internal/command"
	"heed/internal/sealed"
)

// defaults is proxy.toml: the settings of a heed that was given no file.
//
//go:embed proxy.toml
var defaults []byte

func main() {
	if sealed.IsHelper() {
		os.Exit(sealed.Helper())
	}
	os.Exit(command.Main(os.Args[1:], defaults))
}
