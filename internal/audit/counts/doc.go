// Package counts counts what the decisions and their exchanges were: for the status and the
// dashboard (Counter), for the summary of a run (Tally), and for Prometheus (Metrics).
//
// All of them are observers. A recorder may refuse a decision, and is asked before it takes
// effect; an observer never refuses, and sees an audit.Entry once, when its exchange has
// ended: only then its class is known, and no count ever has to be taken back. What several
// of them need of an entry is worked out once (request). A tunnel whose decision was revised
// is one request, with the decision that came last.
//
// Names that clients and sites choose fill no memory: what is counted by name is bounded
// (memo.Bounded, busiest), and the labels of metrics have fixed sets of values, but for a
// bounded number of names of clients and sites. Every time series is present from the start.
//
// What is measured elsewhere is either reported to a method of Metrics (FetchDone,
// CommitDone) or read when the metrics are requested (Gauges). The folder monitoring has
// alert rules for Prometheus, with their tests, and a dashboard for Grafana; both are served
// below /metrics.
//
// The text for Prometheus is written here: the client library for it would be a sixteenth of
// heed, 35 packages with those for protocol buffers, for a format of three kinds of lines.
package counts
