package catrust

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"heed/internal/tools/testkit/must"
)

// The first rejection is not explained, and neither are others in tunnels that were
// open by then. The second one is, for a minute, unless the client accepts the CA.
func TestExplains_FromTheSecondRejectionOn(t *testing.T) {
	t.Parallel()
	var m Memory
	now := time.Now()
	same := ClientOf("192.0.2.1:6", "a.test", "A/1") // from another port
	open := func(at time.Time) *Attempt {
		a := &Attempt{Client: ClientOf("192.0.2.1:5", "a.test", "A/1")}
		m.Opened(a, at)
		return a
	}
	reject := func(a *Attempt, at time.Time) {
		m.Closed(a)
		m.Rejected(a, at)
	}
	first, beside := open(now), open(now)
	reject(first, now)
	reject(beside, now)
	must.True(t, m.Rejects(same, now) && !m.Explains(same, now), "the first rejection is forgotten, or explained already")
	reject(open(now.Add(2*time.Minute)), now.Add(2*time.Minute))
	must.True(t, !m.Explains(same, now.Add(2*time.Minute)), "two rejections that are two minutes apart are explained")
	now = now.Add(2 * time.Minute)
	reject(open(now), now)
	must.True(t, m.Explains(same, now) && m.Explains(same, now.Add(59*time.Second)) && !m.Explains(same, now.Add(time.Minute)),
		"the second rejection is not explained, for a minute")
	again := open(now)
	must.True(t, !m.Explains(same, now), "it is explained while another tunnel is in its handshake")
	m.Accepted(again, now)
	must.True(t, !m.Explains(same, now) && !m.Rejects(same, now), "it is explained although a request came through")
}

func TestClosed_OnlyTheLastUndecidedTunnelCounts(t *testing.T) {
	t.Parallel()
	var m Memory
	one, two := &Attempt{Client: ClientOf("192.0.2.1:5", "a.test", "A/1")}, &Attempt{Client: ClientOf("192.0.2.1:6", "a.test", "A/1")}
	m.Opened(one, time.Now())
	m.Opened(two, time.Now())
	must.True(t, !m.Closed(one) && m.Closed(two) && !m.Closed(two), "not the last of two tunnels is the last, once")
	m.Opened(one, time.Now())
	m.Accepted(one, time.Now())
	must.True(t, !m.Closed(one), "a tunnel that brought a request counts as undecided")
}

func TestRejected_OneMoreThanFitsForgetsOne(t *testing.T) {
	var m Memory
	now := time.Now()
	for i := range maxRemembered + 1 {
		m.Rejected(&Attempt{Client: ClientOf("192.0.2.1:5", strconv.Itoa(i), "A/1")}, now)
	}
	must.Equal(t, len(m.rejected), maxRemembered, "rejections left")
}

// A host is a part of the text of a whole request, which may have 64 KiB.
func TestARememberedClientHoldsNoRequest(t *testing.T) {
	head := strings.Repeat("x", 1<<10) + "a.test"
	held := weak.Make(unsafe.StringData(head))
	var m Memory
	a := &Attempt{Client: ClientOf("192.0.2.1:5", head[1<<10:], "A/1")}
	m.Opened(a, time.Now())
	m.Accepted(a, time.Now())
	head = ""
	runtime.GC()
	must.True(t, held.Value() == nil, "the text of the request is still held")
	runtime.KeepAlive(&m)
}
