package proxy

import (
	"io"
	"net/http"
	"net/netip"
	"time"

	"heed/proxy/http1"
	"heed/proxy/icap"
	"heed/proxy/usage"
	"heed/rules"
)

// awaited is a request that may pass, of which the proxy that sends it is to bring the answer with
// RESPMOD, since its client has a purpose: heed's record of it ends with that answer, once.
type awaited struct {
	peer           netip.Addr // the proxy
	method, target string
	permitted      chan struct{}       // closed when the request may pass, and the answer is awaited
	id             string              // of the decision, from then on
	answer         chan *http.Response // takes one
	ended          chan struct{}       // closed when the record is complete
	whole          bool                // nothing failed until then
	passes         bool                // the answer may reach the client
	refused        bool                // it may not, for what it states
	refusal        *heldAnswer         // else this does
}

// respmodField is the field of ICAP with which a proxy says in REQMOD that it brings the answer.
const respmodField = "Heed-Respmod"

// undecided is the icap.DecisionField of a request whose answer is not awaited.
const undecided = "none"

// answerTime is how long the answer of a site is awaited.
const answerTime = 2 * time.Minute

// awaited returns what awaits the answer to the request that c is asked about, or w; nil: the proxy
// does not bring it.
func (c *icapConn) awaited(w *heldAnswer) (*awaited, error) {
	q := &c.request
	if value, err := oneField(&q.ICAP, respmodField); err != nil || value != "yes" {
		return nil, err
	}
	c.out.Decision = undecided
	return &awaited{
		peer: c.client.Addr, method: q.HTTP.Method, target: q.HTTP.Target,
		permitted: make(chan struct{}), answer: make(chan *http.Response, 1), ended: make(chan struct{}), refusal: w,
	}, nil
}

// askAwaiting is Proxy.ask for a question whose exchange ends with the answer of the site. It
// returns when there is an answer to the question, or false when there will be none.
func (c *icapConn) askAwaiting(a *asking, r *http.Request, client netip.AddrPort, user string, leave func()) bool {
	x := a.awaits
	go func() {
		defer close(x.ended)
		defer leave()
		c.guard(func() {
			c.proxy.ask(c.clientConn, a, x.refusal, r, client, user)
			x.whole = true
		})
	}()
	select {
	case <-x.permitted:
		c.out.Decision = x.id
		return true
	case <-x.ended:
		return x.whole
	}
}

// await waits for the answer of the site to x, which may be sent, and judges what the page states
// of its use. Its own answer is heed's refusal, or one in place of the site's. An answer that does not
// come leaves the outcome as one that was not seen.
func (x *delivery) await(r *http.Request, a *awaited) *http.Response {
	if t := x.turn.Load(); t != nil {
		t.End()
	}
	p := x.proxy
	a.id = x.entry.ID.String()
	p.awaited.Store(a.id, a)
	close(a.permitted)
	late := time.NewTimer(answerTime)
	defer late.Stop()
	var resp *http.Response
	select {
	case resp = <-a.answer:
	case <-late.C:
	case <-p.lasting.Done():
	}
	if resp == nil {
		if p.awaited.CompareAndDelete(a.id, a) {
			return emptyAnswer(r, http.StatusOK)
		}
		resp = <-a.answer // it came at that moment
	}
	x.entry.Outcome.Elsewhere = false
	x.saw(resp)
	x.download = downloadBody{ReadCloser: resp.Body, of: x, resp: resp}
	if own := x.readUse(r, resp); x.refusal != nil {
		a.refused = true
		return own
	}
	x.download = downloadBody{}
	a.passes = true
	return emptyAnswer(r, resp.StatusCode)
}

// answerPreview is how many octets of an answer come before heed asks for more. Squid 5.7 sends no
// more than 65,535 before it has an answer, and holds none of an answer that is longer than its
// preview for a 204.
const answerPreview = 60 << 10

// takeAwaited returns the request whose answer c brings; nil: none of its proxy's that has this
// method, target and id waits for one.
func (c *icapConn) takeAwaited(id string) *awaited {
	found, _ := c.proxy.awaited.Load(id)
	a, _ := found.(*awaited)
	h := &c.request.HTTP
	if a == nil || a.peer != c.client.Addr || a.method != h.Method || a.target != h.Target || !c.proxy.awaited.CompareAndDelete(id, a) {
		return nil
	}
	return a
}

// serveAnswer answers a request of RESPMOD, and reports whether another request may follow.
func (c *icapConn) serveAnswer() (again bool) {
	q := &c.request
	id, err := oneField(&q.ICAP, icap.DecisionField)
	fault, a := "", (*awaited)(nil)
	switch {
	case err != nil:
		fault = err.Error()
	case q.Answer.Status < 200:
		fault = "an interim answer, or one that changes the protocol, is not judged"
	case id == "":
		fault = "the answer comes without the field " + icap.DecisionField + " of REQMOD: in squid.conf, adaptation_masterx_shared_names hands it back"
	case id != undecided:
		if a = c.takeAwaited(id); a == nil {
			fault = icap.DecisionField + " is not the id of a request of this proxy, with this method and URL, whose answer is awaited"
		}
	}
	if fault != "" {
		c.refuse(http.StatusBadRequest, rules.ReasonMalformed, fault)
		return false
	}
	body := c.in.AnswerBody(q, &c.out)
	page := &usage.Body{Site: io.NopCloser(icapBody{c.clientConn, body})}
	if a == nil {
		return c.passAnswer(body, page) == nil
	}
	head := q.Answer
	head.Framing = http1.NoBody
	resp := head.Response(nil, nil)
	resp.Body = page
	a.answer <- resp
	switch <-a.ended; {
	case !a.whole:
		return false
	case a.passes:
		return c.passAnswer(body, page) == nil
	}
	q.Close = body.End() && q.Body || q.Close
	a.refusal.header["Date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
	if err = c.out.Response(q, a.refusal.status, a.refusal.header, a.refusal.body.Bytes()); err == nil && q.Close {
		c.drain()
	} else if err == nil {
		_, err = io.Copy(io.Discard, page)
	}
	return err == nil
}

// passAnswer answers a request of RESPMOD with its message as it came. body has what page has not
// read of it.
func (c *icapConn) passAnswer(body *icap.AnswerBody, page io.Reader) error {
	q := &c.request
	if sent := body.End(); sent && !q.Allow {
		return c.out.Same(q, page)
	}
	err := c.out.Status(q, http.StatusNoContent, "")
	if err == nil {
		_, err = io.Copy(io.Discard, page)
	}
	return err
}
