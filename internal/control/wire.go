package control

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"heed/cache/policyfile"
	"heed/internal/audit/counts"
	"heed/internal/base/state"
	"heed/internal/judge/acl"
	"heed/internal/judge/signal"
	"heed/internal/output/console"
	"heed/internal/pace"
	"heed/internal/pace/fleet"
	"heed/proxy/limit"
	"heed/rules"
)

// JoinRequest is the body of POST /runs.
type JoinRequest struct {
	Version string    `json:"version"`       // of the caller; must be that of the heed it joins
	Config  string    `json:"config"`        // Config.JoinHash of the caller
	Asked   bool      `json:"asked"`         // the caller chose its settings: different ones are an error
	Route   RouteSpec `json:"way"`           // to the sites
	Log     bool      `json:"log,omitempty"` // send decisions on the stream

	Audit *RunAudit `json:"audit,omitempty"` // separate record of the run; nil: none

	Flags acl.Flags `json:"flags,omitzero"` // the settings that the run requests for itself
	Sign  *RunSign  `json:"sign,omitempty"` // the key of Flags.Signer; nil: as the settings state it

	// Sockets are those of the network of a sealed run, which the kernel passes beside
	// the request. Route.Sealed is set with them.
	Sockets []*os.File `json:"-"`
}

// StreamLine is one line of the answer to POST /runs. Exactly one of the first
// four members is set.
type StreamLine struct {
	Joined  *JoinReply      `json:"joined,omitempty"`  // the first line
	Log     json.RawMessage `json:"log,omitempty"`     // a decision
	Notice  string          `json:"notice,omitempty"`  // a sentence to print
	Summary *counts.Summary `json:"summary,omitempty"` // the last line

	// Dropped is the number of log lines that were not sent because the run did not
	// read them in time. It is set with Summary only.
	Dropped uint64 `json:"dropped,omitempty"`
}

// JoinReply is the first line of the stream: the proxy of the run and the heed behind it.
type JoinReply struct {
	ID     string   `json:"id"`
	Listen string   `json:"listen"` // host:port of the run's own listener
	CA     CAFiles  `json:"ca"`
	CADays int      `json:"ca_days"`
	Own    []string `json:"own"` // all addresses this heed listens on

	Unjudged []string `json:"unjudged,omitempty"` // traffic that is not judged by its path, a sentence each
}

// CAFiles names the files of a configured CA; empty paths mean the CA of the state
// directory.
type CAFiles struct {
	CACert string
	CAKey  string
}

// Info identifies a running heed.
type Info struct {
	Version    string `json:"version"`
	PID        int    `json:"pid"`
	Background bool   `json:"background"`            // started by `heed run`
	ConfigFile string `json:"config_file,omitempty"` // empty: the built-in settings
	ConfigHash string `json:"config_hash"`
}

// Refusal is the body of an answer other than 200.
type Refusal struct {
	Message string `json:"error"`
	Again   bool   `json:"again,omitempty"`  // heed is ending: start or join the next one
	Retire  bool   `json:"retire,omitempty"` // heed is in the background and has no runs: Client.Retire ends it
}

// Error returns the message for the user.
func (r *Refusal) Error() string { return r.Message }

// Healings are the times since the start that the record was opened again, since another
// program had removed or replaced its files.
type Healings struct {
	Count   int       `json:"count"`
	Last    time.Time `json:"last"`
	Why     string    `json:"why"`     // of the last one
	Refused int64     `json:"refused"` // requests meanwhile, of the last one
}

// FailedReload is a reload that was rejected, so that the previous settings stay in effect.
type FailedReload struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// Status is the response to GET /status.
type Status struct {
	Info
	Since  time.Time `json:"since"`
	Ending bool      `json:"ending"` // it drains and accepts no runs

	Log         string `json:"log_error,omitempty"`      // why the log cannot be written; empty: it can
	LogIsRecord bool   `json:"log_is_record,omitempty"`  // so that requests are refused while it cannot
	LogLost     uint64 `json:"log_lines_lost,omitempty"` // since the start

	Record     string            `json:"record_error,omitempty"`    // why decisions cannot be recorded; empty: they can
	RecordHeld string            `json:"record_held,omitempty"`     // what another program does with the record, so that decisions wait beside it, or will; empty: nothing
	Healings   *Healings         `json:"record_healings,omitempty"` // nil: none
	Continues  bool              `json:"continues_unrecorded"`      // while they cannot be recorded, requests continue
	Unrecorded int64             `json:"unrecorded,omitempty"`      // decisions that took effect unrecorded, since the start
	Listeners  []string          `json:"listeners"`                 // shared listeners; none for a background heed
	Runs       []string          `json:"runs"`                      // listeners of the runs that joined
	Redirected []counts.Listener `json:"redirected,omitempty"`      // listeners for redirected connections
	Mode       string            `json:"mode"`
	Profile    string            `json:"profile"`

	NotReloaded *FailedReload `json:"not_reloaded,omitempty"` // the last reload; nil: it succeeded, or there was none

	Unjudged []string    `json:"unjudged,omitempty"` // traffic that is not judged by its path, a sentence each
	CA       CAStatus    `json:"ca"`
	Keys     []KeyStatus `json:"keys,omitempty"` // that requests are signed with

	Breaks     []Break     `json:"breaks"`     // current mode overrides
	Exceptions []Exception `json:"exceptions"` // current exceptions

	Fleet *fleet.Health      `json:"fleet,omitempty"`         // nil: no fleet
	Kept  *policyfile.Health `json:"policies_file,omitempty"` // nil: policies are not stored

	Busiest counts.Busiest `json:"busiest"` // clients, sites and octets of the last hour
	Room    Room           `json:"room"`
	Reach   counts.Reach   `json:"reach"` // of sites and upstream proxies

	Load     limit.Status     `json:"load"`
	Turns    pace.Counts      `json:"turns"` // at sites with delays between requests
	Five     counts.Counts    `json:"last_5_minutes"`
	Hour     counts.Counts    `json:"last_hour"`
	Troubles []counts.Trouble `json:"policies_in_trouble"`
}

