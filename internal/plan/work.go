package plan

import (
	"strings"
	"time"

	"heed/internal/control"
)

// queue has a site that was begun judged further.
func (p *Plan) queue(s *Site) {
	if !s.queued && !s.running && !s.done {
		s.queued = true
		p.again = append(p.again, s)
	}
}

// dispatch begins the work on sites while there are places. Those that were begun come first:
// they need no network. While more may be added, no site is begun whose rules there is no
// memory for.
func (p *Plan) dispatch() {
	for p.quick < p.o.AtOnce {
		var s *Site
		switch {
		case len(p.again) > 0:
			s, p.again = p.again[0], p.again[1:]
			s.queued = false
		case len(p.fresh) > 0 && (p.ended || p.held < p.o.Held):
			s, p.fresh = p.fresh[0], p.fresh[1:]
			s.Columns = make([]Column, len(p.o.Agents))
			for i, agent := range p.o.Agents {
				s.Columns[i].Agent = agent
			}
			s.judge = p.o.Open()
		default:
			return
		}
		s.running = true
		p.quick++
		go p.work(s)
	}
}

// work judges the URLs of a site that wait.
func (p *Plan) work(s *Site) {
	isSlow, over := false, false
	timer := time.AfterFunc(p.o.Slow, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !over && !s.known && p.slow < p.o.AtMost-p.o.AtOnce {
			isSlow = true
			p.slow++
			p.quick--
			p.dispatch()
		}
	})
	defer timer.Stop()
	for p.judgeNext(s) {
	}
	if p.finish(s) {
		p.done(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if over, s.running = true, false; isSlow {
		p.slow--
	} else {
		p.quick--
	}
	switch {
	case s.done:
		if p.finished++; !s.Partial {
			p.progress.Done++
		}
	case p.ended, len(s.waiting) >= jobSize:
		p.queue(s)
	}
	p.dispatch()
	p.changed.Broadcast()
}

// judgeNext judges the URLs of s that wait now, and reports whether there were any.
func (p *Plan) judgeNext(s *Site) bool {
	p.mu.Lock()
	last, rest := s.last, s.waiting
	s.last, s.waiting = noBlock, nil
	p.waiting -= len(rest)
	file := p.file
	p.mu.Unlock()
	if last == noBlock && len(rest) == 0 || p.ctx.Err() != nil {
		return false
	}
	var err error
	for urls, unread := range file.blocks(last) {
		if err = unread; err == nil {
			err = p.judgeAll(s, urls)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = p.judgeAll(s, urlsOf(rest))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.lost = s.lost || err != nil; p.ctx.Err() == nil {
		p.fail(err)
	}
	size := s.judge.Size()
	p.held += size - s.size
	s.size = size
	return true
}

// urlsOf returns the URLs in data, each with a newline.
func urlsOf(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// maxTogether bounds the URLs that are judged together.
const maxTogether = 1000

// judgeAll judges URLs of s for all agents.
func (p *Plan) judgeAll(s *Site, urls []string) error {
	for len(urls) > 0 {
		n, octets, most := 0, 0, maxTogether
		if !s.known {
			most = 1 // its rules are waited for
		}
		for n < len(urls) && n < most && octets+len(urls[n]) <= control.MaxSiteURLs {
			octets += len(urls[n])
			n++
		}
		if err := p.judgeSome(s, urls[:n]); err != nil {
			return err
		}
		urls = urls[n:]
	}
	return nil
}

// judgeSome judges a few URLs of s for all agents. They count for all of them or for none.
func (p *Plan) judgeSome(s *Site, urls []string) error {
	if s.known {
		p.judging <- struct{}{}
		defer func() { <-p.judging }()
	}
	all := make([][]*control.Judgement, len(s.Columns))
	for i := range s.Columns {
		c := &s.Columns[i]
		list, err := s.judge.Check(p.ctx, c.Agent, urls, c.First == nil)
		if p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if err != nil {
			return err
		}
		all[i] = list
	}
	for i, list := range all {
		c := &s.Columns[i]
		if c.First == nil {
			c.First = list[0]
		}
		for _, a := range list {
			c.add(a)
		}
	}
	p.mu.Lock()
	p.progress.Judged += int64(len(urls))
	s.known = true
	p.mu.Unlock()
	return p.pages(urls, all)
}

// pages calls Page.
func (p *Plan) pages(urls []string, all [][]*control.Judgement) error {
	if p.o.Page == nil {
		return nil
	}
	p.pageMu.Lock()
	defer p.pageMu.Unlock()
	for n, url := range urls {
		allowed := true
		for _, list := range all {
			allowed = allowed && list[n].Allowed
		}
		if err := p.o.Page(url, allowed); err != nil {
			return err
		}
	}
	return nil
}

// finish reports whether s is complete: nothing waits, and nothing more will come.
func (p *Plan) finish(s *Site) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Partial = !p.ended || p.cut || s.lost || s.last != noBlock || len(s.waiting) > 0
	s.done = !s.Partial || p.ctx.Err() != nil
	if s.done {
		p.held -= s.size
		s.judge, s.size = nil, 0
	}
	return s.done
}

// done adds a site to the totals and passes it on.
func (p *Plan) done(s *Site) {
	p.doneMu.Lock()
	defer p.doneMu.Unlock()
	if s.Columns[0].First != nil {
		for i := range s.Columns {
			p.totals[i].add(s.Origin.String(), &s.Columns[i])
		}
		if err := p.o.Done(s); err != nil {
			p.mu.Lock()
			p.fail(err)
			p.mu.Unlock()
		}
	}
	s.Columns = nil
}
