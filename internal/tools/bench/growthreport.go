package main

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// growthReport is the outcome of a series.
type growthReport struct {
	Name   string        `json:"name"`
	Title  string        `json:"title"`
	Points []growthPoint `json:"points"`
}

// growthPoint is what a point of a series showed. Ratio is the median of its cost by
// that of the first point in the same round.
type growthPoint struct {
	N     int     `json:"n"`
	Ratio float64 `json:"first_ratio"`
	figures
}

func newGrowthReport(s series, entrants []*entrant) growthReport {
	g := growthReport{Name: s.name, Title: s.title}
	for i, e := range entrants {
		p := growthPoint{N: s.points[i].n, figures: e.figures()}
		p.Ratio, _ = ratio(e.costs(), entrants[0].costs())
		g.Points = append(g.Points, p)
	}
	return g
}

// growthTable prints the series for people.
func (r report) growthTable(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "series\tn\tus/request\tquartiles\tof the first\treq/s\tp99 ms\tMiB\twrong\t")
	for _, g := range r.Growth {
		for _, p := range g.Points {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s to %s\t%s\t%.0f\t%.1f\t%.0f\t%d\t\n", g.Name, p.N, number(p.Median),
				number(p.LowerQuart), number(p.UpperQuart), orDash(p.Ratio, "%.2f"), p.PerSecond, p.P99/1000, p.Resident, p.Wrong)
			if p.FirstWrong != "" {
				defer fmt.Fprintf(out, "%s, %d: the first wrong answer: %s\n", g.Name, p.N, p.FirstWrong)
			}
		}
	}
	return w.Flush()
}

// Measures of a chart of growth, in its own units.
const (
	plotWidth  = 340
	plotHeight = 150
	plotLeft   = 44 // of the lines, for the labels of the costs
	plotRight  = 20
	plotTop    = 30
	plotBottom = 34
)

// growthSVG draws each series as a line: what grows on a logarithmic axis, the cost on
// a linear one from 0, with the quartiles as thin lines.
func (r report) growthSVG() string {
	var plots strings.Builder
	for i, g := range r.Growth {
		fmt.Fprintf(&plots, "<g transform=\"translate(%d,%d)\">\n", i%2*(plotWidth+40), 40+i/2*(plotHeight+30))
		g.plot(&plots)
		plots.WriteString("</g>\n")
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" role="img">
<title>What a request costs heed as one thing grows</title>
<desc>Medians of %d rounds of %v on %d CPUs, %s.</desc>
<rect width="100%%" height="100%%" fill="#ffffff"/>
<text x="8" y="20" font-size="14">CPU time of a request in microseconds, as one thing grows</text>
%s</svg>
`, 2*plotWidth+40, 40+(len(r.Growth)+1)/2*(plotHeight+30), r.Rounds, r.Slice, r.CPUs, html.EscapeString(r.Go), plots.String())
	return out.String()
}

// plot draws one series.
func (g growthReport) plot(out *strings.Builder) {
	top, last := 0.0, 1.0
	for _, p := range g.Points {
		top, last = max(top, p.UpperQuart), max(last, decades(p.N))
	}
	x := func(p growthPoint) float64 { return plotLeft + decades(p.N)/last*(plotWidth-plotLeft-plotRight) }
	y := func(cost float64) float64 {
		return plotTop + (1-cost/max(top, 1))*(plotHeight-plotTop-plotBottom)
	}
	fmt.Fprintf(out, "<text x=\"8\" y=\"14\" font-weight=\"bold\">%s</text>\n", html.EscapeString(g.Title))
	for _, cost := range []float64{0, top / 2, top} {
		fmt.Fprintf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1[3]f\" stroke=\"#dddddd\"/>\n", plotLeft, plotWidth-plotRight, y(cost))
		fmt.Fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f</text>\n", plotLeft-6, y(cost)+4, cost)
	}
	var line strings.Builder
	for _, p := range g.Points {
		fmt.Fprintf(&line, "%.1f,%.1f ", x(p), y(p.Median))
		fmt.Fprintf(out, "<line x1=\"%.1f\" x2=\"%.1[1]f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#333333\"/>\n", x(p), y(p.LowerQuart), y(p.UpperQuart))
		fmt.Fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x(p), y(p.Median), fills["heed"])
		fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x(p), plotHeight-plotBottom+16, short(p.N))
	}
	fmt.Fprintf(out, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", strings.TrimSpace(line.String()), fills["heed"])
}

// decades is the place of n on a logarithmic axis that begins with 0.
func decades(n int) float64 { return math.Log10(float64(max(n, 1))) }

// short writes a count with k and M.
func short(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1_000:
		return fmt.Sprintf("%dk", n/1_000)
	}
	return fmt.Sprint(n)
}
