package run

import (
	"bytes"
	"cmp"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heed/internal/config/clientenv"
	"heed/internal/sealed/process"
)

// The interval between samples is sampleShare times the duration of one sample, within
// these bounds. At the beginning of a run, which may be all of it, it is shorter.
const (
	sampleShare    = 50
	sampleShortest = 10 * time.Millisecond
	sampleLongest  = 200 * time.Millisecond

	sampleBeginning     = time.Second
	sampleShareFirst    = 4
	sampleShortestFirst = time.Millisecond
)

// watcher samples the connections of the processes of a run in /proc.
type watcher struct {
	group         *process.Group          // the command and its descendants; nil: the system does not list them
	own           map[netip.AddrPort]bool // addresses of heed's listeners
	listen        []string                // the same, as they are written
	inherited     map[uint64]bool         // inodes of sockets inherited from heed run, which are not counted
	command       int                     // process id of the command
	done          map[uint64]bool         // inodes of sockets that need no further checks
	connectedOnce map[uint64]bool         // inodes of UDP sockets that were connected in the last sample
	programs      programs
	counts        bypassCounts
	stop, stopped chan struct{}
}

// adoptOrphans keeps descendants whose parent ends among the processes of the run. Kernels
// before 3.4 cannot: such processes leave the run there.
func adoptOrphans() { _ = process.AdoptOrphans() }

