package study

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"heed/internal/figures"
	"heed/internal/safetext"
)

// Cell writes a value for people; "-" where it is not known or not defined.
func (k Kind) Cell(v any) string {
	if v == nil {
		return "-"
	}
	switch v := v.(type) {
	case int64:
		if k == Bytes {
			return figures.Size(v)
		}
		return figures.Commas(v)
	case float64:
		switch k {
		case Share:
			return figures.Percent(int64(v*1e9+0.5), 1e9)
		case Seconds:
			return duration(v)
		}
		return number(v)
	case string:
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil && k == Moment {
			return t.Format("2006-01-02 15:04:05")
		}
		if k == Digest && len(v) > 12 {
			return v[:12]
		}
		return safetext.Visible(v)
	}
	return safetext.Visible(fmt.Sprint(v))
}

// number writes a statistic.
func number(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	if math.Abs(f) < 0.001 {
		return "< 0.001"
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}

// duration writes a time in seconds.
func duration(s float64) string {
	switch {
	case s < 120:
		return strconv.FormatFloat(s, 'f', -1, 64) + " s"
	case s < 2*3600:
		return strconv.FormatFloat(s/60, 'f', 1, 64) + " min"
	case s < 48*3600:
		return strconv.FormatFloat(s/3600, 'f', 1, 64) + " h"
	}
	return strconv.FormatFloat(s/86400, 'f', 1, 64) + " d"
}
