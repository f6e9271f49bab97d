package page

import (
	"net/http"
	"testing"

	"heed/internal/tools/testkit/must"
)

// A tag that is written in another way is not overlooked, although most tags are read no
// further than their words.
func TestScanner_UnusualSpellingsAreElements(t *testing.T) {
	t.Parallel()
	for _, tag := range []string{
		`<META NAME=ROBOTS CONTENT=NOINDEX>`, `<meta content=noindex name=rObOtS>`, `<meta content="noindex" name="&#114;obots">`,
		`<meta name="rob&#x6f;ts" content="no&#105;ndex">`, "<meta\nname\n=\n'robots'\ncontent='noindex'>", `<meta/name="robots"/content="noindex"/>`,
		`<meta http-equiv="Robots" content="noindex">`, `<meta NaMe=robots content=noindex property=x>`,
		`<link rel=license type="application/RSL+xml" href=/l>`, `<link href=/l type="application/&#114;sl+xml" rel="License">`,
		`<script type="application/Rsl+XML"><rsl/></script>`,
	} {
		for _, wanted := range [][]string{nil, {"robots"}} {
			s := NewScanner(http.Header{"Content-Type": {"text/html; charset=utf-8"}}, wanted)
			_, _ = s.Write([]byte("<head>" + tag + "</head>"))
			h := s.Finish(true)
			must.True(t, len(h.Elements) == 1, "%s, wanted %q: %+v", tag, wanted, h)
		}
	}
	s := NewScanner(http.Header{"Content-Type": {"text/html; charset=utf-8"}}, []string{"robots"})
	_, _ = s.Write([]byte(`<head><meta property="og:robots" content="x"><meta name=description content=x><link rel=stylesheet href=/a></head>`))
	h := s.Finish(true)
	must.True(t, len(h.Elements) == 0 && h.Why == Whole, "%+v", h)
}
