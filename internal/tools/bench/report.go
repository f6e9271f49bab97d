package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// report is what a run showed.
type report struct {
	Time    time.Time      `json:"time"`
	Command []string       `json:"command"`
	CPUs    int            `json:"cpus"`
	Go      string         `json:"go"`
	Rounds  int            `json:"rounds"`
	Slice   time.Duration  `json:"slice_ns"`
	Profile string         `json:"profile,omitempty"` // with which heed was built
	Cases   []caseReport   `json:"cases"`
	Growth  []growthReport `json:"growth,omitempty"`
}

// caseReport is the outcome of a case.
type caseReport struct {
	Name       string            `json:"name"`
	Title      string            `json:"title"`
	Unit       string            `json:"unit"`
	Contenders []contenderReport `json:"contenders"`
}

// contenderReport is what a contender showed in a case. Ratio is the median of heed's
// cost by this one's in the same round; 0: heed did not take part.
type contenderReport struct {
	Name  string  `json:"name"`
	Ratio float64 `json:"heed_ratio,omitempty"`
	figures
}

// figures are what the samples of an entrant showed.
type figures struct {
	Median     float64  `json:"median"`
	LowerQuart float64  `json:"lower_quartile"`
	UpperQuart float64  `json:"upper_quartile"`
	PerSecond  float64  `json:"per_second"` // medians, as all that follow
	P99        float64  `json:"p99_us"`
	Resident   float64  `json:"resident_mib"`
	Wrong      int64    `json:"wrong"`
	FirstWrong string   `json:"first_wrong,omitempty"`
	Samples    []sample `json:"samples"`
}

func newReport(rounds int, slice time.Duration) report {
	return report{Time: time.Now(), Command: os.Args[1:], CPUs: runtime.NumCPU(), Go: runtime.Version(), Rounds: rounds, Slice: slice}
}

func newCaseReport(w workload, entrants []*entrant) caseReport {
	c := caseReport{Name: w.name, Title: w.title, Unit: w.unit}
	var heeds []float64
	for _, e := range entrants {
		if e.name == "heed" {
			heeds = e.costs()
		}
	}
	for _, e := range entrants {
		r := contenderReport{Name: e.name, figures: e.figures()}
		r.Ratio, _ = ratio(heeds, e.costs())
		c.Contenders = append(c.Contenders, r)
	}
	return c
}

func (e *entrant) figures() figures {
	costs := e.costs()
	of := func(value func(sample) float64) float64 {
		var values []float64
		for _, s := range e.samples {
			values = append(values, value(s))
		}
		return median(values)
	}
	return figures{
		Median: median(costs), LowerQuart: quantile(costs, 0.25), UpperQuart: quantile(costs, 0.75),
		PerSecond: of(func(s sample) float64 { return s.PerSecond }),
		P99:       of(func(s sample) float64 { return float64(s.P99.Microseconds()) }),
		Resident:  of(func(s sample) float64 { return float64(s.Resident) / (1 << 20) }),
		Wrong:     e.wrong, FirstWrong: e.first, Samples: e.samples,
	}
}

// wrong is the number of wrong answers of all contenders.
func (r report) wrong() (n int64) {
	for _, c := range r.Cases {
		for _, e := range c.Contenders {
			n += e.Wrong
		}
	}
	for _, g := range r.Growth {
		for _, p := range g.Points {
			n += p.Wrong
		}
	}
	return n
}

// table prints the report for people.
func (r report) table(out io.Writer) error {
	fmt.Fprintf(out, "%d rounds of %v, %d CPUs, %s\n", r.Rounds, r.Slice, r.CPUs, r.Go)
	if len(r.Growth) > 0 {
		if err := r.growthTable(out); err != nil {
			return err
		}
	}
	if len(r.Cases) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\tcontender\tmedian\tquartiles\tunit\theed/it\treq/s\tp99 ms\tMiB\twrong\t")
	for _, c := range r.Cases {
		for _, e := range c.Contenders {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s to %s\t%s\t%s\t%s\t%s\t%.0f\t%d\t\n", c.Name, e.Name,
				number(e.Median), number(e.LowerQuart), number(e.UpperQuart), c.Unit, orDash(e.Ratio, "%.2f"),
				orDash(e.PerSecond, "%.0f"), orDash(e.P99/1000, "%.1f"), e.Resident, e.Wrong)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	r.notes(out)
	return nil
}

// notes prints what the table has no column for.
func (r report) notes(out io.Writer) {
	for _, c := range r.Cases {
		for _, e := range c.Contenders {
			if e.FirstWrong != "" {
				fmt.Fprintf(out, "%s, %s: the first wrong answer: %s\n", c.Name, e.Name, e.FirstWrong)
			}
			var resumed, reopened, requests int64
			var passed []float64
			for _, s := range e.Samples {
				resumed, reopened, requests = resumed+s.Resumed, reopened+s.Reopened, requests+s.Requests
				passed = append(passed, s.Passed)
			}
			if c.Name == "tls-resumed" {
				fmt.Fprintf(out, "%s, %s: %d of %d TLS sessions were resumed\n", c.Name, e.Name, resumed, requests)
			}
			if reopened > 0 {
				fmt.Fprintf(out, "%s, %s: %d connections closed by the proxy and opened again\n", c.Name, e.Name, reopened)
			}
			if m := median(passed); m > 0 {
				fmt.Fprintf(out, "%s, %s: %.0f ms passed until the first answer\n", c.Name, e.Name, m)
			}
		}
	}
	one, many := r.find("plain-1k"), r.find("hosts")
	for _, e := range many.Contenders {
		if i := slices.IndexFunc(one.Contenders, func(o contenderReport) bool { return o.Name == e.Name }); i >= 0 && one.Contenders[i].Median > 0 {
			fmt.Fprintf(out, "many hosts by one host, %s: %.2f\n", e.Name, e.Median/one.Contenders[i].Median)
		}
	}
}

func (r report) find(name string) caseReport {
	i := slices.IndexFunc(r.Cases, func(c caseReport) bool { return c.Name == name })
	if i < 0 {
		return caseReport{}
	}
	return r.Cases[i]
}

func (r report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// number prints a cost with three digits or more.
func number(v float64) string {
	digits := 0
	if v < 100 {
		digits = 1
	}
	if v < 10 {
		digits = 2
	}
	return fmt.Sprintf("%.*f", digits, v)
}

func orDash(v float64, format string) string {
	if cmp.Compare(v, 0) == 0 {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
