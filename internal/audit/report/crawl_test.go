package report_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// crawl is a record of n requests by three robots to 200 sites in three days:
// most allowed, some refused, some sites changed their rules, some were lost.
func crawl(t testing.TB, n int) string {
	t.Helper()
	r, random := newRecord(t), rand.New(rand.NewPCG(9309, 8))
	askers := []int64{
		r.asker("192.0.2.7", "newsbot", "NewsBot/2.1 (+https://bots.example/news)"),
		r.asker("192.0.2.8", "newsbot", "NewsBot/2.1 (+https://bots.example/news)"),
		r.asker("192.0.2.9", "archiver", "Archiver/0.9"),
		r.asker("2001:db8::5", "pricewatch", "Mozilla/5.0 (compatible; PriceWatch/3.2)"),
	}
	gap := 72 * time.Hour / time.Duration(n)
	for i := range n {
		at := time.Duration(i)*gap + time.Duration(random.Int64N(int64(gap)))
		number := int(200 * random.Float64() * random.Float64())
		host := fmt.Sprintf("www%d.site.example", number)
		asker := askers[random.IntN(len(askers))]
		target := fmt.Sprintf("/articles/%d/page-%d.html", random.IntN(1+n/500), random.IntN(500))
		one(r, at, asker, host, number, target, i%97 == 0)
	}
	return r.file()
}

// one is a request of the crawl, and what becomes of it.
func one(r *record, at time.Duration, asker int64, host string, number int, target string, robots bool) {
	p := rulesOf(r, host, number, at)
	allow := r.ground("path", "allow", "no-rule", "", 0, nil, p)
	switch refused := len(target)%7 == 0; {
	case robots:
		r.ended(r.entry(at, asker, host, "/robots.txt", r.ground("path", "allow", "robots-txt", "", 0, nil, nil), 0), 200, true, 64)
	case number%40 == 17:
		r.ended(r.entry(at, asker, host, target, r.ground("path", "refuse", "robots-unreachable", "", 0, nil, r.lost(host, "the site answered 503")), 0), 503, false, 700)
	case number%40 == 23:
		r.ended(r.entry(at, asker, host, "", r.ground("no", "allow", "tunnel", "", 0, nil, nil), 0), 200, false, 0)
	case refused && number%10 == 3:
		r.ended(r.entry(at, asker, host, target, r.ground("path", "allow", "override", "Allow: /articles/", 0, "mail of 3 May", p), 0), 200, true, 9000)
	case refused && number%10 == 4:
		r.ended(r.entry(at, asker, host, target, r.ground("path", "would-refuse", "rule", "Disallow: /articles/", 2, nil, p), 0), 200, true, 9000)
	case refused:
		r.ended(r.entry(at, asker, host, target, r.ground("path", "refuse", "rule", "Disallow: /articles/", 2, nil, p), 0), 403, false, 700)
	default:
		r.ended(r.entry(at, asker, host, target, allow, time.Duration(number%3)*40*time.Millisecond), 200, true, 14000)
	}
}

// rulesOf is what a site's robots.txt says at a time: some change on the second day.
func rulesOf(r *record, host string, number int, at time.Duration) int64 {
	text := fmt.Sprintf("User-agent: *\nDisallow: /articles/\nCrawl-delay: %d\n", number%4)
	if day := 30 * time.Hour; number%25 == 3 && at > day {
		return r.policy(host, day, text+"Disallow: /new\n")
	}
	return r.policy(host, 0, text)
}
