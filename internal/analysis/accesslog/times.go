package accesslog

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// stampForm is the time of the common format.
const stampForm = "02/Jan/2006:15:04:05 -0700"

// clock remembers the hour and the zone of the line before, which most lines share.
type clock struct {
	key  string
	hour time.Time
}

// time reads "02/Jan/2006:15:04:05 -0700". A leap second is the first of the next minute.
func (c *clock) time(s string) (time.Time, bool) {
	if len(s) != len(stampForm) || s[14] != ':' || s[17] != ':' {
		return time.Time{}, false
	}
	minute, second := two(s[15:17]), two(s[18:20])
	if minute > 59 || second > 60 {
		return time.Time{}, false
	}
	if len(c.key) != len(stampForm) || c.key[:14] != s[:14] || c.key[20:] != s[20:] {
		t, err := time.Parse(stampForm, s[:14]+":00:00"+s[20:])
		if err != nil {
			return time.Time{}, false
		}
		c.key, c.hour = strings.Clone(s), t
	}
	return c.hour.Add(time.Duration(minute*60+second) * time.Second), true
}

// two returns the number of two digits; 99 when they are none.
func two(s string) int {
	a, b := int(s[0])-'0', int(s[1])-'0'
	if a < 0 || a > 9 || b < 0 || b > 9 {
		return 99
	}
	return 10*a + b
}

// The forms of times that are recognised, the frequent ones first. A time without a zone
// is in UTC.
var timeForms = []string{
	time.RFC3339Nano, stampForm, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006/01/02 15:04:05",
	"2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "02/Jan/2006:15:04:05",
	time.RFC1123, time.RFC1123Z, time.ANSIC,
}

// anyTime reads a time of any of those forms, or seconds, milliseconds, microseconds or
// nanoseconds since 1970.
func (c *clock) anyTime(s string) (time.Time, bool) {
	if t, ok := c.time(s); ok {
		return t, true
	}
	if t, ok := unixTime(s, 0); ok {
		return t, true
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, s); err == nil && plausible(t) {
			return t, true
		}
	}
	return time.Time{}, false
}

// unixTime reads a number of units since 1970; a unit of 0 is found from its size.
func unixTime(s string, unit time.Duration) (time.Time, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return time.Time{}, false
	}
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	nanos, fracErr := strconv.ParseUint(((fraction + "000000000")[:9]), 10, 64)
	if err != nil || fracErr != nil || strings.Trim(fraction, "0123456789") != "" {
		x, err := strconv.ParseFloat(s, 64) // such as 1.7e9
		if err != nil || !(x > 0 && x < math.MaxInt64) {
			return time.Time{}, false
		}
		whole, seconds := math.Modf(x)
		n, nanos = int64(whole), uint64(seconds*1e9)
	}
	if unit == 0 {
		switch {
		case n < 1e11:
			unit = time.Second
		case n < 1e14:
			unit = time.Millisecond
		case n < 1e17:
			unit = time.Microsecond
		default:
			unit = time.Nanosecond
		}
	}
	perSecond := int64(time.Second / unit)
	t := time.Unix(n/perSecond, n%perSecond*int64(unit)+int64(nanos)/perSecond).UTC()
	return t, plausible(t)
}

// plausible reports whether a time has a year of four digits, which also fits into
// microseconds since 1970.
func plausible(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

// strftime returns the form of Go for a form of strftime; false when it has what the
// forms of Go have not.
func strftime(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		form, ok := map[byte]string{
			'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'm': "01", 'y': "06", 'Y': "2006",
			'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'z': "-0700", 'Z': "MST", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04",
			'D': "01/02/06", 'c': time.ANSIC, 'j': "002", '%': "%", 'n': "\n", 't': "\t",
		}[s[i]]
		if !ok {
			return "", false
		}
		b.WriteString(form)
	}
	return b.String(), true
}
