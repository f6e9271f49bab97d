package check

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"heed/internal/control"
	"heed/internal/judge"
	"heed/internal/judge/signal"
	"heed/internal/judge/signal/page"
	"heed/internal/output/console"
	"heed/proxy/refusal"
	"heed/proxy/usage"
	"heed/rules"
)

// pageTimeout bounds the fetch of a page.
const pageTimeout = 10 * time.Second

// uses judges what a site states about the use of its pages: --purpose and --page.
type uses struct {
	page      string // a file or a URL; empty: no page is read
	policy    policyOf
	userAgent string
	settings  usage.Settings
	client    *http.Client // for one page; nil: nothing is fetched
	judged    usage.Judge
}

// ForPurposes makes j judge what sites state about the use of their pages as well, for the
// purposes of the flags: by documents, and by the page at an address or in a file, which
// client requests as userAgent. An empty page is not, and without purposes nothing is.
func (j *Judge) ForPurposes(page string, documents usage.Documents, client *http.Client, userAgent string, policy policyOf) {
	if len(j.Rules.Flags.Purpose) > 0 {
		j.uses = &uses{page: page, policy: policy, userAgent: userAgent, settings: usage.Settings{Documents: documents}, client: client}
	}
}

// find fills in what the site, and the page if there is one, state of the use of the page that
// p allows, and adds it to a. The error is that of a page that cannot be read.
func (u *uses) find(ctx context.Context, a *control.Judgement, q *judge.Question, p *rules.Policy, o rules.Origin) error {
	r := &usage.Request{
		Settings: &u.settings, URL: a.URL, Origin: o, Target: q.Target, Agents: q.Names.Speaking(p),
		Purposes: q.Effective.Purposes(), Reference: q.Effective.Licence(q.Now), Policy: p, Now: q.Now,
	}
	v, _ := u.judged.Request(ctx, r) // no client leaves
	for i := range v.Statements {
		if s := &v.Statements[i]; s.Source == signal.SourceRobots {
			s.URL = a.Robots // which may be a file
		}
	}
	a.Purpose, a.Signals = strings.Join(q.Effective.PurposeNames(), ","), v
	q.Statements = v
	if u.page == "" {
		return nil
	}
	answer, err := u.readPage(ctx, r)
	if err != nil {
		return err
	}
	q.PageSpeaks, q.Page, a.Signals = true, answer, signal.Combine(v, answer)
	return nil
}

// refusalText describes a refusal: for which purpose, and by which statement.
func refusalText(r signal.Refusal) string {
	text := "for " + string(r.Purpose) + ", " + console.Quoted(r.Detail)
	if s := r.Statement; s != nil {
		text += ": " + console.Quoted(s.Text) + " (" + refusal.Place(s) + ")"
	}
	return text
}

// readPage returns what the header and the head of --page state. A file has no header.
func (u *uses) readPage(ctx context.Context, q *usage.Request) (*signal.Verdict, error) {
	of := *q
	of.URL = u.page
	if !isURL(u.page) {
		f, err := os.Open(u.page)
		if err != nil {
			return nil, fmt.Errorf("the page cannot be read: %w", err)
		}
		defer f.Close()
		file := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}}
		return u.answer(ctx, &of, file, f), nil
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	resp, err := u.get(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("the page cannot be fetched: %w", err)
	}
	defer resp.Body.Close()
	return u.answer(ctx, &of, resp, resp.Body), nil
}

// answer returns the verdict on an answer; never nil.
func (u *uses) answer(ctx context.Context, q *usage.Request, resp *http.Response, body io.ReadCloser) *signal.Verdict {
	v := u.judged.Answer(ctx, q, &http.Request{Method: http.MethodGet}, resp, &usage.Body{Site: body})
	if v == nil { // it states nothing and has no head
		v = &signal.Verdict{Crawl: true, Page: string(cmp.Or(page.Readable(http.MethodGet, resp.StatusCode, resp.Header), page.NoBody))}
	}
	return v
}

// get requests --page, if the robots.txt of where it is lets the agents. That of the site of
// q is known.
func (u *uses) get(ctx context.Context, q *usage.Request) (*http.Response, error) {
	o, target, err := rules.ParseURL(u.page)
	if err != nil {
		return nil, err
	}
	p := q.Policy
	if o != q.Origin {
		p, _, _ = u.policy(ctx, o, u.userAgent)
	}
	for _, agent := range q.Agents {
		if d := p.Decide(agent, rules.NewTarget(target)); d.Verdict != rules.Allow {
			return nil, fmt.Errorf("robots.txt does not let the agent fetch %s (%s)", u.page, d.Reason)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.page, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", u.userAgent)
	return u.client.Do(req)
}
