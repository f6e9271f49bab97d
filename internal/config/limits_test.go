package config

import (
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
)

// Each client may need a connection to a site beside its own, so that accepting
// never takes the last file.
func TestHeed_ConnectionsLeaveRoomForThoseToSites(t *testing.T) {
	for files, want := range map[int]int{1 << 20: 16384, 20000: 9488, 4096: 1536, 1024: 384, 256: 96, 64: 12, 20: 8} {
		must.Equal(t, roomFor(files), want, "connections with %d files", files)
	}
	c := &Config{Limits: defaultLimits()}
	l := c.ProxyLimits(20000)
	must.True(t, l.Connections == 9488 && l.ConnectionsPerClient == 7116 && l.Requests == 9488 && l.Tunnels == 9488,
		"%+v", l)
	must.Equal(t, c.LimitsRemark(1024), "", "a remark on what was derived")
	c.Limits.Connections = 1000
	if text := c.LimitsRemark(1024); !strings.Contains(text, "it may open 1024 files, which is enough for 384") || c.LimitsRemark(20000) != "" || c.LimitsRemark(0) != "" {
		t.Errorf("remark %q", text)
	}
	l = c.ProxyLimits(1024)
	must.True(t, l.Connections == 1000, "what is set is not kept: %+v", l)
	l = (&Config{}).ProxyLimits(0)
	must.True(t, l.Connections == limit.DefaultConnections, "where the number of files is not known: %+v", l)
}
