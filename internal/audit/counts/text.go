package counts

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// textType is the media type of Prometheus's text format, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
const textType = "text/plain; version=0.0.4; charset=utf-8"

// Kinds of metrics, as the text format has them.
const (
	counterKind   = "counter"
	gaugeKind     = "gauge"
	histogramKind = "histogram"
	summaryKind   = "summary"
)

// exposition is the answer to a scrape, in the text format. All samples of a metric follow its
// family.
type exposition struct{ bytes.Buffer }

// Escapes of the text format.
var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// family begins a metric.
func (x *exposition) family(name, kind, help string) {
	for _, s := range []string{"# HELP ", name, " ", helpEscapes.Replace(help), "\n# TYPE ", name, " ", kind, "\n"} {
		x.WriteString(s)
	}
}

// sample writes a value of the metric. labels are names, in order, each with its value, which
// is UTF-8.
func (x *exposition) sample(name string, value float64, labels ...string) {
	x.WriteString(name)
	before := "{"
	for pair := range slices.Chunk(labels, 2) {
		for _, s := range []string{before, pair[0], `="`, valueEscapes.Replace(pair[1]), `"`} {
			x.WriteString(s)
		}
		before = ","
	}
	if before == "," {
		x.WriteString("}")
	}
	x.WriteString(" " + number(value) + "\n")
}

// one writes a metric that has one sample.
func (x *exposition) one(name, kind, help string, value float64) {
	x.family(name, kind, help)
	x.sample(name, value)
}

// number formats a value of a sample or of a label.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// histogram counts times by how long they were.
type histogram struct {
	bounds []float64 // seconds, in order
	counts []int64   // of those up to each bound and above the one before; the last: above all
	sum    time.Duration
}

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, counts: make([]int64, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) {
	i, _ := slices.BinarySearch(h.bounds, d.Seconds())
	h.counts[i]++
	h.sum += d
}

// write writes the samples of h.
func (h *histogram) write(x *exposition, name string, labels ...string) {
	n := int64(0)
	for i, count := range h.counts {
		n += count
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = number(h.bounds[i])
		}
		x.sample(name+"_bucket", float64(n), slices.Concat(labels, []string{"le", bound})...)
	}
	x.sample(name+"_sum", h.sum.Seconds(), labels...)
	x.sample(name+"_count", float64(n), labels...)
}