// watch starts sampling the connections of the process pid and its descendants, which are
// those of this process, until finish. own lists the addresses of heed's listeners.
func watch(pid int, own []string) *watcher {
	w := &watcher{
		group: process.NewGroup(os.Getpid()), own: addresses(own), listen: own, command: pid, inherited: map[uint64]bool{}, done: map[uint64]bool{}, connectedOnce: map[uint64]bool{}, counts: bypassCounts{},
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	for _, inode := range process.Sockets(os.Getpid()) {
		w.inherited[inode] = true
	}
	go w.run()
	return w
}

// finish ends the sampling and returns the report.
func (w *watcher) finish() *bypassReport {
	close(w.stop)
	<-w.stopped
	if w.group == nil {
		return &bypassReport{To: []bypassed{}, Ignoring: []ignoring{}}
	}
	report := w.counts.result()
	report.Ignoring = w.programs.ignoring()
	return report
}

func (w *watcher) run() {
	defer close(w.stopped)
	for started := time.Now(); ; {
		begun := time.Now()
		w.reap()
		if w.group != nil {
			w.sample()
		}
		share, shortest := time.Duration(sampleShare), sampleShortest
		if begun.Sub(started) < sampleBeginning {
			share, shortest = sampleShareFirst, sampleShortestFirst
		}
		wait := min(max(share*time.Since(begun), shortest), sampleLongest)
		select {
		case <-w.stop:
			return
		case <-time.After(wait):
		}
	}
}

// reap collects the status of processes that this one has adopted.
func (w *watcher) reap() {
	for _, child := range process.Children(os.Getpid()) {
		if child != w.command {
			process.Reap(child)
		}
	}
}

// sample checks all sockets of the run once.
func (w *watcher) sample() {
	members := w.group.Members() // parents first
	held, fresh := map[uint64]int{}, false
	for _, pid := range members {
		w.programs.look(pid, w.listen)
		for _, inode := range process.Sockets(pid) {
			if w.inherited[inode] {
				continue
			}
			if held[inode] == 0 { // a descendant inherited it from the one that opened it
				held[inode] = pid
			}
			fresh = fresh || !w.done[inode]
		}
	}
	if !fresh {
		return
	}
	if len(w.done) > 2*len(held)+maxBypassKeys { // remove closed sockets
		maps.DeleteFunc(w.done, func(inode uint64, _ bool) bool { return held[inode] == 0 })
	}
	spaces := map[string]bool{}
	for _, pid := range members {
		space, err := os.Readlink(process.Path(pid, "ns/net"))
		if err != nil || spaces[space] {
			continue
		}
		spaces[space] = true
		w.judge(held, pid)
	}
}

// judge checks the sockets in the network namespace of pid. held maps the inodes of the
// run's sockets to process ids.
func (w *watcher) judge(held map[uint64]int, pid int) {
	for _, inode := range process.Unix(pid) {
		if held[inode] != 0 {
			w.done[inode] = true // no network
		}
	}
	rows := process.TCP(pid)
	listen := newListeners(rows, held)
	for _, s := range rows {
		if holder := held[s.Inode]; holder != 0 && !w.done[s.Inode] {
			w.tcp(s, holder, listen)
		}
	}
	for _, s := range process.UDP(pid) {
		if holder := held[s.Inode]; holder != 0 && !w.done[s.Inode] {
			w.udp(s, holder)
		}
	}
}

// tcp counts a connection unless it is to heed, to a process of the run or to a name
// server, or was accepted.
func (w *watcher) tcp(s process.Socket, holder int, l listeners) {
	switch {
	case s.State == process.Listening, l.accepts(s.Local), w.own[s.Remote], l.ours[s.Remote], s.Remote.Port() == 53:
		w.done[s.Inode] = true
	case s.Remote.Port() == 0: // not connected yet
	default:
		w.count(s, holder, "tcp")
	}
}

// udp counts a socket that is connected to port 443 (HTTP/3) in two samples: resolvers
// connect sockets for a moment to find the source address.
func (w *watcher) udp(s process.Socket, holder int) {
	switch {
	case s.State != process.Connected || s.Remote.Port() != 443:
		delete(w.connectedOnce, s.Inode)
	case !w.connectedOnce[s.Inode]:
		w.connectedOnce[s.Inode] = true
	default:
		w.count(s, holder, "udp")
	}
}

func (w *watcher) count(s process.Socket, holder int, protocol string) {
	w.done[s.Inode] = true
	w.counts.add(bypassed{Command: commandOf(holder), To: s.Remote.String(), Protocol: protocol})
}

// commandOf returns the name of a process: that of its program where the process has given
// itself another, as Node does.
func commandOf(pid int) string {
	text, err := os.ReadFile(process.Path(pid, "comm"))
	if err != nil {
		return "a process that has ended"
	}
	name, program := string(bytes.TrimSpace(text)), filepath.Base(process.Program(pid))
	if _, known := clientenv.ProgramOf(name); !known {
		if _, known = clientenv.ProgramOf(program); known {
			return program
		}
	}
	return name
}

// listeners holds the listening addresses of a network namespace.
type listeners struct {
	all  map[netip.AddrPort]bool // of any process
	ours map[netip.AddrPort]bool // of processes of the run
	any  map[uint16]bool         // ports with a listener on all addresses
}

func newListeners(rows []process.Socket, held map[uint64]int) listeners {
	l := listeners{all: map[netip.AddrPort]bool{}, ours: map[netip.AddrPort]bool{}, any: map[uint16]bool{}}
	for _, s := range rows {
		if s.State != process.Listening {
			continue
		}
		l.all[s.Local] = true
		if s.Local.Addr().IsUnspecified() {
			l.any[s.Local.Port()] = true
		}
		if held[s.Inode] == 0 {
			continue
		}
		l.ours[s.Local] = true
		if s.Local.Addr().IsUnspecified() {
			for _, loopback := range []string{"127.0.0.1", "::1"} {
				l.ours[netip.AddrPortFrom(netip.MustParseAddr(loopback), s.Local.Port())] = true
			}
		}
	}
	return l
}

// accepts reports whether a connection with the local address was accepted by a listener:
// the local port of an outgoing connection has none.
func (l listeners) accepts(local netip.AddrPort) bool { return l.all[local] || l.any[local.Port()] }

// bypassCounts counts connections that bypass heed, by what they are, without Connections.
type bypassCounts map[bypassed]uint64

// maxBypassKeys is the greatest number of destinations that are counted separately.
const maxBypassKeys = 1000

func (r bypassCounts) add(k bypassed) {
	if _, known := r[k]; !known && len(r) >= maxBypassKeys {
		k = bypassed{} // counts in the sum only
	}
	r[k]++
}

// result returns the report of the counts.
func (r bypassCounts) result() *bypassReport {
	out := &bypassReport{Watched: true, To: []bypassed{}}
	for k, n := range r {
		out.Connections += n
		if k.Connections = n; k.Command != "" {
			out.To = append(out.To, k)
		}
	}
	slices.SortFunc(out.To, func(a, b bypassed) int {
		return cmp.Or(cmp.Compare(b.Connections, a.Connections), cmp.Compare(a.To, b.To), cmp.Compare(a.Command, b.Command))
	})
	out.To = out.To[:min(len(out.To), maxBypassed)]
	return out
}

// addresses returns the elements of list that are an address and port.
func addresses(list []string) map[netip.AddrPort]bool {
	out := map[netip.AddrPort]bool{}
	for _, text := range list {
		if at, err := netip.ParseAddrPort(text); err == nil {
			out[netip.AddrPortFrom(at.Addr().Unmap(), at.Port())] = true
		}
	}
	return out
}
