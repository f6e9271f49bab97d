package study

import (
	"cmp"
	"slices"

	"heed/internal/base/memo"
	"heed/internal/output/figures"
	"heed/internal/output/table"
)

func delaysTable() *Definition {
	return &Definition{
		Name: "delays", Title: "Times between requests",
		About: "Gaps between successive requests other than for robots.txt, whatever their answers: of the agent at the site from all its clients together (the first columns), and of each client (network) apart. The delay is the longest that the file in force asks this agent for at the time of the later request. " +
			"In a log of whole seconds, a gap whose true length may be on either side of the delay is undecidable.",
		Formula: "kept = gaps of at least the delay; share = kept / limited; near = gaps of at least 0.9 of the delay; undecidable: gap - 1 s < delay < gap + 1 s; the median of an even number is the mean of the two in the middle; the 5th percentile is by the nearest rank",
		Source:  "gaps, percentiles and the fastest minute as in heed audit report --conduct",
		Columns: columns(
			Column{"asked_s", "delay asked", table.Seconds, "Longest delay asked for; empty: none."},
			Column{"gaps", "gaps", table.Count, "Gaps of the agent."},
			Column{"median_s", "median", table.Seconds, "Median gap."},
			Column{"p5_s", "5 %", table.Seconds, "5th percentile: 95 % are longer."},
			Column{"limited", "under a delay", table.Count, "Gaps while a delay was asked for."},
			Column{"kept", "kept", table.Count, "Of those, at least the delay."},
			Column{"share", "share", table.Interval, "kept / limited."},
			Column{"near", "≥ 0.9", table.Count, "Of those under a delay, at least 0.9 of it."},
			Column{"undecidable", "undecidable", table.Count, "Of those under a delay, within a second of it; 0 where the log has fractions of seconds."},
			Column{"fastest_minute", "fastest minute", table.Count, "Most requests in any 60 seconds."},
			Column{"client_gaps", "client gaps", table.Count, "Gaps between requests of one client."},
			Column{"client_median_s", "client median", table.Seconds, "Their median."},
			Column{"client_p5_s", "client 5 %", table.Seconds, "Their 5th percentile."},
			Column{"client_limited", "client under a delay", table.Count, "Those while a delay was asked for."},
			Column{"client_kept", "client kept", table.Count, "Of those, at least the delay."},
			Column{"client_share", "client share", table.Interval, "client_kept / client_limited."},
		),
		Bars: []Bar{{"kept", "allowed"}}, Of: "limited",
		build: func(s *Study, t *Table) {
			t.perRobot(s, func(r *robot) []any {
				w, e := &r.whole, &r.each
				if !r.site.orderly() {
					return make([]any, 16)
				}
				asked, unclear := any(nil), w.unclear
				if w.asked > 0 {
					asked = w.asked.Seconds()
				}
				if s.subSecond {
					unclear = 0
				}
				return []any{asked, int64(len(w.gaps)), middle(w.gaps, 50), middle(w.gaps, 5), w.limited, w.kept, table.RatioOf(w.kept, w.limited), w.near, unclear, r.fastest.Most,
					int64(len(e.gaps)), middle(e.gaps, 50), middle(e.gaps, 5), e.limited, e.kept, table.RatioOf(e.kept, e.limited)}
			})
			t.noteOrder(s)
			t.noteRules(s)
		},
	}
}

func sessionsTable() *Definition {
	return &Definition{
		Name: "sessions", Title: "Sessions",
		About:  "Requests of one agent from one network, ended by more than 5 minutes without a request.",
		Source: "Kim et al., IMC 2025 (5 minutes)",
		Columns: columns(
			Column{"sessions", "sessions", table.Count, "Sessions."},
			Column{"requests", "requests", table.Count, "Requests in them."},
			Column{"median_requests", "median", table.Number, "Median of requests per session."},
			Column{"median_s", "median length", table.Seconds, "Median time from the first request to the last."},
			Column{"longest_s", "longest", table.Seconds, "Longest time."},
			Column{"robots_first", "robots.txt first", table.Count, "Sessions that begin with robots.txt."},
			Column{"share", "share", table.Interval, "robots_first / sessions."},
		),
		build: func(s *Study, t *Table) {
			t.perRobot(s, func(r *robot) []any {
				if !r.site.orderly() || r.sessions == 0 {
					return []any{nil, r.requests, nil, nil, nil, nil, nil}
				}
				slices.Sort(r.lengths)
				return []any{r.sessions, r.requests, figures.Median(r.lengths), middle(r.durations, 50), middle(r.durations, 100), r.robotsHead, table.RatioOf(r.robotsHead, r.sessions)}
			})
			t.noteOrder(s)
		},
	}
}