// Room is the space that the files of heed use and have left.
type Room struct {
	Record   *state.Growing `json:"record,omitempty"`        // nil: decisions are not recorded
	Policies *state.Space   `json:"policies_file,omitempty"` // nil: policies are not stored
}

// CAStatus describes the CA certificate.
type CAStatus struct {
	Path      string    `json:"path"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	DaysLeft  int       `json:"days_left"`
	Beside    []CARoot  `json:"beside,omitempty"` // during a renewal
}

// CARoot is a CA certificate beside the one that signs.
type CARoot struct {
	File     string    `json:"file"`
	NotAfter time.Time `json:"not_after"`
	Replaced bool      `json:"replaced"` // by the one that signs; else it is to follow that
}

// KeyStatus describes a key that requests are signed with.
type KeyStatus struct {
	Client    string    `json:"client,omitempty"` // whose requests; empty: heed's own
	Key       string    `json:"key"`              // thumbprint
	Agent     string    `json:"agent"`            // the URL under which they are signed
	NotBefore time.Time `json:"not_before,omitzero"`
	NotAfter  time.Time `json:"not_after,omitzero"` // zero: it has no end
}

// Start and end of a background heed.
const (
	ExitTimeout = 12 * time.Second // for a heed that is about to end
	ReadyWord   = "ready"          // printed when the background heed accepts runs
	HeldWord    = "held"           // printed when another heed has the lock
)

// RunDrain is the time for open exchanges to end after the run's command has ended.
const RunDrain = 2 * time.Second

// RouteSpec holds what a run changes in how sites are reached. The zero value is the route
// of the settings.
type RouteSpec struct {
	Proxy *UpstreamProxy `json:"proxy,omitempty"` // nil: upstream.proxy
	Roots string         `json:"roots,omitempty"` // PEM certificates to trust beside the others
	// Profile is the name of the rules profile; empty: that of the settings.
	Profile string `json:"profile,omitempty"`
	// Policies is the absolute path of the record of an earlier run. Requests are judged
	// only by the robots.txt files in it. Empty: robots.txt is fetched from sites.
	Policies string `json:"policies,omitempty"`
	// Sealed means that the clients are in a sealed run: loopback addresses are no sites.
	Sealed bool `json:"sealed,omitempty"`
}

// UpstreamProxy is the proxy between heed and sites: All, or the values of the proxy
// variables of an environment. The zero value is no proxy.
type UpstreamProxy struct {
	All     string `json:"all,omitempty"`
	HTTP    string `json:"http,omitempty"`
	HTTPS   string `json:"https,omitempty"`
	NoProxy string `json:"no_proxy,omitempty"` // as in the variable of that name
}

// Key returns a hash of the route: equal routes share policies and connections.
func (s RouteSpec) Key() string { return console.Digest(s) }

// RunAudit requests a separate record for a run.
type RunAudit struct {
	File    string   `json:"file"` // absolute; must not exist
	Command []string `json:"command"`
	Note    string   `json:"note,omitempty"`
}

// RunSign names the key that the requests of a run are signed with.
type RunSign struct {
	Key   string `json:"key"`   // absolute path of its file
	Agent string `json:"agent"` // the URL under which they are signed
}

// Check returns an error when the file cannot be created or the note is too long.
func (a *RunAudit) Check() error {
	if len(a.Note) > maxNote {
		return fmt.Errorf("--note takes up to %d octets, and this one has %d", maxNote, len(a.Note))
	}
	if _, err := os.Lstat(a.File); err == nil {
		return fmt.Errorf("--audit: %s exists already, and each run needs a new file\nName another file, or move that one away", console.Printable(a.File))
	}
	if dir, err := os.Stat(filepath.Dir(a.File)); err != nil || !dir.IsDir() {
		return fmt.Errorf("--audit: there is no directory %s\nMake it, or name a file elsewhere", console.Printable(filepath.Dir(a.File)))
	}
	return nil
}

// maxNote is the greatest length of --note, in bytes.
const maxNote = 4096

// CheckRequest is the body of POST /judge: URLs of one site, of any octets, which a text in
// JSON cannot have.
type CheckRequest struct {
	Agent    string   `json:"agent"`
	URLs     [][]byte `json:"urls"`
	Profile  string   `json:"profile,omitempty"`  // to judge by; empty: that of the settings
	Explain  bool     `json:"explain,omitempty"`  // include an explanation
	Delay    bool     `json:"delay,omitempty"`    // include the delay between two requests
	Client   string   `json:"client,omitempty"`   // name of a [[client]]; empty: judge by Agent only
	Sitemaps bool     `json:"sitemaps,omitempty"` // include the sitemaps that robots.txt names

	Flags acl.Flags `json:"flags,omitzero"` // the settings that the check requests for itself
}

// Judgement is the result of `heed check` for one URL: the decision that the proxy would
// make, and its basis.
type Judgement struct {
	URL     string       `json:"url"`
	Agent   string       `json:"agent"`
	Allowed bool         `json:"allowed"`
	Reason  rules.Reason `json:"reason"`
	Group   string       `json:"group"`
	Rule    string       `json:"rule"`
	Line    int          `json:"line"`
	Token   string       `json:"token,omitempty"`   // the name in Agent that matched Group
	Role    string       `json:"role,omitempty"`    // where Token is from: seen, declared or also_obey; empty without Token
	Variant string       `json:"variant,omitempty"` // the interpretation of an ambiguous path that decided
	Robots  string       `json:"robots,omitempty"`  // URL or file of the rules
	By      string       `json:"by,omitempty"`      // file, heed, store or site; see package why
	Age     float64      `json:"age,omitempty"`     // of the rules, in seconds
	Stale   bool         `json:"stale,omitempty"`   // an older copy, since the site is unreachable
	Detail  string       `json:"detail,omitempty"`  // details of Reason
	Client  string       `json:"client,omitempty"`  // name of the matching [[client]]; empty: none
	Settled string       `json:"settled,omitempty"` // the operator's reason, when a setting decided
	Mode    string       `json:"mode,omitempty"`    // observe: a refusal is not enforced

	State   string             `json:"state,omitempty"`   // of the site's robots.txt: available, unavailable or unreachable; empty: not needed
	Profile string             `json:"profile,omitempty"` // that the rules were parsed with
	Road    *rules.Explanation `json:"road,omitempty"`    // explanation; nil: not requested
	Terms   []string           `json:"terms,omitempty"`   // the settings in force for the client, in words; nil: not requested, or none
	Delay   *Delay             `json:"delay,omitempty"`   // between two requests; nil: not requested, or no rules were read
	// Names are the names in Agent, or of its [[client]], whose rules count; nil: not requested.
	Names []string `json:"names,omitempty"`
	// Purpose is the list of those that the URL was judged for as well, Signals what the
	// site states about the use of its pages; empty and nil: not requested.
	Purpose string          `json:"purpose,omitempty"`
	Signals *signal.Verdict `json:"signals,omitempty"`
	// Sitemaps are the first URLs in the Sitemap lines of the rules; nil: not requested, or none.
	Sitemaps []string `json:"sitemaps,omitempty"`
}

// Delay is the time that heed keeps between two requests of a client to a site.
type Delay struct {
	Seconds float64  `json:"seconds"`           // that are kept
	Asked   float64  `json:"asked"`             // by the site or the operator, in seconds
	Line    int      `json:"line,omitempty"`    // that asks for it; 0: the operator does, or nothing
	Rule    string   `json:"rule,omitempty"`    // that line
	Group   string   `json:"group,omitempty"`   // of that line; empty: it is before any group
	Ignored []string `json:"ignored,omitempty"` // lines about speed without effect, such as "line 4, Crawl-delay: 10s"
	MaxWait float64  `json:"max_wait"`          // for how long a request waits for its turn before it is answered with 429, in seconds
	// Unkept is set for a client that is only observed: its requests do not wait.
	Unkept bool `json:"unkept,omitempty"`
	// Visits are the lines about the time of day outside of which requests wait.
	Visits []string `json:"visits,omitempty"`
	Open   float64  `json:"open,omitempty"` // the share of the day in which Visits let requests start
}

// ReloadReply is the result of a reload.
type ReloadReply struct {
	Source  string   `json:"source"` // file or phrase, for people
	Hash    string   `json:"hash"`
	Same    bool     `json:"same"`    // the settings have not changed
	Notices []string `json:"notices"` // the remarks that every start prints

	Read    []string `json:"read_again"`       // the files that settings name: "access.users (FILE)"
	Dropped int      `json:"dropped_failures"` // fetches of robots.txt that had failed, which are made again
}

// ShortHash returns the first 12 digits of a hash, for the log.
func ShortHash(hash string) string { return hash[:min(12, len(hash))] }

// EndTimeout is how long a run waits for its summary.
const EndTimeout = RunDrain + 5*time.Second
