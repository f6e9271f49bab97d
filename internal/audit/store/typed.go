package store

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heed/internal/audit"
	"heed/internal/judge/acl"
	"heed/internal/judge/reason"
	"heed/rules"
)

// Run returns the version of heed of a run.
func (r *Reader) Run(id int64) (heed string, err error) {
	err = r.one(runTable, id, "SELECT heed FROM run WHERE id = %d", func(f *fields) { f.read(&heed) })
	return heed, err
}

// Configuration returns the hash and the text of settings, without secrets.
func (r *Reader) Configuration(id int64) (hash, text string, err error) {
	err = r.one(configurationTable, id, "SELECT hash, text FROM configuration WHERE id = %d", func(f *fields) { f.read(&hash, &text) })
	return hash, text, err
}

// Client is the client of a request, with the names it was judged under.
type Client struct {
	ID      int64
	Address string // as the record keeps it: in full, truncated or as a keyed hash
	User    string // authenticated to the proxy; empty: none
	Name    string // of the [[client]] that applied; empty: none
	Mode    string

	UserAgent string // as received
	Tokens    []string
	Declared  bool     // Tokens are from the settings
	Sent      string   // the User-Agent that was sent; empty: UserAgent
	Purposes  []string // what it says that it crawls for; nil: nothing
	SignedKey string   // as in audit.Entry
	SignedBy  string   // likewise

	AlsoObey []string // likewise

	Selected bool // by the Filter of Clients
}

// Configured returns the name of the [[client]] that applied; empty when none did,
// also for a client of heed run --agent, whose recorded name is acl.RunName.
func (c *Client) Configured() string {
	if c.Name == acl.RunName {
		return ""
	}
	return c.Name
}

// AgentName returns the name of an agent in reports: that of its [[client]], else
// the product tokens that it was judged under, with commas between, else "(no name)".
func AgentName(configured string, tokens []string) string {
	return cmp.Or(configured, strings.Join(tokens, ", "), "(no name)")
}

const clientColumns = "SELECT id, client, user, client_name, mode, user_agent, tokens, declared, sent, purpose, signed_key, signed_by, also_obey"

func (f *fields) client() *Client {
	c := &Client{ID: f.integer(), Address: f.text(), User: f.text(), Name: f.text(), Mode: f.text(), UserAgent: f.text()}
	tokens := f.text()
	c.Declared, c.Sent = f.flag(), f.text()
	purposes := f.text()
	c.SignedKey, c.SignedBy = f.text(), f.text()
	for _, list := range []struct {
		name, text string
		to         *[]string
	}{{"tokens", tokens, &c.Tokens}, {"purposes", purposes, &c.Purposes}, {"also_obey", f.text(), &c.AlsoObey}} {
		if list.text != "" && json.Unmarshal([]byte(list.text), list.to) != nil {
			f.fail(fmt.Errorf("%s %d: its %s are no JSON array\nSee `heed audit verify`", askerTable, c.ID, list.name))
		}
	}
	return c
}

// Client returns one client.
func (r *Reader) Client(id int64) (c *Client, err error) {
	err = r.one(askerTable, id, clientColumns+" FROM asker WHERE id = %d", func(f *fields) { c = f.client() })
	return c, err
}

// Clients calls row with every client.
func (r *Reader) Clients(filter *Filter, row func(*Client)) error {
	return r.each(clientColumns+", "+filter.Clients()+" FROM asker", func(f *fields) {
		c := f.client()
		c.Selected = f.flag()
		row(c)
	})
}

func (f *fields) origin() rules.Origin {
	return rules.Origin{Scheme: f.text(), Host: f.text(), Port: uint16(f.integer())}
}

// Site returns one site; the zero Origin for id 0.
func (r *Reader) Site(id int64) (o rules.Origin, err error) {
	if id == 0 {
		return o, nil
	}
	err = r.one(siteTable, id, "SELECT scheme, host, port FROM site WHERE id = %d", func(f *fields) { o = f.origin() })
	return o, err
}

// Sites calls row with every site, and whether filter selects it.
func (r *Reader) Sites(filter *Filter, row func(id int64, o rules.Origin, selected bool)) error {
	return r.each("SELECT id, scheme, host, port, "+filter.Hosts()+" FROM site", func(f *fields) { row(f.integer(), f.origin(), f.flag()) })
}

