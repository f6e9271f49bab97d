package command

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"heed/internal/terms"
)

// pinnedText is the list of hosts that are known to pin certificates, with remarks.
//
//go:embed pinned.txt
var pinnedText string

// pinnedPatterns are the patterns of the list.
func pinnedPatterns() ([]terms.HostPattern, error) {
	var out []terms.HostPattern
	for line := range strings.Lines(pinnedText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		p, err := terms.ParseHostPattern(line)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// pinned puts what https.pinned says behind b's hosts, so that they go before.
func (c *HTTPSConfig) pinned(b *terms.Book) error {
	if c.Pinned == "" {
		return nil
	}
	match, err := pinnedPatterns()
	if err != nil {
		return fmt.Errorf("the list of hosts that pin certificates: %w", err)
	}
	h := terms.Host{Match: match, HTTPSSet: true}
	h.HTTPS, _ = terms.ParseHTTPS(c.Pinned) // checked
	b.Hosts = append(b.Hosts, h)
	return nil
}

// ConfigPinnedCmd is `heed config pinned`.
type ConfigPinnedCmd struct{}

// Help says what the list is good for.
func (ConfigPinnedCmd) Help() string {
	return `Prints the list of hosts whose programs are known to accept no certificate but
those they were made with, with the source of each. With pinned = "host-only"
under [https], they are tunnelled and judged by their host alone.`
}

// Run prints the list.
func (ConfigPinnedCmd) Run(a *App) error {
	_, err := io.WriteString(a.Stdout, pinnedText)
	return err
}
