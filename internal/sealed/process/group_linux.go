package process

import (
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Group is the processes of one run: the descendants of a process, which has adopted
// orphans (AdoptOrphans), but for those that run this program itself. It is safe for
// concurrent use.
type Group struct {
	root    int
	started string // of root, since process ids are reused
	program string // this program, of which no process belongs to a run
}

// NewGroup returns the group of the descendants of the process root; nil when there is
// no such process, or the system does not list the children of processes.
func NewGroup(root int) *Group {
	started, ok := Started(root)
	if !ok || !ListsChildren() {
		return nil
	}
	return &Group{root: root, started: started, program: Program(os.Getpid())}
}

// Members returns the process ids of g now, each before its descendants; none when root has ended.
func (g *Group) Members() (all []int) {
	if started, ok := Started(g.root); !ok || started != g.started {
		return nil
	}
	for queue := Children(g.root); len(queue) > 0; {
		pid := queue[0]
		queue = append(queue[1:], Children(pid)...)
		if pid != os.Getpid() && Program(pid) != g.program {
			all = append(all, pid)
		}
	}
	return all
}

// holds reports whether processes of g hold all of these sockets. Those that root holds
// itself are older than the run.
func (g *Group) holds(inodes []uint64) bool {
	missing := slices.Clone(inodes)
	for _, inherited := range Sockets(g.root) {
		if slices.Contains(missing, inherited) {
			return false
		}
	}
	for _, pid := range g.Members() {
		for _, inode := range Sockets(pid) {
			missing = slices.DeleteFunc(missing, func(m uint64) bool { return m == inode })
		}
		if len(missing) == 0 {
			return len(inodes) > 0
		}
	}
	return false
}

// listeners reports whether processes of g listen where a connection to the address
// arrives, and whether others do.
func (g *Group) listeners(at netip.AddrPort) (ours, others bool) {
	for _, s := range TCP(os.Getpid()) {
		if s.State != Listening || !s.receives(at) {
			continue
		}
		if g.holds([]uint64{s.Inode}) {
			ours = true
		} else {
			others = true
		}
	}
	return ours, others
}

// receives reports whether s, which listens, may get a connection to the address at. A
// socket for all IPv6 addresses can be one for all of IPv4, too.
func (s *Socket) receives(at netip.AddrPort) bool {
	all := s.Local.Addr().IsUnspecified() && (s.Local.Addr().Is6() || at.Addr().Is4())
	return s.Local.Port() == at.Port() && (all || s.Local.Addr() == at.Addr())
}

// accepted reports whether a process has accepted the connection from client to the
// address at, and whether it is one of g.
func (g *Group) accepted(client, at netip.AddrPort) (held, accepted bool) {
	for _, s := range TCP(os.Getpid()) {
		if s.Local == at && s.Remote == client && s.Inode != 0 {
			return g.holds([]uint64{s.Inode}), true
		}
	}
	return false, false
}

// AdoptOrphans makes this process the parent of those of its descendants whose parent
// ends (PR_SET_CHILD_SUBREAPER, prctl(2)), so that they remain its descendants.
func AdoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// Reap collects the status of an adopted process that has ended. It does nothing for one
// that runs. The caller must not wait for pid in another way.
func Reap(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) }
