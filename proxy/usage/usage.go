// Package usage judges requests and answers by what sites state about the use of their
// pages (heed/internal/judge/signal), for the purposes that a client states.
//
// Before a request is sent, Judge.Request judges it by robots.txt and by the documents that
// its purposes need (documents.go). When the answer has begun, Judge.Answer judges it by
// its header and, where the settings want it, by the head of the page, for which the answer
// waits (body.go). Both return verdicts; package proxy acts on them.
package usage

import (
	"context"
	"net/http"
	"time"
	"weak"

	"heed/internal/base/memo"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/page"
	"heed/rules"
)

// Pages are the pages whose heads are read.
type Pages uint8

// The pages. The zero value is OfClients.
const (
	OfClients Pages = iota // those that a client with a purpose requests
	AllPages
	NoPages
)

// Settings are those of [signals].
type Settings struct {
	Pages     Pages
	Annotate  bool      // answers get signal.AnnotationField
	Documents Documents // nil: none is fetched
	// Read is what was read of pages, for the answers that confirm them; nil: each Judge has a
	// separate memory.
	Read *Memory
}

// Request is one request, as far as its verdicts depend on it.
type Request struct {
	*Settings
	URL       string
	Origin    rules.Origin
	Target    *rules.Target  // path and query as they are sent
	Agents    []*rules.Agent // each must be allowed; at least one
	Purposes  []signal.Purpose
	Reference string        // to a contract with the site; empty: there is none
	Policy    *rules.Policy // that allows the request
	Now       time.Time
	// Left is closed when the client has left: no further document is fetched or judged then.
	// Nil: it does not leave.
	Left <-chan struct{}
}

// left reports whether the client has left.
func (q *Request) left() bool {
	select {
	case <-q.Left:
		return true
	default:
		return false
	}
}

// Judge judges the requests of one proxy. The zero value is ready; it is safe for
// concurrent use.
type Judge struct {
	robots memo.Map[robotsKey, *signal.Robots]
	own    Memory
}

// Bounds of a Judge.
const (
	maxRobots = 1024
	maxLines  = 100 // with signals, of a robots.txt; those of one with more are read again each time
	maxPages  = 512
	maxKey    = 2048     // octets of a URL and an ETag; longer ones are not remembered
	maxHeld   = 16 << 10 // octets of a page that is remembered
)

type robotsKey struct {
	policy weak.Pointer[rules.Policy]
	agent  *rules.Agent
}

// Request returns the verdict by robots.txt and, unless that refuses q already, by the
// documents that its purposes need; with several agents, that of the first which is refused.
// whole is false when the client left before all was judged.
func (j *Judge) Request(ctx context.Context, q *Request) (v *signal.Verdict, whole bool) {
	v = q.judge(ctx, signal.NeedsOf(q.Purposes...), func(agent *rules.Agent) signal.Input {
		in := q.input(agent)
		in.Robots = j.robotsOf(q.Policy, agent)
		return in
	})
	return v, !q.left()
}

// judge returns the verdict by what known returns for each agent and, unless that refuses q
// already, by the documents that are needed: those cannot allow what it refuses.
func (q *Request) judge(ctx context.Context, needs signal.Needs, known func(*rules.Agent) signal.Input) *signal.Verdict {
	lacks := false // a licence
	v := q.first(func(agent *rules.Agent) *signal.Verdict {
		v := signal.Judge(known(agent))
		lacks = lacks || needs.Licences && v.LacksLicence()
		return v
	})
	if _, refused := v.Refuses(q.Purposes...); refused || q.Documents == nil || q.left() {
		return v
	}
	var file *signal.TDMRep
	if needs.TDMRep {
		file = q.tdmRep(ctx)
	}
	if file == nil && !lacks || q.left() {
		return v
	}
	return q.first(func(agent *rules.Agent) *signal.Verdict {
		in := known(agent)
		if in.TDMRep = file; lacks {
			in.Licences = q.Licences(ctx, signal.Declared(in))
		}
		if q.left() {
			return v
		}
		return signal.Judge(in)
	})
}