// RequestedSites returns the sites of the decisions that filter selects.
func (r *Reader) RequestedSites(filter *Filter) (all []rules.Origin, err error) {
	err = r.each("SELECT DISTINCT scheme, host, port FROM site WHERE id IN (SELECT site FROM entry WHERE "+r.since(filter)+" AND "+filter.Condition()+")", func(f *fields) { all = append(all, f.origin()) })
	return all, err
}

// Verdict is a verdict with its reason and the rule that decided.
type Verdict struct {
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	Group   string `json:"group,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Line    int    `json:"line,omitempty"`    // of robots.txt; 0: no rule decided
	Token   string `json:"token,omitempty"`   // the product token whose group decided
	Variant string `json:"variant,omitempty"` // the reading of the target that the rule matched; empty: the target itself
	Unseen  int    `json:"unseen,omitempty"`  // rules that might have refused what a tunnel hides
	Settled string `json:"settled,omitempty"` // the operator's reason for the exception that decided
}

// Basis is a verdict and what it rests on.
type Basis struct {
	ID     int64
	Judged string // path, host or no
	Verdict
	Detail string

	Policy, Configuration int64 // ids; 0: none
	Engine                int
	Signals               string // what the site says of the use of its pages, as JSON; empty: nothing was read
}

// Bases calls row with every basis with an id of at least from and less than before.
func (r *Reader) Bases(from, before int64, row func(*Basis)) error {
	return r.each(fmt.Sprintf("SELECT %s FROM ground WHERE id >= %d AND id < %d", strings.Join(tables[groundTable].columns, ", "), from, before), func(f *fields) {
		row(&Basis{
			ID: f.integer(), Judged: f.text(),
			Verdict: Verdict{
				Verdict: f.text(), Reason: f.text(), Token: f.text(), Group: f.text(), Rule: f.text(), Line: int(f.integer()),
				Variant: f.text(), Unseen: int(f.integer()), Settled: f.text(),
			},
			Detail: f.text(), Policy: f.integer(), Configuration: f.integer(), Engine: int(f.integer()), Signals: f.text(),
		})
	})
}

// Policy is a recorded policy of a site.
type Policy struct {
	ID, Site int64
	Snapshot int64 // 0: none was received
	Profile  string
	State    string // available, unavailable or unreachable
	Source   rules.Source
	Answer   Answer // it was made of, without SHA256; zero: none was received, or not asked for
}

func (f *fields) policy() *Policy {
	p := &Policy{ID: f.integer(), Site: f.integer(), Snapshot: f.integer(), Profile: f.text(), State: f.text()}
	p.Source = rules.Source{
		State: rules.State(max(0, slices.Index(rules.StateNames, p.State))), Status: int(f.integer()), FetchedAt: f.time(), FreshUntil: f.time(),
		Stale: f.flag(), NoConnection: f.flag(), Own: f.flag(),
	}
	if text := f.text(); text != "" {
		p.Source.Err = errors.New(text)
	}
	p.Source.Note = f.text()
	return p
}

// Policy returns one policy, with its origin and snapshot.
func (r *Reader) Policy(id int64) (p *Policy, err error) {
	err = r.one(policyTable, id, policyColumns+" FROM policy p WHERE id = %d", func(f *fields) { p = f.policy() })
	if err != nil {
		return nil, err
	}
	s := &p.Source
	if s.Origin, err = r.Site(p.Site); err != nil || p.Snapshot == 0 {
		return p, err
	}
	n, err := r.Snapshot(p.Snapshot)
	n.Origin = s.Origin
	s.Snapshot, s.RetriedAs = n, n.AskedAs
	return p, err
}

var policyColumns = "SELECT p." + strings.Join(tables[policyTable].columns, ", p.")

// Policies calls row with every policy and its Answer, in the order of their ids. Their
// sources have no origin and no snapshot.
func (r *Reader) Policies(row func(*Policy)) error {
	return r.each(policyColumns+", n.asked_as, n.time, n.status, n.body FROM policy p LEFT JOIN snapshot n ON n.id = p.snapshot ORDER BY p.id", func(f *fields) {
		p := f.policy()
		p.Answer = Answer{ID: p.Snapshot, Site: p.Site, AskedAs: f.text(), Time: f.integer(), Status: f.integer(), Body: f.integer()}
		row(p)
	})
}

// Snapshot returns one response to a request for a robots.txt, without its origin.
func (r *Reader) Snapshot(id int64) (*rules.Snapshot, error) {
	n := &rules.Snapshot{SHA256: rules.DigestOf(nil)}
	err := r.one(snapshotTable, id, `SELECT n.time, n.asked_as, n.chain, n.status, n.headers, b.sha256, b.size, b.zlib
FROM snapshot n LEFT JOIN body b ON b.id = n.body WHERE n.id = %d`, func(f *fields) {
		n.FetchedAt, n.AskedAs = f.time(), f.text()
		_ = json.Unmarshal([]byte(f.text()), &n.Chain) // an invalid value is left out; Verify reports it
		n.Status = int(f.integer())
		_ = json.Unmarshal([]byte(f.text()), &n.Header)
		copy(n.SHA256[:], f.octets())
		n.Size, n.Zlib = int(f.integer()), f.octets()
	})
	return n, err
}

// Answer is a site's response to a request for its robots.txt.
type Answer struct {
	ID, Site int64
	AskedAs  string // the User-Agent; empty: heed's own
	Time     int64  // microseconds since 1970
	Status   int64
	SHA256   string // of the file, in hexadecimal digits; empty: it was no file
	Body     int64  // the id of the file; 0: it was no file
}

// Answers calls row with every Answer.
func (r *Reader) Answers(row func(*Answer)) error {
	return r.each("SELECT n.id, n.site, n.asked_as, n.time, n.status, b.sha256, n.body FROM snapshot n LEFT JOIN body b ON b.id = n.body", func(f *fields) {
		row(&Answer{f.integer(), f.integer(), f.text(), f.integer(), f.integer(), hex.EncodeToString(f.octets()), f.integer()})
	})
}

// Body returns the octets of a robots.txt.
func (r *Reader) Body(id int64) (text []byte, err error) {
	n := &rules.Snapshot{}
	err = r.one(bodyTable, id, "SELECT sha256, size, zlib FROM body WHERE id = %d", func(f *fields) {
		copy(n.SHA256[:], f.octets())
		n.Size, n.Zlib = int(f.integer()), f.octets()
	})
	if err == nil {
		text, err = n.Body()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: robots.txt %d cannot be read: %w\nSee `heed audit verify`", r.path, id, err)
	}
	return text, nil
}

// Entry is a recorded decision.
type Entry struct {
	Seq  int64
	ID   []byte // a UUID
	Time int64  // microseconds since 1970

	Run, Client, Site, Basis int64 // ids; Site is 0 when the host is not known
	Late                     int64 // the basis of the late verdict; 0: none

	Port      int // of the client; 0: not kept
	Method    string
	Target    string
	Redacted  bool  // Target has keyed hashes in place of values
	PolicyAge int64 // milliseconds; -1: the difference of Time and the policy's time
	Delay     int64 // crawl delay in microseconds; 0: none
	Waited    int64 // microseconds, for the rules and for turns
	Turn      int64 // the part of Waited that was for turns; 0 also in records before layout 4
	Part      string
	Revises   []byte // the decision that this one replaces; nil: none

	Outcome *Outcome // nil: not recorded
}

// Outcome is the result of an exchange.
type Outcome struct {
	Status    int     `json:"status"` // 0: none was sent
	FromSite  bool    `json:"from_site"`
	Elsewhere bool    `json:"elsewhere,omitempty"` // another proxy sent the request, and heed did not see the answer
	BytesIn   int64   `json:"bytes_in"`
	BytesOut  int64   `json:"bytes_out"`
	Duration  float64 `json:"duration_s"`
	Truncated bool    `json:"truncated,omitempty"`
	Error     string  `json:"error,omitempty"`

	SiteStatus int    `json:"site_status,omitempty"` // the site's, when heed sent another in its place
	SiteAnswer string `json:"site_answer,omitempty"` // the kind of the site's refusal
	Signals    string `json:"-"`                     // what the page says of its use, as JSON; empty: nothing was read
}

// Entries calls row with every decision that filter selects, in the order of
// the record, until row returns an error.
func (r *Reader) Entries(filter *Filter, row func(*Entry) error) error {
	return r.entries(r.since(filter)+" AND "+filter.selection(), row)
}

// entries calls row with the decisions of a query, of which the text is what follows WHERE.
func (r *Reader) entries(where string, row func(*Entry) error) error {
	return r.each(entryQuery+where, func(f *fields) { f.fail(row(f.entry())) })
}

// Pull returns a func that returns the next of the decisions that filter selects, in the order
// of the record; nil after the last. The caller calls stop.
func (r *Reader) Pull(filter *Filter) (next func() (*Entry, error), stop func(), err error) {
	rows, err := r.Query(entryQuery + r.since(filter) + " AND " + filter.selection())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.path, err)
	}
	next = func() (e *Entry, err error) {
		values, err := rows.Next()
		if err == nil && values != nil {
			f := fields{values: values}
			e, err = f.entry(), f.err
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.path, err)
		}
		return e, nil
	}
	return next, rows.Close, nil
}

const entryQuery = `SELECT seq, id, time, run, asker, site, ground, port, method, target, redacted, coalesce(policy_age, -1), asked, waited, part, revises, turn,
status, from_site, bytes_in, bytes_out, duration, truncated, error, late, site_status, site_answer, outcome.signals
FROM entry LEFT JOIN outcome ON entry = seq WHERE `

// entry returns a row of entryQuery.
func (f *fields) entry() *Entry {
	e := &Entry{
		Seq: f.integer(), ID: f.octets(), Time: f.integer(), Run: f.integer(), Client: f.integer(), Site: f.integer(), Basis: f.integer(),
		Port: int(f.integer()), Method: f.text(), Target: string(f.octets()), Redacted: f.flag(), PolicyAge: f.integer(),
		Delay: f.integer(), Waited: f.integer(), Part: f.text(), Revises: f.octets(), Turn: f.integer(),
	}
	if f.null() {
		return e
	}
	e.Outcome = &Outcome{
		Status: int(f.integer()), Elsewhere: f.null(), FromSite: f.flag(), BytesIn: f.integer(), BytesOut: f.integer(),
		Duration: float64(f.integer()) / 1e6, Truncated: f.flag(), Error: f.text(),
	}
	e.Late = f.integer()
	e.Outcome.SiteStatus, e.Outcome.SiteAnswer, e.Outcome.Signals = int(f.integer()), f.text(), f.text()
	return e
}

// Request is a request as reports count it, with its last verdict: the late one if
// there is one, and the later of two decisions of which one replaces the other.
type Request struct {
	Seq, Time           int64 // as in Entry
	Client, Site, Basis int64
	Waited, Turn, Delay int64

	Ended       bool  // the rest is recorded
	SiteRefused bool  // heed let it through, and the site refused it
	Failed      bool  // heed answered it with an error (reason.FailedStatus)
	BytesIn     int64 // of the request's body; BytesOut of the answer's
	BytesOut    int64
	SiteAnswer  string // as in Outcome
	Signals     string // as in Outcome

	Method, Target string // empty unless targets were requested
	Redacted       bool   // as in Entry, likewise
}

// Requests calls row with every request in the window of filter, in the order
// of the record, with or without their targets. The Request is valid until row
// returns.
func (r *Reader) Requests(filter *Filter, targets bool, row func(*Request) error) error {
	columns := ""
	if targets {
		columns = ", method, target, redacted"
	}
	where := strings.Join(append(filter.Window(), r.since(filter), "id NOT IN (SELECT revises FROM main.entry WHERE revises IS NOT NULL)"), " AND ")
	q := &Request{}
	return r.each("SELECT seq, time, asker, site, coalesce(late, ground), waited, turn, asked, status, from_site, bytes_in, bytes_out, site_answer, outcome.signals"+columns+
		" FROM entry LEFT JOIN outcome ON entry = seq WHERE "+where+" ORDER BY seq", func(f *fields) {
		*q = Request{
			Seq: f.integer(), Time: f.integer(), Client: f.integer(), Site: f.integer(), Basis: f.integer(), Waited: f.integer(), Turn: f.integer(), Delay: f.integer(),
			Ended: !f.null(),
		}
		status, fromSite := int(f.integer()), f.flag()
		q.SiteRefused, q.Failed = fromSite && audit.SiteRefused(status), !fromSite && reason.FailedStatus(status)
		q.BytesIn, q.BytesOut, q.SiteAnswer, q.Signals = f.integer(), f.integer(), f.text(), f.text()
		if targets {
			q.Method, q.Target, q.Redacted = f.text(), string(f.octets()), f.flag()
		}
		f.fail(row(q))
	})
}

// Decisions returns the rows of the view decisions that filter selects, in the
// order of the record.
func (r *Reader) Decisions(filter *Filter) (*Rows, error) {
	where := filter.Condition()
	if where != "TRUE" {
		where = "seq IN (SELECT seq FROM entry WHERE " + r.since(filter) + " AND " + where + ")"
	}
	return r.viewRows("SELECT * FROM decisions WHERE " + where + " ORDER BY seq")
}
