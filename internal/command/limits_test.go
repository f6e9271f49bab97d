package command

import (
	"strings"
	"testing"

	"heed/proxy"
)

// Each client may need a connection to a site beside its own, so that accepting
// never takes the last file.
func TestHeed_ConnectionsLeaveRoomForThoseToSites(t *testing.T) {
	for files, want := range map[int]int{1 << 20: 16384, 20000: 9488, 4096: 1536, 1024: 384, 256: 96, 20: 16} {
		if got := roomFor(files); got != want {
			t.Errorf("of %d files, %d connections, want %d", files, got, want)
		}
	}
	c := defaultLimits()
	l := c.of(20000)
	l = l.WithDefaults()
	if l.Connections != 9488 || l.ConnectionsPerClient != 7116 || l.Requests != 9488 || l.Tunnels != 9488 {
		t.Errorf("%+v", l)
	}
	if c.remark(1024) != "" {
		t.Error("a remark on what was derived")
	}
	c.Connections = 1000
	if text := c.remark(1024); !strings.Contains(text, "it may open 1024 files, which is enough for 384") || c.remark(20000) != "" || c.remark(0) != "" {
		t.Errorf("remark %q", text)
	}
	if l := c.of(1024); l.Connections != 1000 {
		t.Errorf("what is set is not kept: %+v", l)
	}
	if l := (&LimitsConfig{}).of(0); l.WithDefaults().Connections != proxy.DefaultConnections {
		t.Errorf("where the number of files is not known: %+v", l)
	}
}