func impostorsTable() *Definition {
	return &Definition{
		Name: "impostors", Title: "Possible impostors",
		About: "Agents with more than 90 % of their requests from one network: the rest may be of others that use the name. With --ranges, the requests from outside the address ranges that the operator publishes. " +
			"An address alone proves nothing: operators add networks.",
		Formula: "dominant network: more than 0.9 of the agent's requests at the site",
		Source:  "Kim et al., IMC 2025, tables 8 and 9 (autonomous systems); Liu et al., IMC 2025 (published ranges)",
		Columns: columns(
			Column{"by", "by", table.Text, "network or ranges."},
			Column{"side", "side", table.Text, "dominant or rest; inside or outside."},
			Column{"networks", "networks", table.Count, "Networks of this side; empty for ranges."},
			Column{"requests", "requests", table.Count, "Requests."},
			Column{"share", "share", table.Share, "Of the agent's requests at the site."},
			Column{"robots", "robots.txt", table.Count, "Requests for robots.txt."},
			Column{"judged", "judged", table.Count, "As in the table of obedience."},
			Column{"not_allowed", "not allowed", table.Count, "Of those, not allowed."},
			Column{"not_allowed_share", "share not allowed", table.Interval, "not_allowed / judged."},
			Column{"limited", "gaps under a delay", table.Count, "Gaps of one client while a delay was asked for; empty for ranges."},
			Column{"kept", "kept", table.Count, "Of those, at least the delay; empty for ranges."},
		),
		build: func(s *Study, t *Table) {
			byRobot := map[*robot][]*actor{}
			for _, a := range s.actors {
				if programs(a.robot) {
					byRobot[a.robot] = append(byRobot[a.robot], a)
				}
			}
			for _, r := range s.byRequests(programs) {
				t.dominant(r, byRobot[r])
				if _, ok := s.Ranges[r.token]; ok {
					t.side(r, "ranges", "inside", &r.inside)
					t.side(r, "ranges", "outside", &r.outside)
				}
			}
			if len(s.Ranges) == 0 {
				t.Notes = append(t.Notes, "no --ranges: nothing is compared with the addresses that operators publish")
			}
		},
	}
}

// dominant adds the two sides of a robot that one network dominates.
func (t *Table) dominant(r *robot, actors []*actor) {
	most := slices.MaxFunc(actors, func(a, b *actor) int { return cmp.Compare(a.requests, b.requests) })
	if len(actors) < 2 || float64(most.requests) <= 0.9*float64(r.requests) {
		return
	}
	var rest side
	for _, a := range actors {
		if a != most {
			rest.add(&a.side)
		}
	}
	first := most.side
	first.networks = 1
	t.side(r, "network", "dominant", &first)
	t.side(r, "network", "rest", &rest)
}

func (t *Table) side(r *robot, by, name string, x *side) {
	row := []any{r.site.name, r.token, by, name, x.networks, x.requests, share(x.requests, r.requests), x.robots, x.judged, x.refused, table.RatioOf(x.refused, x.judged), x.limited, x.kept}
	if by == "ranges" {
		row[4], row[11], row[12] = nil, nil, nil
	}
	if !r.site.orderly() {
		row[11], row[12] = nil, nil
	}
	t.Rows = append(t.Rows, row)
}

// signAsked is a sign of programs.
const signAsked = "asked for robots.txt"

