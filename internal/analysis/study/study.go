package study

import (
	"fmt"
	"hash/maphash"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heed/internal/analysis/accesslog"
	"heed/internal/audit"
	"heed/internal/output/figures"
)

// Options is what a study needs beyond the requests.
type Options struct {
	// Site is the host of requests whose log does not name one; empty: they are of one
	// site without a name.
	Site string
	// Policies has the robots.txt files in force; nil: none is known but what the log
	// itself shows.
	Policies *Policies
	// Privacy replaces addresses and the secrets in URLs in everything that is printed;
	// nil keeps them. Hashed reports that addresses are replaced.
	Privacy *audit.Privacy
	Hashed  bool
	// Endpoint is the beginning of the paths that the endpoint measure of Kim et al.
	// counts; empty leaves that measure out.
	Endpoint string
	// Networks returns the autonomous system of an address, such as "AS64496"; nil: the
	// network of a client is its IPv4 address or the /64 of its IPv6 address.
	Networks func(netip.Addr) (name string, ok bool)
	// Ranges are the address ranges that the operators of robots publish, by token.
	Ranges map[string][]netip.Prefix
	// Heed is the version of heed, which the methods name.
	Heed string
	// Rows, if not nil, receives every request in the order of time: the columns of requests.csv.
	Rows func(values ...any) error
}

const (
	sessionEnd = 5 * time.Minute
	grace      = 24 * time.Hour // RFC 9309 §2.4: how long a copy may be used
	kimDelay   = 30 * time.Second
)

// Study gathers the tables. It is not safe for concurrent use.
type Study struct {
	Options
	sites    map[string]*site
	siteList []*site

	agents  map[string]*who
	robots  map[robotKey]*robot
	all     []*robot // in the order of their first request
	places  map[string]*place
	nets    map[string]uint32
	netName []string
	actors  map[uint64]*actor
	kim     map[uint64]int64 // the time of the last request, by address and User-Agent
	seen    map[uint64]struct{}
	pairs   map[uint64]struct{} // robot and address, robot and User-Agent
	chart   chart
	parts   map[partKey]*partCount // by Liu et al.'s reading

	total     coverage
	columns   []rowColumn
	row       []any // of columns
	bounds    bounds
	exceeded  map[string]int64 // requests, by the bound that they are beyond
	seenFull  bool
	subSecond bool
}

type robotKey struct {
	site  *site
	token string
}

// place is a client's address.
type place struct {
	id      uint64
	network uint32
	hidden  string // the address as it is printed
	addr    netip.Addr
}

// New returns an empty study.
func New(o Options) *Study {
	return &Study{
		Options: o, bounds: defaultBounds, sites: map[string]*site{}, agents: map[string]*who{}, robots: map[robotKey]*robot{},
		places: map[string]*place{}, nets: map[string]uint32{}, actors: map[uint64]*actor{}, kim: map[uint64]int64{},
		seen: map[uint64]struct{}{}, pairs: map[uint64]struct{}{}, parts: map[partKey]*partCount{}, columns: rowColumns(), exceeded: map[string]int64{},
		chart: chart{width: time.Minute.Microseconds(), bins: map[int64][classes]int64{}}, total: coverage{zones: map[string]bool{}},
	}
}

var seed = maphash.MakeSeed()

func hashOf(s string) uint64 { return maphash.String(seed, s) }

// mix returns a hash of two numbers.
func mix(a, b uint64) uint64 { return maphash.Comparable(seed, [2]uint64{a, b}) }

// event is a request with all that is found out about it.
type event struct {
	*accesslog.Request
	at      int64 // microseconds since 1970
	site    *site
	line    *line  // the files in force for who
	target  string // path and query as sent; empty: none
	robots  bool   // the target is /robots.txt
	who     *who
	place   *place
	robot   *robot
	actor   *actor
	verdict verdict
}

// Add adds a request. Requests are added in the order of time.
func (s *Study) Add(r *accesslog.Request) error {
	e := event{Request: r, at: r.Time.UnixMicro()}
	e.site = s.siteOf(s.locate(&e))
	e.who = s.agentOf(r.UserAgent)
	e.place = s.placeOf(r.Client)
	e.robot = s.robotOf(e.site, e.who)
	e.actor = s.actorOf(e.robot, e.place)
	e.robots = isRobots(e.target)
	e.line = e.site.lineOf(e.who)
	e.line.advance(e.at)
	e.verdict = e.site.judge(&e)
	if e.robots {
		e.site.observe(e.Status)
	}
	s.cover(&e)
	s.count(&e)
	if s.Rows == nil {
		return nil
	}
	return s.write(&e)
}

