package proxy

import (
	"net/http"
	"testing"
)

// What a browser asks for to show a page is recorded as part of that page;
// documents, frames and what scripts ask for by themselves are not.
func TestHeed_PartsOfPagesAreRecordedAsSuch(t *testing.T) {
	r := newRig(t, hello)
	eachMode(t, []mode{plain, mitmH1, mitmH2}, func(t *testing.T, m mode) {
		path := "/private?" + string(m)
		r.in(t).ask(m, question{path: path, header: []string{"Sec-Fetch-Dest: image", "Referer: https://u:p@site.test/page?a=1#top"}})
		e := r.records.target(t, path)
		if e.Part != "image" || e.Page != "https://site.test/page?a=1" || e.Became() != "refused-by-heed" {
			t.Errorf("recorded as %q of %q, %s", e.Part, e.Page, e.Became())
		}
	})
	for _, dest := range []string{"", "document", "iframe", "frame", "empty", "x\x1b", "IMAGE"} {
		h := http.Header{"Referer": {"https://site.test/"}}
		if dest != "" {
			h["Sec-Fetch-Dest"] = []string{dest}
		}
		if part, page := partOf(h); part != "" || page != "" {
			t.Errorf("%q: %q of %q", dest, part, page)
		}
	}
	if part, page := partOf(http.Header{"Sec-Fetch-Dest": {"style"}, "Referer": {"javascript:x"}}); part != "style" || page != "" {
		t.Errorf("%q of %q", part, page)
	}
}