// first returns the verdict on the first agent that is refused, else the one on the first. It
// ends when the client has left.
func (q *Request) first(judge func(*rules.Agent) *signal.Verdict) (v *signal.Verdict) {
	for i, agent := range q.Agents {
		if i > 0 && q.left() {
			break
		}
		next := judge(agent)
		_, refused := next.Refuses(q.Purposes...)
		if i == 0 || refused {
			v = next
		}
		if refused {
			break
		}
	}
	return v
}

// robotsOf returns the signals of a file that concern an agent. They are read once for each
// file and agent.
func (j *Judge) robotsOf(p *rules.Policy, agent *rules.Agent) *signal.Robots {
	key := robotsKey{weak.Make(p), agent} // the memo keeps no policy that is not in use
	r, ok := j.robots.Get(key)
	if !ok {
		if r = signal.ReadRobots(p, agent, p.Source().Origin.RobotsURL()); r.Size() <= maxLines {
			j.robots.Put(key, r, maxRobots)
		}
	}
	return r
}

func (q *Request) input(agent *rules.Agent) signal.Input {
	return signal.Input{
		URL: q.URL, Origin: q.Origin, Target: q.Target, Agent: agent, Profile: q.Policy.Profile(),
		Now: q.Now, Crawl: true, Reference: q.Reference,
	}
}

// Answer judges resp, the answer to r, which is q. It returns nil when the answer states
// nothing. Where the head of the page is read, it returns when that is known or maxWait is
// over; body is the body of resp.
func (j *Judge) Answer(ctx context.Context, q *Request, r *http.Request, resp *http.Response, body *Body) *signal.Verdict {
	stated := signal.Stated(resp.Header)
	var head *page.Head
	if q.Pages == AllPages || len(q.Purposes) > 0 {
		head = q.head(ctx, r.Method, resp, body)
	}
	if !stated && (head == nil || head.Why == page.NoPage || head.Why == page.NoBody) {
		return nil
	}
	v := q.stated(ctx, version{status: resp.StatusCode, header: resp.Header, head: head})
	switch {
	case head != nil && (head.Why == page.Unmodified || head.Why == page.Partial):
		if kept, ok := j.confirmed(q, r, resp.Header); ok {
			v = signal.Combine(v, q.stated(ctx, kept))
		}
	case head != nil && head.Why == page.Whole:
		j.remember(q, version{status: resp.StatusCode, header: resp.Header, head: head})
	case head == nil && len(v.Statements) == 0:
		return nil
	}
	return v
}

// stated returns the verdict by what a version of the page states.
func (q *Request) stated(ctx context.Context, page version) *signal.Verdict {
	needs := signal.Needs{Licences: signal.NeedsOf(q.Purposes...).Licences}
	return q.judge(ctx, needs, func(agent *rules.Agent) signal.Input {
		in := q.input(agent)
		in.Header, in.Status, in.Page = page.header, page.status, page.head
		return in
	})
}

// head reads the head of the page in resp, or returns why there is none to read.
func (q *Request) head(ctx context.Context, method string, resp *http.Response, body *Body) *page.Head {
	if why := page.Readable(method, resp.StatusCode, resp.Header); why != page.Whole {
		return &page.Head{Why: why}
	}
	if q.Pages == NoPages {
		return &page.Head{Why: page.Unwanted}
	}
	part := resp.StatusCode == http.StatusPartialContent
	head := body.ReadHead(ctx, page.NewScanner(resp.Header, q.names()), !part)
	if part && head.Why == page.Unfinished {
		head.Why = page.Partial
	}
	return &head
}

// names are those of the META elements that may concern the agents.
func (q *Request) names() (all []string) {
	for _, agent := range q.Agents {
		all = append(all, signal.PageNames(agent)...)
	}
	return all
}
