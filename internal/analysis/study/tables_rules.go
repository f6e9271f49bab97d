package study

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"heed/internal/base/memo"
	"heed/internal/output/table"
	"heed/rules"
)

const kimSource = "heed's own formulas; the idea of the three measures is that of Kim et al., IMC 2025 (doi 10.1145/3730567.3764471), whose numbers may be counted otherwise"

func obedienceTable() *Definition {
	return &Definition{
		Name: "obedience", Title: "Obedience by path",
		About: "Each request is judged by the robots.txt in force at its time, by the rules of heed. Requests for robots.txt itself, and those made while the site had no file or it could not be read, are apart. " +
			"A request that the file does not allow, but that one in force within the last 24 hours does, is within cache life: RFC 9309 §2.4 allows a copy of that age.",
		Formula: "share = not_allowed / judged; judged = allowed + not_allowed + within_cache_life",
		Source:  "the judged requests and their share as in heed audit report --conduct; cache life RFC 9309 §2.4",
		Columns: columns(
			Column{"requests", "requests", table.Count, "Requests."},
			Column{"robots", "robots.txt", table.Count, "Requests for robots.txt itself."},
			Column{"allowed", "allowed", table.Count, "Allowed by the file in force."},
			Column{"not_allowed", "not allowed", table.Count, "Not allowed by it."},
			Column{"within_cache_life", "within cache life", table.Count, "Not allowed by it, and allowed by one that was in force within the last 24 h."},
			Column{"judged", "judged", table.Count, "The three before."},
			Column{"share", "share not allowed", table.Interval, "not_allowed / judged; empty when nothing was judged."},
			Column{"no_file", "no robots.txt", table.Count, "While the site answered 4xx for robots.txt, which allows everything."},
			Column{"unreachable", "unreachable", table.Count, "While robots.txt could not be read (5xx, 429)."},
			Column{"unknown", "rules unknown", table.Count, "No robots.txt is known for this time."},
			Column{"no_path", "no path", table.Count, "CONNECT, * and malformed targets."},
		),
		Bars: []Bar{{"allowed", "allowed"}, {"within_cache_life", "failed"}, {"not_allowed", "rule"}}, Of: "judged", Sums: true,
		build: func(s *Study, t *Table) {
			t.perRobot(s, func(r *robot) []any {
				c := &r.classes
				judged := c[classAllowed] + c[classRefused] + c[classGrace]
				return []any{r.requests, c[classRobots], c[classAllowed], c[classRefused], c[classGrace], judged, table.RatioOf(c[classRefused], judged),
					c[classUnavailable], c[classUnreachable], c[classUnknown], c[classNoPath]}
			})
			t.noteRules(s)
		},
	}
}

func kimTable() *Definition {
	return &Definition{
		Name: "kim", Title: "Obedience by delay, endpoint and disallow",
		About:   "Three measures after Kim et al. A robot that stays away has no value, and one that asks for robots.txt often has a high one: compare with the table before.",
		Formula: "delay = gaps of at least 30 s / gaps between requests of one address and User-Agent; endpoint = requests below --endpoint or for robots.txt / requests; disallow = requests for robots.txt / requests",
		Source:  kimSource,
		Columns: columns(
			Column{"gaps", "gaps", table.Count, "Gaps between successive requests of one address and User-Agent."},
			Column{"gaps_30s", "≥ 30 s", table.Count, "Those of at least 30 s."},
			Column{"delay", "delay", table.Interval, "gaps_30s / gaps."},
			Column{"requests", "requests", table.Count, "Requests."},
			Column{"endpoint_requests", "below endpoint", table.Count, "Below --endpoint, and for robots.txt; empty without --endpoint."},
			Column{"endpoint", "endpoint", table.Interval, "endpoint_requests / requests."},
			Column{"robots", "robots.txt", table.Count, "Requests for robots.txt."},
			Column{"disallow", "disallow", table.Interval, "robots / requests."},
		),
		build: func(s *Study, t *Table) {
			t.perRobot(s, func(r *robot) []any {
				row := []any{r.kimGaps, r.kimKept, table.RatioOf(r.kimKept, r.kimGaps), r.requests, nil, nil, r.asks(), table.RatioOf(r.asks(), r.requests)}
				if s.Endpoint != "" {
					row[4], row[5] = r.kimEndpoint, table.RatioOf(r.kimEndpoint, r.requests)
				}
				if !r.site.orderly() {
					row[0], row[1], row[2] = nil, nil, nil
				}
				return row
			})
			t.noteOrder(s)
			if s.Endpoint == "" {
				t.Notes = append(t.Notes, "no --endpoint: the endpoint measure is left out")
			}
		},
	}
}