// locate sets the target of a request, and returns its host.
func (s *Study) locate(e *event) (host string) {
	host, e.target = e.Host, e.Target
	if !strings.HasPrefix(e.target, "/") {
		scheme, rest, absolute := strings.Cut(e.target, "://")
		e.target = "" // CONNECT, OPTIONS *, and what is no request line
		if absolute && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
			end := strings.IndexAny(rest+"/", "/?#")
			host, e.target = rest[:end], "/"+strings.TrimPrefix(rest[end:], "/")
		}
	}
	if e.Method == "CONNECT" {
		e.target, host = "", e.Host
	}
	if host == "" || host == "-" {
		host = s.Site
	}
	return host
}

// isRobots reports whether a target is the robots.txt of the site.
func isRobots(target string) bool {
	rest, ok := strings.CutPrefix(target, "/robots.txt")
	return ok && (rest == "" || rest[0] == '?')
}

func (s *Study) siteOf(host string) *site {
	name := siteName(host)
	found := s.sites[name]
	if found == nil && len(s.sites) >= s.bounds.sites {
		s.exceed(s.bounds.sites, "sites, the rest counted as "+otherSites)
		name = otherSites
		found = s.sites[name]
	}
	if found == nil {
		name = strings.Clone(name)
		found = &site{name: name, line: newLine(nil, 0), named: map[string]*line{}, perVersion: map[int]int64{}}
		if s.Policies != nil && name != otherSites {
			found.setLines(s.Policies.versionsOf(name))
		}
		s.sites[name] = found
		s.siteList = append(s.siteList, found)
	}
	return found
}

// siteName returns the name of a site: its host in lower case, without the ports of http
// and https.
func siteName(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host = strings.TrimSuffix(strings.TrimSuffix(host, ":80"), ":443"); host == "" {
		return noSite
	}
	return host
}

func (s *Study) agentOf(userAgent string) *who {
	w := s.agents[userAgent]
	if w == nil {
		w = identify(userAgent)
		if len(s.agents) < s.bounds.agents {
			s.agents[strings.Clone(userAgent)] = w
		}
	}
	return w
}

func (s *Study) placeOf(client string) *place {
	if p := s.places[client]; p != nil {
		return p
	}
	p := &place{id: hashOf(client), hidden: client}
	network := client
	if addr, err := netip.ParseAddr(client); err == nil {
		p.addr = addr.Unmap().WithZone("")
		network = p.addr.String()
		p.id, p.hidden = hashOf(network), network
		if p.addr.Is6() {
			prefix, _ := p.addr.Prefix(64) // never fails: addresses are longer
			network = prefix.String()
		}
		if s.Networks != nil {
			if name, ok := s.Networks(p.addr); ok {
				network = name
			}
		}
	}
	p.hidden = s.hide(p.hidden)
	p.network = s.networkOf(network)
	if len(s.places) < s.bounds.addresses {
		s.places[strings.Clone(client)] = p
	}
	return p
}

func (s *Study) networkOf(name string) uint32 {
	id, known := s.nets[name]
	hidden := s.hide
	if !known && len(s.nets) >= s.bounds.networks {
		s.exceed(s.bounds.networks, "networks, the rest counted as one")
		name, hidden = otherNetworks, strings.Clone
		id, known = s.nets[name]
	}
	if !known {
		id = uint32(len(s.netName))
		s.nets[strings.Clone(name)] = id
		s.netName = append(s.netName, hidden(name))
	}
	return id
}

// hide returns what is printed of an address or a network.
func (s *Study) hide(address string) string {
	if s.Privacy == nil || address == "" || address == "-" {
		return address
	}
	hidden, _ := s.Privacy.Client(address)
	return hidden
}

func (s *Study) robotOf(site *site, w *who) *robot {
	r := s.robots[robotKey{site, w.token}]
	if r == nil && len(s.robots) >= s.bounds.robots && (!w.known || len(s.robots) >= 4*s.bounds.robots) {
		s.exceed(s.bounds.robots, "names of robots, the rest counted as "+otherRobots)
		w = &who{token: otherRobots, category: catOther}
		r = s.robots[robotKey{site, otherRobots}]
	}
	if r != nil {
		return r
	}
	r = &robot{id: uint64(len(s.all)), site: site, token: strings.Clone(w.token), category: w.category, known: w.known,
		spans: map[int]*span{}, statuses: map[int]int64{}, refusals: map[int]int64{}}
	s.robots[robotKey{site, r.token}] = r
	s.all = append(s.all, r)
	return r
}

