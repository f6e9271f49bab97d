package audittest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"heed/rules"
)

// site is a site of the crawl and its rules.
type site struct {
	policy  *rules.Policy
	fetches int
	pages   int
}

var (
	hosts    = []string{"www", "shop", "blog", "news", "docs", "forum"}
	sections = []string{"products", "articles", "category", "news", "user", "download", "archive", "images", "help", "search", "private", "cart", "tmp", "admin"}
	words    = []string{"red", "small", "annual", "report", "guide", "summer", "open", "data", "how-to", "review", "table", "winter", "city", "music", "story"}
)

// fetch gets the rules of the site number, for the first time or again: then most
// are confirmed as they were, a few have changed.
func (m *maker) fetch(s *site, number int) {
	s.fetches++
	fresh := m.now.Add(time.Hour + time.Duration(m.random.IntN(23))*time.Hour)
	if number%10 == 0 {
		fresh = m.now.Add(20 * time.Minute) // these change
	}
	if s.policy != nil && number%10 != 0 && s.policy.Source().Snapshot != nil {
		source := s.policy.Source()
		source.FetchedAt, source.FreshUntil = m.now, fresh
		s.policy = s.policy.With(source)
		return
	}
	o := rules.Origin{Scheme: "https", Host: fmt.Sprintf("%s.site%d.example", hosts[number%len(hosts)], number), Port: 443}
	if number%7 == 0 {
		o.Scheme, o.Port = "http", 80
	}
	source := rules.Source{Origin: o, FetchedAt: m.now, FreshUntil: fresh}
	a := &rules.Snapshot{Origin: o, FetchedAt: m.now, Chain: []string{o.RobotsURL()}, Header: map[string][]string{
		"Content-Type": {"text/plain; charset=utf-8"}, "Cache-Control": {"max-age=86400"}, "Etag": {fmt.Sprintf(`"%x-%x"`, number, s.fetches)},
	}}
	switch kind := number % 20; {
	case kind < 4: // there is none
		source.State, source.Status, a.Status = rules.Unavailable, http.StatusNotFound, http.StatusNotFound
		source.Snapshot = a
		s.policy = rules.New(source, nil)
	case kind == 4 && number%100 == 4: // it cannot be had
		source.State, source.FetchedAt, source.Err = rules.Unreachable, time.Time{}, errors.New("robots.txt: the site answered with status 503")
		source.FreshUntil = m.now.Add(15 * time.Minute)
		source.RetryAt = source.FreshUntil
		s.policy = rules.New(source, nil)
	default:
		body := []byte(robots(number, s.fetches))
		a.Status, source.State, source.Status = http.StatusOK, rules.Available, http.StatusOK
		a.Pack(body)
		source.Snapshot = a
		s.policy = rules.New(source, body)
	}
}

// robots is the file of the site number as it is at one time: a third of the
// sites have the file of a common program, others one of their own.
func robots(number, version int) string {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i, section := range sections {
		if (number>>(i%7)+i)%3 == 0 || section == "private" {
			fmt.Fprintf(&b, "Disallow: /%s/\n", section)
		}
	}
	if number%3 > 0 {
		for i := range 5 + number%20 {
			fmt.Fprintf(&b, "Disallow: /*%s-%d*?sort=\n", words[(number+i)%len(words)], number*31+i)
		}
		fmt.Fprintf(&b, "Allow: /%s/%s\nCrawl-delay: %d\n\n", sections[number%len(sections)], words[number%len(words)], 1+number%10)
		fmt.Fprintf(&b, "User-agent: ExampleBot\nDisallow: /%s/\nDisallow: /*.pdf$\n\n", sections[(number+version)%len(sections)])
		fmt.Fprintf(&b, "Sitemap: https://www.site%d.example/sitemap.xml\n", number)
	}
	return b.String()
}

// target is the next page of the site.
func (m *maker) target(s *site) string {
	s.pages++
	if s.pages == 1 {
		return "/"
	}
	b := append(make([]byte, 0, 64), '/')
	b = append(append(b, sections[m.random.IntN(len(sections))]...), '/')
	for range m.random.IntN(3) {
		b = append(append(b, words[m.random.IntN(len(words))]...), '-')
	}
	b = append(append(b, words[m.random.IntN(len(words))]...), '-')
	b = strconv.AppendInt(b, int64(m.random.IntN(1_000_000)), 10)
	switch m.random.IntN(10) {
	case 0:
		b = append(b, "?page="...)
		b = strconv.AppendInt(b, int64(m.random.IntN(40)), 10)
	case 1:
		b = append(b, ".pdf"...)
	default:
		b = append(b, ".html"...)
	}
	return string(b)
}