func shiftsTable() *Definition {
	return &Definition{
		Name: "shifts", Title: "What changed with robots.txt",
		About: "For two successive versions of a robots.txt: the share of requests that the later one does not allow, of requests for robots.txt, and of gaps of at least the delay that the later one asks for, under each. " +
			"The first 24 hours under a version that replaces another are left out, since copies of the other may be used.",
		Formula: "p = (x1 + x2) / (n1 + n2); z = (x2/n2 - x1/n1) / sqrt(p (1 - p) (1/n1 + 1/n2)); p-value = erfc(|z| / sqrt 2), two-sided",
		Source:  "two-proportion z-test; after Kim et al., IMC 2025, table 6",
		Whole:   true,
		Columns: columns(
			Column{"from_version", "from", table.Count, "Version before."}, Column{"to_version", "to", table.Count, "Version after."},
			Column{"measure", "share of", table.Text, "not allowed: requests that the later version does not allow; robots.txt: requests for it; delay: gaps of at least its delay."},
			Column{"x1", "before", table.Count, "Count under the version before."}, Column{"n1", "of before", table.Count, "Of how many."}, Column{"share1", "share before", table.Interval, "x1 / n1."},
			Column{"x2", "after", table.Count, "Count under the version after."}, Column{"n2", "of after", table.Count, "Of how many."}, Column{"share2", "share after", table.Interval, "x2 / n2."},
			Column{"z", "z", table.Number, "Test statistic; empty when either n is under 5."}, Column{"p", "p", table.Number, "Two-sided p-value."},
			Column{"remark", "", table.Text, "too few: either n is under 5."},
		),
		build: func(s *Study, t *Table) {
			for _, r := range s.byRequests(programs) {
				for k := 1; k < len(r.site.timeline); k++ {
					t.shift(r, k)
				}
			}
			t.noteRules(s)
			t.noteOrder(s)
		},
	}
}

// shift adds the rows of a robot for the change from version k to the one after it.
func (t *Table) shift(r *robot, k int) {
	before, after := r.spans[k], r.spans[k+1]
	if before == nil && after == nil {
		return
	}
	if before == nil {
		before = &span{}
	}
	if after == nil {
		after = &span{}
	}
	if r.site.timeline[k].state == rules.Available {
		t.test(r, k, "not allowed", before.nextRefused, before.nextJudged, after.refused, after.judged)
	}
	t.test(r, k, "robots.txt", before.robots, before.all, after.robots, after.all)
	if r.site.orderly() && (before.nextDelayed || after.delayed) {
		t.test(r, k, "delay", before.nextKept, before.gaps, after.gapsKept, after.gaps)
	}
}

func (t *Table) test(r *robot, k int, what string, x1, n1, x2, n2 int64) {
	if n1+n2 == 0 {
		return
	}
	row := []any{r.site.name, r.token, int64(k), int64(k + 1), what, x1, n1, table.RatioOf(x1, n1), x2, n2, table.RatioOf(x2, n2), nil, nil, ""}
	if n1 < 5 || n2 < 5 {
		row[13] = "too few"
	} else {
		z, p := twoProportions(x1, n1, x2, n2)
		row[11], row[12] = z, p
	}
	t.Rows = append(t.Rows, row)
}

// twoProportions returns the statistic and the two-sided p-value of the pooled test for a
// difference of two proportions; 0 and 1 when all or none of both are counted.
func twoProportions(x1, n1, x2, n2 int64) (z, p float64) {
	a, b := float64(n1), float64(n2)
	pooled := float64(x1+x2) / (a + b)
	if x1+x2 == 0 || x1+x2 == n1+n2 {
		return 0, 1
	}
	z = (float64(x2)/b - float64(x1)/a) / math.Sqrt(pooled*(1-pooled)*(1/a+1/b))
	return z, math.Erfc(math.Abs(z) / math.Sqrt2)
}

func levelsTable() *Definition {
	return &Definition{
		Name: "levels", Title: "How far each robots.txt restricts each agent",
		About:   "For each version and each robot of the log that is in the built-in list or has a group of its own. Tested are /, every path written in a rule of the file without its final $, and a path that is not in it.",
		Formula: "full: none is allowed; none: none is disallowed; else partial",
		Source:  "Liu et al., IMC 2025 (arXiv 2411.15091), with heed's engine and, as there, by the rules of Google's parser",
		Columns: []Column{
			siteToken[0], {"version", "version", table.Count, "Version of the file."}, siteToken[1],
			{"paths", "paths", table.Count, "Paths tested."}, {"allowed", "allowed", table.Count, "Of which heed's engine allows."}, {"level", "restriction", table.Text, "full, partial or none, by heed's engine."},
			{"level_google", "by Google's rules", table.Text, "The same by the profile google."}, {"named", "own group", table.Text, "yes: the file has a group with this name."},
		},
		build: func(s *Study, t *Table) {
			for _, site := range s.siteList {
				for _, v := range site.versions() {
					if v.state == rules.Available {
						t.level(s, site, v)
					}
				}
			}
			t.noteRules(s)
		},
	}
}

