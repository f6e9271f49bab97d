package main

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Measures of the chart, in its own units.
const (
	chartWidth = 760
	labelWidth = 130
	barsWidth  = 480
	barHeight  = 13
	barGap     = 3
	headHeight = 44
	caseHeight = 24 // of a case's title
	fullBar    = 3  // times heed's cost: a longer bar is cut
)

// fills are the colours of contenders; the labels distinguish them as well.
var fills = map[string]string{"heed": "#1b6ca8", "against": "#6fa8d0", "heed-bare": "#a9cbe3"}

const otherFill = "#b8b8b8"

// svg draws the medians of each case as bars, heed's being 1, with the quartiles as a
// thin line. Cases without heed are left out.
func (r report) svg() string {
	var rows strings.Builder
	y := headHeight
	for _, c := range r.Cases {
		at := slices.IndexFunc(c.Contenders, func(e contenderReport) bool { return e.Name == "heed" })
		if at < 0 || c.Contenders[at].Median <= 0 {
			continue
		}
		one := c.Contenders[at].Median
		y += caseHeight
		fmt.Fprintf(&rows, "<text x=\"8\" y=\"%d\" font-weight=\"bold\">%s (%s)</text>\n", y-8, html.EscapeString(c.Title), html.EscapeString(c.Unit))
		for _, e := range c.Contenders {
			bar(&rows, y, e, one)
			y += barHeight + barGap
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" role="img">
<title>Cost of heed and of other proxies</title>
<desc>Medians of %d rounds of %v on %d CPUs, %s. The bars are in proportion to heed in the same case.</desc>
<rect width="100%%" height="100%%" fill="#ffffff"/>
<text x="8" y="20" font-size="14">Cost per request; shorter is better</text>
<text x="8" y="36">Medians of %[3]d rounds of %[4]v, %[5]d CPUs, %[6]s; heed enforces, records and logs</text>
%[7]s</svg>
`, chartWidth, y+10, r.Rounds, r.Slice, r.CPUs, html.EscapeString(r.Go), rows.String())
	return out.String()
}

// bar draws one contender's row: name, bar, quartiles, and the median.
func bar(out *strings.Builder, y int, e contenderReport, one float64) {
	length := func(v float64) float64 { return labelWidth + barsWidth*min(v/one, fullBar)/fullBar }
	fill := fills[e.Name]
	if fill == "" {
		fill = otherFill
	}
	middle := float64(y) + barHeight/2.0
	end := length(e.Median)
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", labelWidth-6, y+10, html.EscapeString(e.Name))
	fmt.Fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", labelWidth, y, end-labelWidth, barHeight, fill)
	fmt.Fprintf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#333333\"/>\n",
		length(e.LowerQuart), length(e.UpperQuart), middle, middle)
	cut := ""
	if e.Median > fullBar*one {
		cut = ", cut"
	}
	fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\">%s (%.2f%s)</text>\n", max(end, length(e.UpperQuart))+5, y+10, number(e.Median), e.Median/one, cut)
}