func undeclaredTable() *Definition {
	return &Definition{
		Name: "undeclared", Title: "Possible undeclared automation",
		About:   "Clients (networks) whose User-Agent names no robot, by signs of programs. People behind caches, and with pages from a cache, show the first sign too; these clients are in no other table of robots.",
		Formula: "no assets: at least 5 pages, and no style sheet, script, image, font or favicon; asked for robots.txt: at least once",
		Source:  "the signs are heed's own; compare arXiv 2603.28546 (User-Agent and favicon)",
		Columns: []Column{
			siteToken[0], {"sign", "sign", table.Text, "no assets, asked for robots.txt, or both; any client: all without a robot's name."},
			{"clients", "clients", table.Count, "Networks."}, {"requests", "requests", table.Count, "Their requests."}, {"share", "share", table.Share, "Of the requests without a robot's name."},
			{"judged", "judged", table.Count, "As in the table of obedience."}, {"not_allowed", "not allowed", table.Count, "Of those, not allowed by the rules for all robots (*)."},
		},
		build: func(s *Study, t *Table) {
			signs := []string{"no assets", signAsked, "both", "any client"}
			sums := map[*site]*[4]side{}
			for _, a := range s.actors {
				if a.robot.token != noName {
					continue
				}
				sum := memo.At(sums, a.robot.site)
				bare := a.pages >= 5 && a.assets == 0 && !a.favicon
				asked := a.robots > 0
				for i, has := range []bool{bare, asked, bare && asked, true} {
					if has {
						sum[i].add(&a.side)
					}
				}
			}
			for _, site := range s.siteList {
				if all := sums[site]; all != nil {
					for i, sign := range signs {
						if x := &all[i]; x.networks > 0 {
							t.Rows = append(t.Rows, []any{site.name, sign, x.networks, x.requests, share(x.requests, all[3].requests), x.judged, x.refused})
						}
					}
				}
			}
		},
	}
}

func repeatsTable() *Definition {
	return &Definition{
		Name: "repeats", Title: "Repeated fetches",
		About:   "GET requests that were answered 200, for a target that the same agent had from the same network with 200 before. A conditional request would have been answered 304.",
		Formula: "share = repeated / fetched",
		Columns: columns(
			Column{"fetched", "fetched", table.Count, "GET requests answered 200."},
			Column{"repeated", "repeated", table.Count, "Of those, for the same target again."},
			Column{"share", "share", table.Interval, "repeated / fetched."},
			Column{"not_modified", "304", table.Count, "GET requests answered 304."},
			Column{"repeated_bytes", "bytes", table.Bytes, "Octets of the repeated answers, which a cache of the client would have saved."},
		),
		build: func(s *Study, t *Table) {
			t.perRobot(s, func(r *robot) []any {
				return []any{r.fetched, r.repeated, table.RatioOf(r.repeated, r.fetched), r.notModified, r.repeatedBytes}
			})
			if s.seenFull {
				t.Notes = append(t.Notes, "more different pairs of client and target than are remembered: repeats are undercounted")
			}
		},
	}
}

func refusedTable() *Definition {
	return &Definition{
		Name: "refused", Title: "Refused by the server",
		About: "Requests that the server answered with a refusal, robots.txt included.",
		Columns: columns(
			Column{"requests", "requests", table.Count, "Requests."},
			Column{"s401", "401", table.Count, "Unauthorized."}, Column{"s402", "402", table.Count, "Payment required."}, Column{"s403", "403", table.Count, "Forbidden."},
			Column{"s429", "429", table.Count, "Too many requests."}, Column{"s503", "503", table.Count, "Service unavailable."},
			Column{"refused", "refused", table.Count, "All of these."}, Column{"share", "share", table.Interval, "refused / requests."},
		),
		Bars: []Bar{{"refused", "operator"}}, Of: "requests", Needs: "refused",
		build: func(s *Study, t *Table) {
			t.perRobot(s, func(r *robot) []any {
				f := r.refusals
				sum := f[401] + f[402] + f[403] + f[429] + f[503]
				return []any{r.requests, f[401], f[402], f[403], f[429], f[503], sum, table.RatioOf(sum, r.requests)}
			})
		},
	}
}
