package command

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A sample may cost a fiftieth of the time between two, which lies between
// these bounds.
const (
	sampleShare    = 50
	sampleShortest = 10 * time.Millisecond
	sampleLongest  = 200 * time.Millisecond
)

// watcher looks again and again at what the processes of a run are connected
// to, in /proc.
type watcher struct {
	own    map[addrPort]bool // where heed listens
	handed map[uint64]bool   // sockets that heed run handed down: not the command's doing
	self   string            // heed's program: another heed answers for itself
	procs  map[int]process   // of the run: the command, and what came of it
	done   map[uint64]bool   // sockets, by inode, of which all is known
	twice  map[uint64]bool   // UDP sockets that were seen once as connected
	rounds rounds
	blind  bool // the system does not show a process's children

	stop, stopped chan struct{}
}

// process is what identifies one while it lives, since ids are used again.
type process struct {
	started string
	heed    bool
}

// watch begins to look at the process pid and all that it starts. own are the
// addresses of heed's listeners. It is over with finish.
func watch(pid int, own []string) *watcher {
	w := &watcher{
		own: addresses(own), procs: map[int]process{}, handed: map[uint64]bool{}, done: map[uint64]bool{}, twice: map[uint64]bool{}, rounds: rounds{},
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	w.self, _ = os.Readlink("/proc/self/exe")
	for _, inode := range socketsOf(os.Getpid()) {
		w.handed[inode] = true
	}
	if p, ok := w.look(pid); ok {
		w.procs[pid] = p
	}
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err != nil {
		w.blind = true
	}
	go w.run()
	return w
}

// finish ends the watching and returns what was seen.
func (w *watcher) finish() *wentRound {
	close(w.stop)
	<-w.stopped
	if w.blind {
		return &wentRound{To: []roundTo{}}
	}
	return w.rounds.result()
}

func (w *watcher) run() {
	defer close(w.stopped)
	for {
		begun := time.Now()
		w.sample()
		wait := min(max(sampleShare*time.Since(begun), sampleShortest), sampleLongest)
		select {
		case <-w.stop:
			return
		case <-time.After(wait):
		}
	}
}

// sample looks once.
func (w *watcher) sample() {
	w.grow()
	held, fresh := map[uint64]int{}, false
	for pid, p := range w.procs {
		if p.heed {
			continue
		}
		for _, inode := range socketsOf(pid) {
			if w.handed[inode] {
				continue
			}
			held[inode] = pid
			fresh = fresh || !w.done[inode]
		}
	}
	if !fresh {
		return
	}
	if len(w.done) > 2*len(held)+maxRounds { // a long run has had many
		maps.DeleteFunc(w.done, func(inode uint64, _ bool) bool { return held[inode] == 0 })
	}
	spaces := map[string]bool{}
	for pid := range w.procs {
		space, err := os.Readlink(procPath(pid, "ns/net"))
		if err != nil || spaces[space] {
			continue
		}
		spaces[space] = true
		w.judge(held, pid)
	}
}

// judge looks at the sockets of the network that pid sees.
func (w *watcher) judge(held map[uint64]int, pid int) {
	for _, inode := range unixSockets(procPath(pid, "net/unix")) {
		if held[inode] != 0 {
			w.done[inode] = true // no network
		}
	}
	rows := append(readSockets(procPath(pid, "net/tcp")), readSockets(procPath(pid, "net/tcp6"))...)
	listen := newListeners(rows, held)
	for _, s := range rows {
		if holder := held[s.inode]; holder != 0 && !w.done[s.inode] {
			w.tcp(s, holder, listen)
		}
	}
	rows = append(readSockets(procPath(pid, "net/udp")), readSockets(procPath(pid, "net/udp6"))...)
	for _, s := range rows {
		if holder := held[s.inode]; holder != 0 && !w.done[s.inode] {
			w.udp(s, holder)
		}
	}
}

// tcp counts a connection, unless it leads to heed, was accepted rather than
// made, stays among the run's own processes, or asks a name server.
func (w *watcher) tcp(s socket, holder int, l listeners) {
	switch {
	case s.state == stateListen, l.accepts(s.local), w.own[s.remote], l.ours[s.remote], s.remote.Port() == 53:
		w.done[s.inode] = true
	case s.remote.Port() == 0: // not connected yet
	default:
		w.count(s, holder, "tcp")
	}
}

// udp counts a socket that is connected to where HTTP/3 is spoken, when it is so
// for more than a moment: resolvers connect sockets to find out about routes.
func (w *watcher) udp(s socket, holder int) {
	switch {
	case s.state != stateConnected || s.remote.Port() != 443:
		delete(w.twice, s.inode)
	case !w.twice[s.inode]:
		w.twice[s.inode] = true
	default:
		w.count(s, holder, "udp")
	}
}

func (w *watcher) count(s socket, holder int, protocol string) {
	w.done[s.inode] = true
	name, err := os.ReadFile(procPath(holder, "comm"))
	if err != nil {
		name = []byte("a process that has ended")
	}
	w.rounds.add(roundKey{command: string(bytes.TrimSpace(name)), protocol: protocol, to: s.remote})
}

// grow forgets the processes that have ended and finds those they started.
func (w *watcher) grow() {
	var queue []int
	for pid, known := range w.procs {
		if p, ok := w.look(pid); !ok || p.started != known.started {
			delete(w.procs, pid)
			continue
		}
		queue = append(queue, pid)
	}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		for _, child := range childrenOf(pid) {
			if _, known := w.procs[child]; known {
				continue
			}
			if p, ok := w.look(child); ok {
				w.procs[child] = p
				queue = append(queue, child)
			}
		}
	}
}

// look returns what identifies a process; ok is false when there is none.
func (w *watcher) look(pid int) (p process, ok bool) {
	stat, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return p, false
	}
	// The name stands in parentheses and may hold anything; the start time is
	// the 20th field behind it (proc_pid_stat(5)).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return p, false
	}
	exe, _ := os.Readlink(procPath(pid, "exe"))
	return process{started: fields[19], heed: exe != "" && exe == w.self}, true
}

func childrenOf(pid int) (all []int) {
	files, _ := filepath.Glob(procPath(pid, "task/*/children"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// socketsOf returns the inodes of a process's sockets.
func socketsOf(pid int) (inodes []uint64) {
	dir, err := os.Open(procPath(pid, "fd"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		link, _ := os.Readlink(filepath.Join(dir.Name(), name))
		text, ok := strings.CutPrefix(link, "socket:[")
		if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); ok && err == nil {
			inodes = append(inodes, inode)
		}
	}
	return inodes
}

func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
