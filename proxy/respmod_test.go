package proxy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"heed/internal/audit"
	"heed/internal/judge/signal"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/rules"
)

// respmod is the answer to a request, with fields of ICAP.
func respmod(request, answer string, fields ...string) string {
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") + "\r\n\r\n" }
	request, answer = crlf(request), crlf(answer)
	return fmt.Sprintf("RESPMOD icap://heed.test/respmod ICAP/1.0\r\n%sEncapsulated: req-hdr=0, res-hdr=%d, null-body=%d\r\n\r\n%s%s",
		strings.Join(append(fields, ""), "\r\n"), len(request), len(request)+len(answer), request, answer)
}

const (
	brings = "Heed-Respmod: yes"
	whole  = "HTTP/1.1 200 OK\nContent-Type: image/png\nContent-Length: 0"
)

// decisionIn returns the field with which the answer to REQMOD names its decision.
func decisionIn(all string) string {
	_, rest, _ := strings.Cut(all, "Heed-Decision: ")
	id, _, _ := strings.Cut(rest, "\r\n")
	return "Heed-Decision: " + id
}

// The answer that a proxy brings ends the record of the very request, once, and no other answer
// does.
func TestRespmod_AnAnswerEndsTheRecordOfItsRequestOnce(t *testing.T) {
	r := newRig(t, hello, purposeOf(signal.PurposeTraining))
	var questions Questions
	addr := r.serveICAP(func(a *Asked) { a.Questions = &questions })
	page := getOf("http://site.test/page")
	status, all := r.onICAP(addr, reqmod(page, keeps, from7, brings))
	id := decisionIn(all)
	must.Need(t, status == "ICAP/1.0 204 No Content" && len(id) == len("Heed-Decision: ")+36, "%q", all)
	const bad = "ICAP/1.0 400 Bad Request: "
	for _, c := range []struct{ question, want string }{
		{respmod(page, whole), bad + "the answer comes without the field Heed-Decision"},
		{respmod(page, whole, "Heed-Decision: 01900000-0000-7000-8000-000000000000"), bad + "Heed-Decision is not the id"},
		{respmod(page, whole, id, id), bad + "the ICAP request has 2 fields"},
		{respmod(getOf("http://site.test/other"), whole, id), bad + "Heed-Decision is not the id"},
		{respmod(strings.Replace(page, "GET", "POST", 1), whole, id), bad + "Heed-Decision is not the id"},
		{respmod(page, "HTTP/1.1 101 Switching Protocols", id), bad + "an interim answer"},
		{respmod(page, "HTTP/1.1 2000 OK", id), bad + "the encapsulated HTTP message cannot be read"},
	} {
		before := len(r.records.all())
		status, _ := r.onICAP(addr, c.question)
		must.True(t, strings.HasPrefix(status, c.want), "%.200q: %s\nwant %s", c.question, status, c.want)
		if e := r.records.after(t, before); e.Decision.Reason != rules.ReasonMalformed || e.Outcome.Status != 400 {
			t.Errorf("%.200q is recorded as %+v", c.question, e)
		}
	}
	before := len(r.records.all())
	if status, all := r.onICAP(addr, respmod(page, whole, keeps, id)); status != "ICAP/1.0 204 No Content" {
		t.Errorf("its answer: %q", all)
	}
	e := r.records.await(t, "the page", func(e *audit.Entry) bool { return e.Decision.Verdict == rules.Allow })
	if len(r.records.all()) != before+1 || e.Outcome.Elsewhere || !e.Outcome.FromSite || e.Outcome.Status != 200 || e.Became() != "answered" || "Heed-Decision: "+e.ID.String() != id {
		t.Errorf("it is recorded as %+v", e)
	}
	status, _ = r.onICAP(addr, respmod(page, whole, keeps, id))
	must.True(t, strings.HasPrefix(status, bad), "its answer once more: %s", status)
	_, all = r.onICAP(addr, reqmod(page, keeps, brings))
	if _, all := r.onICAP(addr, respmod(page, "HTTP/1.1 200 OK\nTDM-Reservation: 1\nContent-Length: 0", decisionIn(all))); !strings.Contains(all, "HTTP/1.1 403 ") || strings.Contains(all, "Tdm-Reservation") {
		t.Errorf("a page whose use is reserved: %q", all)
	}
	withheld := r.records.await(t, "the reserved one", func(e *audit.Entry) bool { return e.Withheld() })
	must.True(t, withheld.Outcome.SiteStatus == 200 && withheld.Outcome.Status == 403 && !withheld.Outcome.Elsewhere,
		"it is recorded as %+v", withheld.Outcome)
	must.Equal(t, [...]int64{questions.Allowed.Load(), questions.Refused.Load(), questions.Faulty.Load()}, [...]int64{1, 1, 8},
		"questions allowed, refused, faulty")
}

// Of a client without a purpose no answer is awaited: it passes, and the record says that it was
// not seen.
func TestRespmod_WithoutAPurposeAnAnswerPasses(t *testing.T) {
	r := newRig(t, hello)
	addr := r.serveICAP()
	page := getOf("http://site.test/page")
	_, all := r.onICAP(addr, reqmod(page, keeps, brings))
	id := decisionIn(all)
	must.True(t, id == "Heed-Decision: none", "%q", all)
	e := r.records.target(t, "/page")
	must.True(t, e.Became() == "not-seen", "it is recorded as %+v", e)
	if _, all := r.onICAP(addr, respmod(page, whole, "Heed-Decision: none")); !strings.HasPrefix(all, "ICAP/1.0 200 OK\r\n") || !strings.HasSuffix(all, "\r\n\r\n"+strings.ReplaceAll(whole, "\n", "\r\n")+"\r\n\r\n") {
		t.Errorf("%q", all)
	}
	must.Equal(t, len(r.records.all()), 1, "records")
}

// A request whose answer has not come when heed ends is recorded as one whose answer was not seen.
func TestRespmod_Shutdown(t *testing.T) {
	r := newRig(t, func(http.ResponseWriter, *http.Request) {}, purposeOf(signal.PurposeTraining))
	r.onICAP(r.serveICAP(), reqmod(getOf("http://site.test/page"), keeps, brings))
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	must.OK(t, r.proxy.Shutdown(ctx))
	e := r.records.target(t, "/page")
	must.True(t, e.Became() == "not-seen" && e.Outcome.Err == "", "it is recorded as %+v", e)
}
