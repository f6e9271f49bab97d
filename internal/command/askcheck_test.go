package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

func TestHeed_CheckAsksTheHeedThatRuns(t *testing.T) {
	var asked atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, someRules)
	}))
	defer site.Close()
	startDaemon(t, func(d *daemon) { d.background, d.listen = false, "127.0.0.1:3128" })

	for range 2 { // the second answer comes from what the heed has kept
		s := heed(t, "", "check", "--agent", "x", site.URL+"/private", site.URL+"/robots.txt")
		want := regexp.MustCompile(`^refuse ` + site.URL + `/private  rule: line 2, Disallow: /private, group \* \(by the running heed's copy, \ds old\)
allow  ` + site.URL + `/robots.txt  robots-txt: robots.txt may always be asked for
$`)
		if s.status != exitNo || !want.MatchString(s.out) || s.errors != "" {
			t.Errorf("%+v", s)
		}
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("the site was asked %d times", got)
	}
	s := heed(t, `{"agent":"x","url":"`+site.URL+`/private"}`, "check", "--batch")
	if s.status != 0 || !strings.Contains(s.out, `"allowed":false`) || asked.Load() != 1 {
		t.Errorf("batch: %+v, the site was asked %d times", s, asked.Load())
	}
	s = heed(t, "", "check", "--json", "--agent", "x", site.URL+"/")
	var got judgement
	if err := json.Unmarshal([]byte(s.out), &got); err != nil || got.By != "heed" || got.Robots != site.URL+"/robots.txt" || !got.Allowed {
		t.Errorf("%+v, %v", s, err)
	}
	if s := heed(t, "", "check", "--agent", "x", "site.test"); s.status != exitUsage || !strings.Contains(s.errors, `"site.test" is not the URL of a site`) {
		t.Errorf("no URL: %+v", s)
	}
	for i, flag := range []string{"--local", "--fresh"} { // nothing is stored here
		s := heed(t, "", "check", flag, "--agent", "x", site.URL+"/private")
		if s.status != exitNo || strings.Contains(s.out, "running heed") || int(asked.Load()) != 2+i {
			t.Errorf("%s: %+v, the site was asked %d times", flag, s, asked.Load())
		}
	}
}

// A heed that `heed run` started serves that run alone, and may end at any moment.
func TestHeed_CheckDoesNotAskTheHeedOfARun(t *testing.T) {
	startDaemon(t, nil)
	if client, err := heedHere(t.Context()); client != nil || err != nil {
		t.Errorf("%v, %v", client, err)
	}
}
