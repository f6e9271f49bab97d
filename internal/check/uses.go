package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"heed/cache"
	"heed/internal/console"
	"heed/internal/control"
	"heed/internal/pageurl"
	"heed/internal/route"
	"heed/internal/signal"
	"heed/internal/signal/licence"
	"heed/internal/signal/page"
	"heed/rules"
)

// useTimeout bounds the fetch of a licence, of a TDMRep file and of a page.
const useTimeout = 10 * time.Second

// uses judges what a site states about the use of its pages: --purpose and --page.
type uses struct {
	purposes  []signal.Purpose
	page      string // a file or a URL; empty: no page is read
	policy    policyOf
	now       func() time.Time
	userAgent string
	client    func() *http.Client // nil: nothing is fetched
}

// usesOf returns how the use of pages is judged by the flags.
func (c *CheckCmd) usesOf(a *console.App, policy policyOf) (*uses, error) {
	purposes, err := signal.ParsePurposes(c.Purpose)
	if err != nil {
		return nil, err
	}
	u := &uses{purposes: purposes, page: c.Page, policy: policy, now: a.Now}
	if c.Robots != "" {
		return u, nil
	}
	cfg, err := c.Load(a)
	if err != nil {
		return nil, err
	}
	out, err := route.Open(cfg, a.Environ, route.Options{}, control.RouteSpec{Profile: c.Profile})
	if err != nil {
		return nil, err
	}
	guarded := out.Transport.GuardRedirects()
	u.userAgent = cache.DefaultUserAgent(cfg.Contact)
	u.client = func() *http.Client { return &http.Client{Transport: guarded(), CheckRedirect: noDowngrade} }
	return u, nil
}

// judge adds the verdict about the use of a page to a, and refuses it when that does. The
// error is that of a page that cannot be read.
func (u *uses) judge(ctx context.Context, a *control.Judgement, p *rules.Policy, agent *rules.Agent, o rules.Origin, target string) error {
	in := signal.Input{URL: a.URL, Origin: o, Target: target, Agent: agent, Profile: p.Profile(), Now: u.now(), Crawl: a.Allowed}
	in.Robots = signal.ReadRobots(p, agent, a.Robots)
	needs := signal.NeedsOf(u.purposes...)
	if in.Crawl && needs.TDMRep && u.client != nil {
		address := o.String() + signal.TDMRepPath
		if body, err := u.get(ctx, agent, o, address, signal.MaxTDMRep); err == nil {
			in.TDMRep, _ = signal.ReadTDMRep(address, body) // a site with a broken one has none
		}
	}
	if in.Crawl && u.page != "" {
		if err := u.readPage(ctx, &in); err != nil {
			return err
		}
	}
	v := signal.Judge(in)
	if missing := v.Unfetched(); needs.Licences && len(missing) > 0 && u.client != nil {
		in.Licences = make(map[string]signal.Licence)
		for _, address := range missing[:min(len(missing), maxLicences)] {
			in.Licences[address] = u.licence(ctx, agent, o, address)
		}
		v = signal.Judge(in)
	}
	a.Purpose, a.Signals = purposeList(u.purposes), v
	if r, refused := v.Refuses(u.purposes...); refused {
		a.Allowed, a.Reason, a.Detail = false, r.Reason, refusalText(r)
	}
	return nil
}

// purposeList returns purposes with commas between them.
func purposeList(purposes []signal.Purpose) string {
	names := make([]string, len(purposes))
	for i, p := range purposes {
		names[i] = string(p)
	}
	return strings.Join(names, ",")
}

// maxLicences is the number of licences that are fetched for one page.
const maxLicences = 8

// refusalText describes a refusal: for which purpose, and by which statement.
func refusalText(r signal.Refusal) string {
	text := "for " + string(r.Purpose) + ", " + console.Quoted(r.Detail)
	if s := r.Statement; s != nil {
		text += ": " + console.Quoted(s.Text) + " (" + placeOf(s) + ")"
	}
	return text
}

// placeOf describes where a statement is.
func placeOf(s *signal.Statement) string {
	place := console.Printable(s.URL)
	if s.Line > 0 {
		place += fmt.Sprintf(", line %d", s.Line)
	}
	return place
}

func (u *uses) licence(ctx context.Context, agent *rules.Agent, site rules.Origin, address string) (l signal.Licence) {
	body, err := u.get(ctx, agent, site, address, licence.MaxBytes)
	if err != nil {
		return signal.Licence{Err: err}
	}
	l.Document, l.Err = licence.Parse(body)
	return l
}

// get fetches what a page of site declares beside robots.txt, if the robots.txt of where
// it is lets the agent.
func (u *uses) get(ctx context.Context, agent *rules.Agent, site rules.Origin, address string, most int64) ([]byte, error) {
	resp, done, err := u.open(ctx, agent, site, address)
	if err != nil {
		return nil, err
	}
	defer done()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s is answered with status %d", address, resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, most+1))
}