// ruleLine matches a line of a rule, as the robots.txt files of sites have them.
var ruleLine = memo.Expression(`(?i)^\s*(?:dis)?allow\s*:\s*([^\s#]+)`)

// levelPaths returns the paths to test for a file.
func levelPaths(body []byte) []string {
	paths := []string{"/"}
	known := map[string]bool{"/": true}
	for line := range strings.Lines(strings.ReplaceAll(string(body), "\r", "\n")) {
		if m := ruleLine().FindStringSubmatch(line); m != nil {
			path := strings.TrimSuffix(m[1], "$")
			if !strings.HasPrefix(path, "/") {
				path = "/" + path
			}
			if !known[path] && len(paths) < maxLevelPaths {
				known[path] = true
				paths = append(paths, path)
			}
		}
	}
	other := "/a-path-that-no-rule-has"
	for known[other] {
		other += "-"
	}
	return append(paths, other)
}

const maxLevelPaths = 2000

func (t *Table) level(s *Study, site *site, v *Version) {
	paths := levelPaths(v.Body)
	google := rules.NewAs(rules.Google, rules.Source{State: rules.Available}, v.Body)
	var list []*robot
	for _, r := range s.all {
		if r.site == site && (r.known || named(v.policy, rules.Declare(r.token))) && programs(r) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *robot) int { return cmp.Compare(a.token, b.token) })
	for _, r := range list {
		agent := rules.Declare(r.token)
		allowed, level := restriction(v.policy, agent, paths)
		_, other := restriction(google, agent, paths)
		t.Rows = append(t.Rows, []any{site.name, int64(v.number), r.token, int64(len(paths)), allowed, level, other, yesNo(named(v.policy, agent))})
	}
}

// named reports whether a file has a group for an agent by its name.
func named(p *rules.Policy, agent *rules.Agent) bool {
	return slices.ContainsFunc(p.Explain(agent, rules.NewTarget("/")).Governing, func(g rules.Governing) bool {
		return g.How == rules.ByName || g.How == rules.ByFirst
	})
}

func restriction(p *rules.Policy, agent *rules.Agent, paths []string) (allowed int64, level string) {
	for _, path := range paths {
		if p.Decide(agent, rules.NewTarget(path)).Verdict == rules.Allow {
			allowed++
		}
	}
	switch allowed {
	case 0:
		return 0, "full"
	case int64(len(paths)):
		return allowed, "none"
	}
	return allowed, "partial"
}

func partsTable() *Definition {
	return &Definition{
		Name: "substrings", Title: "AI agents by substring of the User-Agent",
		About:   "Liu et al. find an agent by its token anywhere in the User-Agent, without regard to case; heed identifies product tokens, so that a URL or another robot's name in a remark does not count. Requests from outside the published ranges (--ranges) are counted apart, as there.",
		Formula: "requests = robots + other + outside",
		Source:  "Liu et al., IMC 2025; the list of tokens is heed's own list of AI agents",
		Columns: columns(
			Column{"identified", "by heed", table.Count, "Requests that heed identifies as this token."},
			Column{"requests", "by substring", table.Count, "Requests whose User-Agent contains the token."},
			Column{"robots", "robots.txt", table.Count, "Of those, for robots.txt."},
			Column{"other", "other", table.Count, "Of those, for anything else."},
			Column{"outside", "outside ranges", table.Count, "Of those, from outside the published ranges; 0 without --ranges."},
		),
		build: func(s *Study, t *Table) {
			for k, c := range s.parts {
				var identified int64
				if r := s.robots[robotKey(k)]; r != nil {
					identified = r.requests
				}
				t.Rows = append(t.Rows, []any{k.site.name, k.token, identified, c.requests, c.robots, c.other, c.outside})
			}
			slices.SortFunc(t.Rows, func(a, b []any) int {
				return cmp.Or(cmp.Compare(b[3].(int64), a[3].(int64)), cmp.Compare(a[0].(string), b[0].(string)), cmp.Compare(a[1].(string), b[1].(string)))
			})
		},
	}
}
