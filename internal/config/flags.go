package config

import (
	"cmp"
	"errors"
	"fmt"

	"heed/internal/console"
)

// FileFlags are the flags of every command that reads the settings. The zero value reads
// the file that HEED_CONFIG names, or proxy.toml in the working directory.
type FileFlags struct {
	Config   string `short:"c" placeholder:"FILE" help:"Read settings from FILE instead of ./proxy.toml ($$HEED_CONFIG)."`
	NoConfig bool   `name:"no-config" help:"Read no settings file; use the built-in settings."`
}

// fileVariable names the file in place of --config. Set and empty, it means no file.
const fileVariable = "HEED_CONFIG"

// Load returns the settings that the flags, the environment or the working directory
// select. The error lists every mistake of the file, why it was read, and how to read
// another one or none; the settings beside it are nil or only fit for remarks.
func (f *FileFlags) Load(a *console.App) (*Config, error) {
	named, set := console.Lookup(a.Environ, fileVariable)
	switch {
	case f.NoConfig && f.Config != "":
		return nil, errors.New("--config names a settings file, and --no-config reads none\nLeave one of them out")
	case f.Config != "":
		return loadBecause(f.Config, a, "--config names it; without --config, heed reads ./proxy.toml if there is one")
	case f.NoConfig, set && named == "":
		return BuiltIn(a.Defaults)
	case set:
		return loadBecause(named, a, "HEED_CONFIG names it\nTo read another file, add --config FILE; to read none, add --no-config")
	}
	return loadBecause("", a, "it is in the working directory\nIf it is not meant for heed, add --no-config, or name heed's file with --config FILE")
}

// Chosen reports whether a flag or the environment selects the settings: a file, or with
// --no-config none.
func (f *FileFlags) Chosen(a *console.App) bool {
	named, _ := console.Lookup(a.Environ, fileVariable)
	return f.NoConfig || f.Config != "" || named != ""
}

// Again returns the settings of the file that before was read from, or those of Load when
// it was read from none, or is nil.
func (f *FileFlags) Again(a *console.App, before *Config) (*Config, error) {
	if before == nil || before.File == "" {
		return f.Load(a)
	}
	return load(before.File, before.found, a.Defaults)
}

// loadBecause is Load of path. Its error says why that file was read.
func loadBecause(path string, a *console.App, why string) (*Config, error) {
	c, err := Load(path, a.Defaults)
	if err != nil {
		return c, fmt.Errorf("%w\nheed reads %s because %s", err, cmp.Or(path, FileName), why)
	}
	return c, nil
}
