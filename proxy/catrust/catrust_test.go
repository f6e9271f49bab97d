package catrust

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"
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
	if !m.Rejects(same, now) || m.Explains(same, now) {
		t.Error("the first rejection is forgotten, or explained already")
	}
	reject(open(now.Add(2*time.Minute)), now.Add(2*time.Minute))
	if m.Explains(same, now.Add(2*time.Minute)) {
		t.Error("two rejections that are two minutes apart are explained")
	}
	now = now.Add(2 * time.Minute)
	reject(open(now), now)
	if !m.Explains(same, now) || !m.Explains(same, now.Add(59*time.Second)) || m.Explains(same, now.Add(time.Minute)) {
		t.Error("the second rejection is not explained, for a minute")
	}
	again := open(now)
	if m.Explains(same, now) {
		t.Error("it is explained while another tunnel is in its handshake")
	}
	m.Accepted(again, now)
	if m.Explains(same, now) || m.Rejects(same, now) {
		t.Error("it is explained although a request came through")
	}
}

func TestClosed_OnlyTheLastUndecidedTunnelCounts(t *testing.T) {
	t.Parallel()
	var m Memory
	one, two := &Attempt{Client: ClientOf("192.0.2.1:5", "a.test", "A/1")}, &Attempt{Client: ClientOf("192.0.2.1:6", "a.test", "A/1")}
	m.Opened(one, time.Now())
	m.Opened(two, time.Now())
	if m.Closed(one) || !m.Closed(two) || m.Closed(two) {
		t.Error("not the last of two tunnels is the last, once")
	}
	m.Opened(one, time.Now())
	m.Accepted(one, time.Now())
	if m.Closed(one) {
		t.Error("a tunnel that brought a request counts as undecided")
	}
}

func TestRejected_OneMoreThanFitsForgetsOne(t *testing.T) {
	var m Memory
	now := time.Now()
	for i := range maxRemembered + 1 {
		m.Rejected(&Attempt{Client: ClientOf("192.0.2.1:5", strconv.Itoa(i), "A/1")}, now)
	}
	if n := len(m.rejected); n != maxRemembered {
		t.Errorf("%d rejections are left of %d", n, maxRemembered)
	}
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
	if held.Value() != nil {
		t.Error("the text of the request is still held")
	}
	runtime.KeepAlive(&m)
}
