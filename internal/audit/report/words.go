package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// words says what became of the requests.
func (c *Counts) words() string {
	parts := []string{commas(c.Allowed) + " allowed", commas(c.Refused) + " refused"}
	if c.WouldRefuse > 0 {
		parts = append(parts, commas(c.WouldRefuse)+" would be refused (only observed)")
	}
	if c.NotJudged > 0 {
		parts = append(parts, commas(c.NotJudged)+" not judged")
	}
	return strings.Join(parts, ", ")
}

// coverage says how much was seen.
func (c *Counts) coverage() string {
	path := c.Requests - c.NotJudged - c.ByHost
	switch {
	case c.NotJudged+c.ByHost == 0:
		return "all judged by their path"
	default:
		return fmt.Sprintf("%s judged by path, %s by host alone, %s not judged", percent(path, c.Requests), percent(c.ByHost, c.Requests), percent(c.NotJudged, c.Requests))
	}
}

func (c *Counts) waits() string {
	return fmt.Sprintf("%s, %s in all, at most %s", number(c.Waited, "request"), span(c.WaitedTotal), span(c.WaitedMost))
}

// percent writes n of all. What is not all, or not none, never looks as if it were.
func percent(n, all int64) string {
	if all == 0 {
		return "-"
	}
	switch p := 100 * float64(n) / float64(all); {
	case n == 0:
		return "0 %"
	case n == all:
		return "100 %"
	case p < 0.1:
		return "< 0.1 %"
	case p > 99.9:
		return "> 99.9 %"
	default:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
}

func share(f *float64) string {
	if f == nil {
		return "-"
	}
	return percent(int64(*f*1e6+0.5), 1e6)
}

// number writes how many of something there are.
func number(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return commas(n) + " " + one + "s"
}

// commas writes a number with a comma between thousands.
func commas(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// unit writes how long a period is: the widths are whole units of people.
func unit(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := int64(d / u.of); n > 0 && d%u.of == 0 {
			return number(n, u.name)
		}
	}
	return d.String()
}
