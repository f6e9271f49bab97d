package fleet_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// liar is in front of a real store. From the time that it lies on, lie changes the replies to
// scripts. Closed, it takes no connection.
type liar struct {
	addr    string
	store   string
	lies    atomic.Bool
	closed  atomic.Bool
	scripts atomic.Int64 // that were run
	lie     func(honest string) string
	beats   bool // it lies to heartbeats alone
	conns   sync.Map
}

func newLiar(t *testing.T, store string, lie func(honest string) string) *liar {
	t.Helper()
	l := &liar{store: store, lie: lie}
	l.addr = testkit.RawSite(t, l.serve)
	t.Cleanup(l.close)
	return l
}

// close ends all connections, and those that come.
func (l *liar) close() {
	l.closed.Store(true)
	l.conns.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
}

func (l *liar) serve(c net.Conn) {
	defer c.Close()
	l.conns.Store(c, true)
	defer l.conns.Delete(c)
	if l.closed.Load() {
		return
	}
	store, err := net.Dial("tcp", l.store)
	if err != nil {
		return
	}
	defer store.Close()
	in, out := bufio.NewReader(c), bufio.NewReader(store)
	for {
		args := readCommand(in)
		if len(args) == 0 {
			return
		}
		fmt.Fprintf(store, "*%d\r\n", len(args))
		for _, arg := range args {
			fmt.Fprintf(store, "$%d\r\n%s\r\n", len(arg), arg)
		}
		reply, err := readReply(out)
		if err != nil {
			return
		}
		if strings.HasPrefix(strings.ToUpper(args[0]), "EVAL") {
			l.scripts.Add(1)
			if l.lies.Load() && (!l.beats || args[3] == "heed:1:heeds") {
				reply = l.lie(reply)
			}
		}
		if strings.EqualFold(args[0], "SUBSCRIBE") { // messages come without a command
			io.WriteString(c, reply)
			io.Copy(c, out)
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

// readReply reads a reply of RESP2 as it came.
func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch {
	case line[0] == '$' && n >= 0:
		text := make([]byte, n+2)
		_, err = io.ReadFull(in, text)
		line += string(text)
	case line[0] == '*':
		for range n {
			element, err := readReply(in)
			if err != nil {
				return "", err
			}
			line += element
		}
	}
	return line, err
}

// numbersOf changes each number of a reply of several.
func numbersOf(change func(i int, n string) string) func(string) string {
	return func(honest string) string {
		if !strings.HasPrefix(honest, "*") {
			return honest
		}
		lines := strings.SplitAfter(honest, "\r\n")
		for i := range lines {
			if n, is := strings.CutPrefix(lines[i], ":"); is {
				lines[i] = ":" + change(i-1, strings.TrimSpace(n)) + "\r\n"
			}
		}
		return strings.Join(lines, "")
	}
}

func instead(text string) func(string) string { return func(string) string { return text } }

func each(n string) func(string) string {
	return numbersOf(func(int, string) string { return n })
}

// one changes one number of a reply; of that to a heartbeat: the clock, the place, the size, the
// number of heeds.
func one(at int, n string) func(string) string {
	return numbersOf(func(i int, honest string) string {
		if i == at {
			return n
		}
		return honest
	})
}

// lies are what a store answers in place of the truth.
var lies = map[string]func(honest string) string{
	"zeros": each("0"), "ones": each("1"), "negative": each("-1"), "huge": each("9223372036854775807"), "billions": each("1000000000"),
	"nil": instead("$-1\r\n"), "empty": instead("*0\r\n"), "a text": instead("+OK\r\n"), "an error": instead("-WRONGTYPE no\r\n"),
	"texts":    func(honest string) string { return strings.ReplaceAll(honest, ":", "+") },
	"doubled":  func(honest string) string { return honest + honest },
	"no heeds": one(3, "0"), "no size": one(2, "0"), "a huge size": one(2, "4611686018427387904"), "a place too high": one(1, "7"),
	"a clock of 1970": one(0, "1"), "a clock of 2100": one(0, "4102444800000"),
	"another's": swapped(),
}

// swapped answers each script with the last reply to another.
func swapped() func(string) string {
	var mu sync.Mutex
	last := map[int]string{}
	return func(honest string) string {
		mu.Lock()
		defer mu.Unlock()
		n := strings.Count(honest, "\r\n")
		other, known := last[n]
		if last[n] = honest; known {
			return other
		}
		return honest
	}
}

// damages are what others do to an honest store's keys.
var damages = map[string][]string{
	"FLUSHALL":              {"flushall"},
	"heeds are a text":      {"set", "heed:1:heeds", "x"},
	"turns are a text":      {"set", turnsKey, "x"},
	"turns are a list":      {"eval", "redis.call('DEL', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'x')", "1", turnsKey},
	"all heeds in place 0":  everyField("heed:1:heeds", "'0 '..string.match(v, '%d+$')"),
	"heeds in huge places":  everyField("heed:1:heeds", "'999999999999 99999999999999'"),
	"heeds without a place": everyField("heed:1:heeds", "'x'"),
	"turns without values":  everyField(turnsKey, "'x'"),
	"turns in the future":   everyField(turnsKey, "'99999999999999'"),
	"negative turns":        everyField(turnsKey, "'-5'"),
}

const turnsKey = "heed:1:{" + tag + "}:turns"

// everyField is a command that sets each field of a hash, but for the server's.
func everyField(key, value string) []string {
	return []string{"eval", "local all = redis.call('HGETALL', KEYS[1]) for i = 1, #all, 2 do local v = all[i + 1] " +
		"if all[i] ~= 'run' then redis.call('HSET', KEYS[1], all[i], " + value + ") end end", "1", key}
}

// turnsOf has heeds start what they may until a time, and adds when they did.
func turnsOf(heeds []*member, until time.Time, mu *sync.Mutex, starts *[]time.Time) {
	var running sync.WaitGroup
	for _, m := range heeds {
		running.Go(func() {
			for time.Now().Before(until) {
				answer := m.ask(of("group"))
				if !answer.Now {
					testkit.Delay(min(answer.Again, time.Until(until)))
					continue
				}
				mu.Lock()
				*starts = append(*starts, time.Now())
				mu.Unlock()
				_ = m.lanes.Started(m.t.Context(), m.host, m.ticket, of("group"), 0)
			}
		})
	}
	running.Wait()
}

// Whatever a store answers, and whatever others do to its keys, two heeds start no more than the
// delay allows: at the time, and when the store is gone afterwards. The short form has one case
// of each kind.
func TestHeed_NoLieOfTheStoreBreaksADelay(t *testing.T) {
	t.Parallel()
	short := []string{"zeros to heartbeats", "ones", "a huge size to heartbeats", "another's", "FLUSHALL", "turns are a text", "negative turns", "all heeds in place 0"}
	for name, lie := range lies {
		for _, to := range []string{"", " to heartbeats"} {
			if !testkit.Full && !slices.Contains(short, name+to) {
				continue
			}
			t.Run(name+to, func(t *testing.T) {
				t.Parallel()
				l := newLiar(t, testkit.NewRedis(t).Addr, lie)
				l.beats = to != ""
				l.keeps(t, func() { l.lies.Store(true) })
			})
		}
	}
	for name, damage := range damages {
		if !testkit.Full && !slices.Contains(short, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.NewRedis(t)
			newLiar(t, server.Addr, nil).keeps(t, func() { server.CLI(damage...) })
		})
	}
}

// keeps tests two heeds at a store that is honest, then is not, and is gone in the end.
func (l *liar) keeps(t *testing.T, change func()) {
	t.Helper()
	heeds := lineUp(t, "redis://"+l.addr, 2)
	testkit.Until(t, "both are counted", func() bool { return heeds[0].lanes.Membership().Heeds == 2 && heeds[1].lanes.Membership().Heeds == 2 })
	settled(heeds[0])
	var mu sync.Mutex
	var starts []time.Time
	turnsOf(heeds, time.Now().Add(3*delay), &mu, &starts)
	for range 3 {
		change()
		turnsOf(heeds, time.Now().Add(2*delay+delay/3), &mu, &starts)
	}
	l.close()
	turnsOf(heeds, time.Now().Add(16*delay), &mu, &starts)
	must.True(t, len(starts) >= 4, "%d starts", len(starts))
	apart(t, starts, delay-20*time.Millisecond)
	t.Logf("%d starts in %v", len(starts), starts[len(starts)-1].Sub(starts[0]))
}

// While a key of heed's has a value of another program, the status names it, and does not come
// back before it is gone.
func TestHeed_AKeyOfAnotherProgramIsNamed(t *testing.T) {
	t.Parallel()
	lease := "heed:1:space:{" + tag + "}:lease:"
	for name, change := range map[string][]string{"heed:1:heeds": {"set", "heed:1:heeds", "x"}, turnsKey: {"set", turnsKey, "x"}, lease: {"hset", lease, "x", "y"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testkit.NewRedis(t)
			l := newLiar(t, server.Addr, nil)
			s, log := open(t, "redis://"+l.addr)
			p := s.Policies("space")
			m := &member{t, s.Lanes(), tag, "ticket"}
			m.take(of("group"))
			key := name
			if name == lease {
				end, _ := p.Lease(t.Context(), tag, "", 0)
				key = strings.TrimSpace(server.CLI("keys", "*:lease:*"))
				end(nil, nil, 0)
				change[1] = key
			}
			server.CLI("del", key)
			server.CLI(change...)
			testkit.Until(t, "the key is named", func() bool {
				m.ask(of("group"))
				p.Lease(t.Context(), tag, "", 0)
				return strings.Contains(s.Health().Why, key) && strings.Contains(s.Health().Why, "delete it")
			})
			probed := l.scripts.Load() + 3 // no other script is run while the store is away
			testkit.Until(t, "the store is probed again", func() bool { return l.scripts.Load() >= probed })
			h := s.Health()
			must.True(t, h.Away && h.Outages == 1, "health %+v", h)
			server.CLI("del", key)
			testkit.Until(t, "the store is back", func() bool { return log.count(back) == 1 })
		})
	}
}