func (s *Study) actorOf(r *robot, p *place) *actor {
	k := r.id<<32 | uint64(p.network)
	a := s.actors[k]
	if a == nil && len(s.actors) >= s.bounds.actors {
		s.exceed(s.bounds.actors, "clients, the rest of an agent counted as one")
		k = r.id<<32 | (1<<32 - 1) // the clients beyond are one
		a = s.actors[k]
	}
	if a == nil {
		a = &actor{robot: r, id: k, network: p.network}
		s.actors[k] = a
		r.actors++
	}
	return a
}

// count adds a request to the tables of its robot.
func (s *Study) count(e *event) {
	r, a := e.robot, e.actor
	r.add(e)
	if e.who.browser {
		a.look(e)
	}
	if s.fresh(mix(r.id, e.place.id)) {
		r.addresses++
	}
	if s.fresh(mix(r.id+1<<40, e.who.hash)) {
		r.userAgents++
	}
	a.add(e)
	s.addKim(e)
	s.addRepeat(e)
	s.addParts(e)
	s.chart.add(e.at, e.verdict.class)
	if ranges, ok := s.Ranges[r.token]; ok {
		if contains(ranges, e.place.addr) {
			r.inside.count(e)
		} else {
			r.outside.count(e)
		}
	}
}

func (s *Study) fresh(pair uint64) bool {
	if _, ok := s.pairs[pair]; ok {
		return false
	}
	if len(s.pairs) >= s.bounds.pairs {
		s.exceed(s.bounds.pairs, "pairs of agent and address or User-Agent, whose numbers are too low")
		return false
	}
	s.pairs[pair] = struct{}{}
	return true
}

// addKim counts the gap to the last request of the same address and User-Agent.
func (s *Study) addKim(e *event) {
	k := mix(e.place.id, mix(e.who.hash, hashOf(e.site.name)))
	if last, ok := s.kim[k]; ok {
		e.robot.kimGaps++
		if figures.Keeps(e.at-last, kimDelay.Microseconds()) {
			e.robot.kimKept++
		}
	}
	if _, ok := s.kim[k]; ok || len(s.kim) < s.bounds.pairs {
		s.kim[k] = e.at
	} else {
		s.exceed(s.bounds.pairs, "pairs of address and User-Agent, whose gaps of Kim et al. are left out")
	}
	if s.Endpoint != "" && (e.robots || strings.HasPrefix(e.target, s.Endpoint)) {
		e.robot.kimEndpoint++
	}
}

// addRepeat counts answers that a cache of the client would have saved.
func (s *Study) addRepeat(e *event) {
	if e.Method != "GET" || e.target == "" {
		return
	}
	if e.Status == 304 {
		e.robot.notModified++
	}
	if e.Status != 200 {
		return
	}
	e.robot.fetched++
	k := mix(e.actor.id, hashOf(e.target))
	if _, again := s.seen[k]; again {
		e.robot.repeated++
		e.robot.repeatedBytes += e.Bytes
		return
	}
	if len(s.seen) >= s.bounds.pairs {
		s.seenFull = true
		return
	}
	s.seen[k] = struct{}{}
}

// bounds are how many different things a study remembers, so that a log of forged names
// and addresses, of which an IPv6 network has any number, takes bounded memory.
type bounds struct {
	sites     int // the rest are counted as otherSites
	robots    int // agents of all sites; the rest are otherRobots, those of the built-in list only beyond four times as many
	agents    int // User-Agent strings, which are only looked up again beyond
	addresses int // likewise
	networks  int // the rest are otherNetworks
	actors    int // the rest of an agent are one client
	pairs     int // of client and target, of agent and address, of agent and User-Agent; the rest are not counted as new
}

var defaultBounds = bounds{
	sites: 20_000, robots: 50_000, agents: 300_000, addresses: 4_000_000, networks: 2_000_000, actors: 3_000_000, pairs: 32_000_000,
}

// What is counted together beyond a bound.
const (
	otherSites    = "(other sites)"
	otherRobots   = "(others)"
	otherNetworks = "(other networks)"
)

// exceed counts a request that is beyond a bound.
func (s *Study) exceed(bound int, what string) {
	s.exceeded[fmt.Sprintf("more than %s %s", figures.Commas(int64(bound)), what)]++
}

// boundNotes returns what was counted together, in sentences.
func (s *Study) boundNotes() (notes []string) {
	for _, what := range slices.Sorted(maps.Keys(s.exceeded)) {
		notes = append(notes, what+": "+figures.Number(s.exceeded[what], "request"))
	}
	return notes
}
