package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// series is what a request costs in heed as one thing grows.
type series struct {
	name, title string // title is what grows
	points      []point
}

// point is one size of what grows.
type point struct {
	n        int
	workload workload
}

// ruleCounts are the numbers of rules in the robots.txt files of the series "rules".
var ruleCounts = []int{10, 100, 1_000, 10_000, 100_000}

// growth returns all series, up to s.Most.
func growth(s scale) []series {
	of := func(name, title string, counts []int, change func(w *workload, n int)) series {
		all := series{name: name, title: title}
		for _, n := range upTo(s.Most, counts) {
			w := plainWorkload(s)
			w.name = name + "-" + strconv.Itoa(n)
			change(&w, n)
			all.points = append(all.points, point{n, w})
		}
		return all
	}
	return []series{
		of("connections", "connections of clients", []int{1, 4, 16, 64, 250, 1_000, 2_000}, func(w *workload, n int) { w.conns = n }),
		of("hosts", "hosts", []int{1, 10, 100, 1_000, 10_000}, func(w *workload, n int) { w.hosts, w.targets = true, n }),
		of("rules", "rules in a robots.txt", ruleCounts, func(w *workload, n int) {
			w.host, w.path, w.targets = ruleHost(n), "/1k?%d", s.Paths // targets, so that each is judged anew
		}),
		of("record", "decisions in the record", []int{0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000}, func(w *workload, n int) {
			w.recorded, w.settings = n, noRefusalLimit
		}),
	}
}

// upTo returns the counts up to most.
func upTo(most int, counts []int) (some []int) {
	for _, n := range counts {
		if n <= most {
			some = append(some, n)
		}
	}
	return some
}

// ruleHost is the host whose robots.txt has n rules.
func ruleHost(n int) string { return fmt.Sprintf("r%d.test", n) }

// manyRules is a robots.txt with n rules, of which one in a hundred has wildcards.
func manyRules(n int) []byte {
	var b bytes.Buffer
	b.WriteString("User-agent: *\n")
	for i := range n {
		if i%100 == 99 {
			fmt.Fprintf(&b, "Disallow: /*/private%d$\n", i)
			continue
		}
		fmt.Fprintf(&b, "Disallow: /private/%d/\n", i)
	}
	return b.Bytes()
}

// fillRecord lets the contender's record grow, by refused requests: they cost least.
func (b *bench) fillRecord(e *entrant) error {
	if e.workload.recorded == 0 {
		return nil
	}
	j := b.job(e)
	j.Count, j.Target = int64(e.workload.recorded), b.origin.target(workload{path: "/private/%d"})
	j.Targets, j.Status, j.Size = int64(b.scale.Paths), http.StatusForbidden, -1
	_, err := b.load(e, j)
	return err
}

// runSeries measures heed at all points of a series, side by side.
func (b *bench) runSeries(ctx context.Context, s series) (growthReport, error) {
	var entrants []*entrant
	defer func() {
		for _, e := range entrants {
			e.stop()
		}
	}()
	for _, p := range s.points {
		heed := b.contenders[0]
		heed.name = strconv.Itoa(p.n)
		entrants = append(entrants, &entrant{contender: heed, workload: p.workload})
	}
	if err := b.compete(ctx, s.name, entrants); err != nil {
		return growthReport{}, err
	}
	return newGrowthReport(s, entrants), nil
}
