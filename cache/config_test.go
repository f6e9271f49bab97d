package cache

import (
	"io"
	"log"
	"testing"
)

// quiet is a logger for servers that are expected to complain.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestHeed_UserAgentNamesTheContact(t *testing.T) {
	names := func(contact, want string) {
		t.Helper()
		if got := DefaultUserAgent(contact); got != want {
			t.Errorf("contact %q: %q, want %q", contact, got, want)
		}
	}
	names("", "heed/1.0")
	names("https://example.org/bots", "heed/1.0 (+https://example.org/bots)")
	names("crawl@example.org", "heed/1.0 (+crawl@example.org)")
	names("a(b)\r\nX: y\\é", "heed/1.0 (+abX:y)")
}
