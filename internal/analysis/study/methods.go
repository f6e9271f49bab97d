package study

import (
	"fmt"
	"strings"

	"heed/internal/output/figures"
	"heed/internal/output/table"
)

// MethodsNumber is the number of the methods after the tables.
func (r *Result) MethodsNumber() int { return len(r.Tables) + 1 }

// caveats hold for every table.
var caveats = []string{
	"A log shows one site. A robot that reads robots.txt through a cache elsewhere, or at another address, is not seen to ask here.",
	"In a log of whole seconds a measured gap of 30 s is between 29 s and 31 s long: whether it was 29 to 30 s or longer cannot be decided. Such gaps are counted as undecidable.",
	"A User-Agent is what a client writes. A request under a robot's name need not be of that robot: see the table of possible impostors.",
	"What a cache or a content delivery network in front of the server answers is not in the log of the server.",
	"Without the robots.txt of the time, nothing is judged. No rules known is not the same as nothing disallowed.",
	"Requests with equal times keep the order of the files. Lines out of order are put in order; where more than 10 % of a site's lines are, what depends on the order is left out.",
}

// MethodsText describes every table: definition, formula and source, and what to keep in
// mind.
func MethodsText() string {
	var b strings.Builder
	b.WriteString("Definitions of the tables of heed study\n\n")
	b.WriteString(table.Wrap("A request is a line of a log that could be parsed, in the order of time. An agent is the product token by which heed identifies the User-Agent: one of the built-in list of robots if any of its names is there. A client is an agent from one network: the autonomous system where --asn is given, else the IPv4 address or the /64 of the IPv6 address. Sites are kept apart by host.", "") + "\n\n")
	b.WriteString(table.Wrap("The robots.txt in force at a time is the latest that is known from the first of these sources: the files of --robots, robots.txt records of WARC files, an audit.db, and the status that the log itself shows for /robots.txt (4xx other than 401, 403 and 429: no file; 429 and 5xx: unreachable; 200: the text is not known). Of an audit.db, the answers to heed's own request count; where a site was asked under the name of a client, they count for that client alone, but a 401 or 403 counts for all when heed has no other. It is read, and every target judged, by the rules of heed (RFC 9309).", "") + "\n")
	for _, d := range Definitions() {
		fmt.Fprintf(&b, "\n%d. %s (%s.csv)\n\n", d.Number, d.Title, d.Name)
		b.WriteString(table.Wrap(d.About, "   ") + "\n")
		if d.Formula != "" {
			b.WriteString(table.Wrap("Formula: "+d.Formula+".", "   ") + "\n")
		}
		if d.Source != "" {
			b.WriteString(table.Wrap("Source: "+d.Source+".", "   ") + "\n")
		}
		for _, c := range d.Written() {
			b.WriteString(table.Wrap(c.Name+": "+c.About, "     ") + "\n")
		}
	}
	b.WriteString("\nTo keep in mind\n\n")
	for _, c := range caveats {
		b.WriteString(table.Wrap("- "+c, "   ") + "\n")
	}
	return b.String()
}

// Methods returns the paragraph on methods for a paper, with the numbers of this study.
func (r *Result) Methods() string {
	if r.Requests == 0 {
		return "No requests were read."
	}
	text := fmt.Sprintf("Access logs with %s to %s, from %s to %s UTC, were read by heed study (heed %s). ",
		figures.Number(r.Requests, "request"), figures.Number(int64(len(r.Sites)), "site"), r.First.Format("2006-01-02 15:04:05"), r.Last.Format("2006-01-02 15:04:05"), r.Heed)
	text += fmt.Sprintf("%s (%s) carry the name of a program; %s in all did. ", figures.Commas(r.Robots), figures.Percent(r.Robots, r.Requests), figures.Number(r.Agents, "program"))
	if r.Unnamed > 0 {
		text += fmt.Sprintf("%s without a User-Agent %s in the tables beside those of programs. ", figures.Number(r.Unnamed, "request"), map[bool]string{true: "is", false: "are"}[r.Unnamed == 1])
	}
	if r.WithRules {
		text += fmt.Sprintf("Each was judged by the robots.txt in force at its time (RFC 9309): of %s judged, %s (%s%s) were not allowed; intervals beside shares are Wilson's for 95 %%. Requests within 24 hours of a change that the file before it allows are not counted as such (RFC 9309 §2.4). ",
			figures.Commas(r.Judged), figures.Commas(r.Refused), figures.Percent(r.Refused, r.Judged), intervalWords(r.Refused, r.Judged))
	} else if r.Known {
		text += "No site had a robots.txt that could be read, so that no request was judged by one. "
	} else {
		text += "No robots.txt of the time was known, so that no request was judged. "
	}
	if r.Hidden {
		text += "Addresses and networks were replaced by keyed hashes (HMAC-SHA-256). "
	}
	if r.Partial {
		text += "Reading was interrupted, and the numbers are of the part that had been read. "
	}
	text += "The definitions are those of heed study --methods. " + caveats[0] + " " + caveats[1]
	return table.Wrap(text, "")
}
