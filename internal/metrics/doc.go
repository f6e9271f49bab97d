// Package metrics counts what heed does, for Prometheus.
//
// Metrics is one of the recorders of decisions: its counts come from the same audit.Entry
// as the record. An entry is counted when its exchange ends, since only then its class is
// known and a counter never decreases. Labels have fixed sets of values, and every series is
// present from the start; the names of clients and sites are bounded (see maxNamed), so that
// neither can add time series without end.
//
// What is measured elsewhere is either reported to a method (FetchDone, CommitDone) or
// read when the metrics are requested (Gauges).
//
// The folder monitoring has alert rules for Prometheus, with their tests, and a dashboard
// for Grafana; both are served below /metrics.
//
// Outside package: github.com/prometheus/client_golang.
package metrics
