// Package clock reads what sites write about time: waits, rates, hours and dates. It reads
// the forms of the standards, and the other forms whose meaning is obvious. Where a text may
// mean two things, the longer wait counts.
//
// Results are exact when the text has the form of the standard, so that other robots read it
// in the same way.
package clock

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"heed/internal/base/memo"
)

// Most is the longest time that is read; a longer one counts as this.
const Most = 365 * 24 * time.Hour

// maxText is the length of the longest text that is read, in bytes.
const maxText = 200

// Seconds reads a number of seconds with a decimal point or comma, such as a Crawl-delay. Other
// forms are read as well: "10s", "2 minutes", "1h30m", "PT10S", "1:30", "5-10", "every 10 sec".
// Of several times the longest counts.
func Seconds(s string) (d time.Duration, exact, ok bool) {
	number := strings.Replace(s, ",", ".", 1)
	if thousands().MatchString(s) {
		number = "" // "1,000" is more likely a thousand, and the longer wait
	}
	if number != "" && number[0]|0x20 != 'e' && strings.Trim(number, "0123456789.eE") == "" {
		if seconds, err := strconv.ParseFloat(number, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			return duration(seconds, time.Second), true, true
		}
	}
	if s = plain(s); s == "" || len(s) > maxText || strings.HasPrefix(s, "-") {
		return 0, false, false
	}
	if m := iso().FindStringSubmatch(s); m != nil && strings.ContainsAny(s, "0123456789") {
		for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
			d += duration(numberOf(m[i+1]), unit)
		}
		return min(d, Most), false, true
	}
	if m := clock().FindStringSubmatch(s); m != nil {
		d = duration(numberOf(m[1]), time.Hour) + duration(numberOf(m[2]), time.Minute) + duration(numberOf(m[3]), time.Second)
		return min(d, Most), false, true
	}
	d, ok = phrase(s)
	return d, false, ok
}

var (
	thousands = memo.Expression(`^[1-9][0-9]{0,2}(,[0-9]{3})+$`)
	iso       = memo.Expression(`^p(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:[.,]\d+)?)s)?)?$`)
	clock     = memo.Expression(`^(?:(\d{1,3}):)?(\d{1,3}):(\d{2})$`)
	// part is a number with the letter before it, if that is of no earlier part, and the word
	// behind it.
	part = memo.Expression(`(\p{L}?)(\d{1,3}(?:,\d{3})+|\d+(?:[.,]\d+)?|\.\d+)(\s*)(\p{L}*)`)
	// word is one that may be between a number and its unit, or that means nothing.
	word = memo.Expression(`\p{L}{2,}`)
)

// units are the words for units of time.
var units = unitsOf(map[time.Duration]string{
	time.Millisecond: "ms msec msecs millis millisecond milliseconds",
	time.Second:      "s sec secs second seconds sek sekunde sekunden segundo segundos seconde secondes secondi secondo с сек секунд секунда секунды 秒 秒钟 초",
	time.Minute:      "m mn min mins minute minutes minuten minuto minutos minuti мин минут минута минуты 分 分钟 분",
	time.Hour:        "h hr hrs hour hours std stunde stunden hora horas heure heures ora ore ч час часа часов 小时 시간",
	24 * time.Hour:   "d day days tag tage tagen jour jours día días",
})

func unitsOf(table map[time.Duration]string) map[string]time.Duration {
	all := map[string]time.Duration{}
	for unit, words := range table {
		for word := range strings.FieldsSeq(words) {
			all[word] = unit
		}
	}
	return all
}

// phrase reads numbers with units among words. Numbers of falling units add up ("1h 30m");
// otherwise the longest counts. Without units one number is meant in seconds.
func phrase(s string) (longest time.Duration, ok bool) {
	var sum, last time.Duration
	bare, count, rest := 0.0, 0, s
	for _, m := range part().FindAllStringSubmatch(s, -1) {
		rest = strings.Replace(rest, m[2]+m[3]+m[4], " ", 1)
		unit, known := units[m[4]]
		switch {
		case known && m[1] == "":
			if last == 0 || unit >= last {
				sum = 0
			}
			sum, last = sum+duration(numberOf(m[2]), unit), unit
			longest, ok = max(longest, sum), true
		case m[1] != "", m[4] != "" && m[3] == "": // "v2", "0x10"
			return 0, false
		default:
			count++
			bare = max(bare, numberOf(m[2]))
		}
	}
	if words := word().FindAllString(rest, -1); !ok && count > 0 && bare > 0 && (count == 1 || len(words) == 0) {
		return duration(bare, time.Second), true
	}
	return min(longest, Most), ok
}

// duration returns a number of units, at most Most.
func duration(n float64, unit time.Duration) time.Duration {
	return time.Duration(min(n*float64(unit), float64(Most)))
}

// numberOf reads a number with a decimal point or comma, or with commas between thousands.
func numberOf(s string) float64 {
	if thousands().MatchString(s) {
		s = strings.ReplaceAll(s, ",", "")
	}
	n, _ := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64) // an empty one is 0, one that is too long is infinite
	return n
}

// plain returns s in lower case, with plain spaces, digits and hyphens, and without quotation
// marks, brackets and other signs around it.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r):
			return -1
		case unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.Pd, r), r == '−':
			return '-'
		case r >= '！' && r <= '～': // full width
			return unicode.ToLower(r - '！' + '!')
		}
		return unicode.ToLower(r)
	}, s[:min(len(s), 4*maxText)])
	return strings.Trim(s, " \"'“”‘’«»()[]<>;:=,.+~≈")
}
