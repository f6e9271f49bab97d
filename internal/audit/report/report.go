package report

import (
	"time"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/judge/reason"
)

// Report summarizes the decisions of records. Lists are
// ordered by their requests, the most first, and by name among equals.
type Report struct {
	Made    time.Time    `json:"made"`
	Records []store.File `json:"records"`
	Query   Query        `json:"-"`
	Window  string       `json:"window"` // what was asked for, in words; empty: all

	// By is what Agents are, here and in all lists: agent, address or user.
	By string `json:"by"`

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
	// Asked are heed's own requests for a robots.txt under the names of clients, after an
	// answer of 401 or 403. They are in none of the counts.
	Asked int64 `json:"robots_asked_as_clients,omitempty"`
	// Gaps are the times in which requests were refused because the record could not
	// be written. They are in none of the counts.
	Gaps []audit.Gap `json:"gaps,omitempty"`

	ClockBack int64 `json:"clock_went_back"` // how often a decision is older than the one before it

	Conduct []Conduct `json:"conduct,omitempty"` // when it was asked for

	Use *Use `json:"use,omitempty"` // by purpose; nil: no purpose and no statement was recorded

	cube []row
}

// AgentPart is what one agent asked.
type AgentPart struct {
	Agent
	Name string `json:"name"`
	Counts
	AlsoObey []string `json:"also_obey,omitempty"` // the product tokens whose groups it obeyed besides its own
	Sites    int      `json:"sites"`               // how many it asked
	Clients  []Client `json:"clients"`             // where it asked from
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
	Way            // without group, rule and exception
	Requests int64 `json:"requests"`
	Sites    int   `json:"sites"`
	Agents   int   `json:"agents"`

	Classes reason.Counts `json:"classes"`
}

// Way is how a decision came about: a basis, without its policy.
type Way struct {
	Judged  string `json:"judged"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	Group   string `json:"group,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Line    int64  `json:"line,omitempty"`
	Settled string `json:"settled,omitempty"` // the operator's reason for the exception
}

// Deciding is how often one rule, exception or reason decided about what an
// agent asked of a site.
type Deciding struct {
	Agent string `json:"agent"`
	Site  string `json:"site"`
	Way
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
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

// Answer is a site's response to a request for its robots.txt.
type Answer struct {
	Time   time.Time `json:"time"`
	Status int64     `json:"status"`
	SHA256 string    `json:"sha256,omitempty"` // of the file; empty: there was none
}

// Unreachable is a site whose robots.txt could not be fetched, so that requests were
// refused, or judged by a stale copy.
type Unreachable struct {
	Site     string    `json:"site"`
	State    string    `json:"state"` // unreachable, or stale: judged by an old copy
	Error    string    `json:"error"` // the last
	Requests int64     `json:"requests"`
	Refused  int64     `json:"refused"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`

	Classes reason.Counts `json:"classes"`
}

// row counts the decisions of one agent about one site that came about in one
// way: all other numbers are sums of these.
type row struct {
	deciding Deciding
	counts   Counts
}
