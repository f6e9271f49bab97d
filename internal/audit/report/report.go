package report

import "time"

// Report is what the decisions of some records come to, as data. Lists are
// ordered by their requests, the most first, and by name among equals.
type Report struct {
	Made    time.Time `json:"made"`
	Records []File    `json:"records"`
	Query   Query     `json:"-"`
	Window  string    `json:"window"` // what was asked for, in words; empty: all

	Total      Counts        `json:"total"`
	Agents     []AgentPart   `json:"agents"`
	Sites      []SitePart    `json:"sites"`
	Reasons    []Reason      `json:"reasons"`    // all that decided, over all sites
	Refusals   []Deciding    `json:"refusals"`   // what refused, or would have
	NotJudged  []Deciding    `json:"not_judged"` // what was not judged, and why
	Exceptions []Deciding    `json:"exceptions"` // decided by the operator's exceptions
	Changes    []Change      `json:"changes"`    // of sites' robots.txt
	Trouble    []Unreachable `json:"unreachable"`

	PeriodSeconds float64  `json:"period_s"` // how long each of Periods is
	Periods       []Period `json:"periods"`
	// Exempt are requests of clients that are exempt, and Unrecorded those that
	// could not be recorded: of both only the number is known.
	Exempt     int64 `json:"exempt"`
	Unrecorded int64 `json:"unrecorded"`

	ClockBack int64 `json:"clock_went_back"` // how often a decision is older than the one before it

	Conduct []Conduct `json:"conduct,omitempty"` // when it was asked for

	cube []row
}

// File is a record that was read.
type File struct {
	Name    string   `json:"name"`
	Store   string   `json:"store"`   // the id of the record
	Created string   `json:"created"` // when it was begun
	Heeds   []string `json:"heed"`    // the versions that wrote to it
	Engines []int64  `json:"engines"` // the numbers of the rules by which it was judged
	Configs []string `json:"configurations"`
	Notes   []string `json:"notes,omitempty"` // of heed run --note

	Decisions int64     `json:"decisions"`
	First     time.Time `json:"first"` // of the decisions that are still there
	Last      time.Time `json:"last"`
	Pruned    int64     `json:"pruned"` // decisions that are no longer kept
	Commit    int64     `json:"commit"` // the number of the last link of the chain
	Head      string    `json:"head"`   // its hash; empty: there is none
}

// AgentPart is what one agent asked.
type AgentPart struct {
	Agent
	Name string `json:"name"`
	Counts
	Sites   int      `json:"sites"`   // how many it asked
	Clients []Client `json:"clients"` // where it asked from
}

// Client is an address that requests came from.
type Client struct {
	Address  string `json:"address"`
	Requests int64  `json:"requests"`
}

// SitePart is what was asked of one site.
type SitePart struct {
	Site string `json:"site"`
	Counts
	Agents []AgentCount `json:"agents"` // who asked
}

// AgentCount is what one agent asked of a site.
type AgentCount struct {
	Agent string `json:"agent"`
	Counts
}

// Reason is how often decisions came about in one way, over all sites.
type Reason struct {
	Judged   string `json:"judged"`
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason"`
	Requests int64  `json:"requests"`
	Sites    int    `json:"sites"`
	Agents   int    `json:"agents"`
}

// Deciding is how often one rule, exception or reason decided about what an
// agent asked of a site.
type Deciding struct {
	Agent   string    `json:"agent"`
	Site    string    `json:"site"`
	Judged  string    `json:"judged"`
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason"`
	Group   string    `json:"group,omitempty"`
	Rule    string    `json:"rule,omitempty"`
	Line    int64     `json:"line,omitempty"`
	Settled string    `json:"settled,omitempty"` // the operator's reason for the exception
	Count   int64     `json:"count"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Change is a robots.txt that was another one when it was received again.
type Change struct {
	Site    string `json:"site"`
	AskedAs string `json:"asked_as,omitempty"` // the User-Agent it was asked under; empty: heed's own
	Before  Answer `json:"before"`
	After   Answer `json:"after"`
	Diff    string `json:"diff"` // unified; empty when one of them was no file
	Cut     bool   `json:"diff_cut,omitempty"`
}

// Answer is what a site said when it was asked for its robots.txt.
type Answer struct {
	Time   time.Time `json:"time"`
	Status int64     `json:"status"`
	SHA256 string    `json:"sha256,omitempty"` // of the file; empty: there was none
}

// Unreachable is a site whose robots.txt could not be had, so that it was
// refused, or judged by an old copy.
type Unreachable struct {
	Site     string    `json:"site"`
	State    string    `json:"state"` // unreachable, or stale: an old copy stood in
	Error    string    `json:"error"` // the last
	Requests int64     `json:"requests"`
	Refused  int64     `json:"refused"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

// row counts the decisions of one agent about one site that came about in one
// way: all other numbers are sums of these.
type row struct {
	deciding Deciding
	counts   Counts
}