// open begins a fetch of what is declared by site; a zero site is the user. done ends it.
func (u *uses) open(ctx context.Context, agent *rules.Agent, site rules.Origin, address string) (resp *http.Response, done func(), err error) {
	o, target, err := pageurl.Parse(address)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, useTimeout)
	client := u.client()
	var p *rules.Policy
	if site == (rules.Origin{}) || site == o {
		p, _, _ = u.policy(ctx, o, u.userAgent)
	} else if p, err = u.elsewhere(ctx, client, site, o); err != nil {
		cancel()
		return nil, nil, err
	}
	if d := p.Decide(agent, target); d.Verdict != rules.Allow {
		cancel()
		return nil, nil, fmt.Errorf("robots.txt does not let the agent fetch %s (%s)", address, d.Reason)
	}
	if resp, err = u.request(ctx, client, address); err != nil {
		cancel()
		return nil, nil, err
	}
	return resp, func() { resp.Body.Close(); cancel() }, nil
}

// elsewhere returns the policy of an origin that site declares. client is one guarded
// fetch: its first request goes to site, so that all others may reach nothing that is less
// public.
func (u *uses) elsewhere(ctx context.Context, client *http.Client, site, o rules.Origin) (*rules.Policy, error) {
	source := rules.Source{Origin: o}
	for _, address := range []string{site.RobotsURL(), o.RobotsURL()} {
		resp, err := u.request(ctx, client, address)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, rules.MaxBytes+1))
		resp.Body.Close()
		switch source.Status = resp.StatusCode; {
		case err != nil:
			return nil, err
		case address != o.RobotsURL():
		case source.Status == http.StatusOK:
			source.State = rules.Available
			return rules.New(source, body), nil
		case source.Status >= 400 && source.Status < 500 && source.Status != http.StatusTooManyRequests:
			source.State = rules.Unavailable
		}
	}
	return rules.New(source, nil), nil
}

func (u *uses) request(ctx context.Context, client *http.Client, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", u.userAgent)
	return client.Do(req)
}

// readPage reads the header and the head of --page. A file has no header.
func (u *uses) readPage(ctx context.Context, in *signal.Input) error {
	in.URL = u.page
	if !isURL(u.page) {
		f, err := os.Open(u.page)
		if err != nil {
			return fmt.Errorf("the page cannot be read: %w", err)
		}
		defer f.Close()
		in.Page = scan(http.Header{"Content-Type": {"text/html"}}, in, f)
		return nil
	}
	resp, done, err := u.open(ctx, in.Agent, rules.Origin{}, u.page)
	if err != nil {
		return fmt.Errorf("the page cannot be fetched: %w", err)
	}
	defer done()
	in.Header = resp.Header
	if why := page.Readable(http.MethodGet, resp.StatusCode, resp.Header); why != page.Whole {
		in.Page = &page.Head{Why: why}
		return nil
	}
	in.Page = scan(resp.Header, in, resp.Body)
	return nil
}

// scan reads the head of a page from its body.
func scan(h http.Header, in *signal.Input, body io.Reader) *page.Head {
	s := page.NewScanner(h, signal.PageNames(in.Agent))
	buffer := make([]byte, 16<<10)
	var err error
	for !s.Done() && err == nil {
		var n int
		n, err = body.Read(buffer)
		_, _ = s.Write(buffer[:n])
	}
	head := s.Finish(errors.Is(err, io.EOF))
	return &head
}

// printSignals writes the answers by category and the statements that led to them.
func printSignals(w io.Writer, paint console.Painter, a *control.Judgement) error {
	x := &Explainer{Judgement: a, Paint: paint}
	x.UseSteps(a.Signals)
	_, err := io.WriteString(w, x.Text())
	return err
}

// UseSteps prints the answers by category, with the rule of precedence, and the statements
// that led to them.
func (x *Explainer) UseSteps(v *signal.Verdict) {
	label := "Use"
	for _, c := range signal.Categories() {
		r, known := v.Results[c]
		if !known {
			continue
		}
		text := fmt.Sprintf("%s: %s", c, r.Answer)
		if r.Precedence != "" {
			text += " (" + string(r.Precedence) + ")"
		}
		if len(r.Unmet) > 0 && r.Answer != signal.Disallow {
			text += ", with a demand"
		}
		x.Step(label, "%s", text)
		label = ""
	}
	if label != "" {
		x.Step(label, "nothing is stated")
	}
	for i := range v.Statements {
		printStatement(x, &v.Statements[i])
	}
	switch {
	case v.Incomplete():
		x.Step("Page", "its head was not read to its end (%s)", v.Page)
	case v.Page != "" && v.Page != "whole":
		x.Step("Page", "there was no head to read (%s)", v.Page)
	}
}

func printStatement(x *Explainer, s *signal.Statement) {
	x.Step("Stated", "%s", placeOf(s))
	x.More("  %s", console.Quoted(s.Text))
	says := s.String()
	for _, more := range []string{s.Demand, s.Fault, s.Note} {
		if more != "" {
			says += "; " + console.Quoted(more)
		}
	}
	x.More("  %s", says)
}
