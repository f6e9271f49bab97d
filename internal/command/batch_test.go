package command

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestBatchAnswersEachLineInItsPlace(t *testing.T) {
	in := strings.Join([]string{
		`{"robots":"User-agent: *\nDisallow: /a","agent":"x","url":"http://h.test/a","id":1,"tags":["<b>"]}`,
		`{"robots_b64":"` + base64.StdEncoding.EncodeToString([]byte(someRules)) + `","agent":"GoodBot","url":"http://h.test/private"}`,
		`{"robots":"","agent":"","url":"http://h.test/"}`,
		``,
		`no json`,
		"{\"robots\":\"\",\"agent\":\"x\",\"url\":\"http://h.test/\xe4\"}",
		`{"robots":"","agent":"x\ud800","url":"http://h.test/"}`,
		`[1]`,
		`null`,
		`{"robots":"","url":"http://h.test/","id":7}`,
		`{"robots":"","agent":"x"}`,
		`{"robots":"","agent":"x","url":"h.test"}`,
		`{"robots":1,"agent":"x","url":"http://h.test/"}`,
		`{"robots":"","robots_b64":"","agent":"x","url":"http://h.test/"}`,
		`{"robots_b64":"?","agent":"x","url":"http://h.test/"}`,
		`{"robots":"","agent":"x","url":"http://h.test/robots.txt","ö\n":1e999,"allowed":"perhaps"}`,
	}, "\n")
	want := strings.Join([]string{
		`{"agent":"x","id":1,"tags":["<b>"],"url":"http://h.test/a","allowed":false,"reason":"rule","group":"*","rule":"Disallow: /a","line":2}`,
		`{"agent":"GoodBot","url":"http://h.test/private","allowed":true,"reason":"rule","group":"GoodBot","rule":"Allow: /","line":5}`,
		`{"agent":"","url":"http://h.test/","allowed":true,"reason":"no-rule","group":"","rule":"","line":0}`,
		`{"error":"the line is not a JSON object"}`,
		`{"error":"the line is not UTF-8, or has half of a surrogate pair; a robots.txt that is not UTF-8 goes into robots_b64"}`,
		`{"error":"the line is not UTF-8, or has half of a surrogate pair; a robots.txt that is not UTF-8 goes into robots_b64"}`,
		`{"error":"the line is not a JSON object"}`,
		`{"error":"the line is not a JSON object"}`,
		`{"id":7,"url":"http://h.test/","error":"agent is missing"}`,
		`{"agent":"x","error":"url is missing"}`,
		`{"agent":"x","url":"h.test","error":"\"h.test\" is not the URL of a site; write it out, such as \"https://example.org/page\""}`,
		`{"agent":"x","url":"http://h.test/","error":"robots is not a text"}`,
		`{"agent":"x","url":"http://h.test/","error":"robots and robots_b64 exclude each other"}`,
		`{"agent":"x","url":"http://h.test/","error":"robots_b64 is not base64"}`,
		`{"agent":"x","url":"http://h.test/robots.txt","ö\n":1e999,"allowed":true,"reason":"robots-txt","group":"","rule":"","line":0}`,
	}, "\n") + "\n"
	heed(t, in, "check", "--batch").is(t, console.ExitUsage, want, "")
}

func TestBatchAgainstAFileKeepsTheOrder(t *testing.T) {
	robots := testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), someRules)
	var in strings.Builder
	const lines = 10_000
	for i := range lines {
		page := "open"
		if i%3 == 0 {
			page = "private"
		}
		fmt.Fprintf(&in, "{\"agent\":\"bot%d\",\"url\":\"https://h%d.test/%s/%d\",\"id\":%d}\n", i%5, i%7, page, i, i)
	}
	s := heed(t, in.String(), "check", "--batch", "--robots", robots)
	must.Need(t, s.status == 0 && s.errors == "", "status %d, stderr %q", s.status, s.errors)
	answers := json.NewDecoder(strings.NewReader(s.out))
	for i := range lines {
		var got struct {
			ID      int
			Allowed bool
		}
		err := answers.Decode(&got)
		must.Need(t, err == nil && got.ID == i && got.Allowed == (i%3 != 0), "answer %d is %+v, %v", i, got, err)
	}
}

// A program that asks one question and waits must get its answer before it
// asks the next.
func TestBatchAnswersBeforeTheNextQuestion(t *testing.T) {
	for _, more := range [][]string{nil, {"--robots", testkit.Write(t, filepath.Join(t.TempDir(), "robots.txt"), someRules)}} {
		inRead, inWrite := io.Pipe()
		outRead, outWrite := io.Pipe()
		a := &console.App{Stdin: inRead, Stdout: outWrite, Stderr: io.Discard, Defaults: testkit.BuiltIn(t), Now: time.Now}
		ended := make(chan int)
		go func() { ended <- dispatch(a, append([]string{"check", "--batch"}, more...)) }()
		answers := json.NewDecoder(outRead)
		for i := range 3 {
			fmt.Fprintf(inWrite, "{\"robots\":\"\",\"agent\":\"x\",\"url\":\"http://h.test/\",\"id\":%d}\n", i)
			var got struct{ ID int }
			err := answers.Decode(&got)
			must.Need(t, err == nil && got.ID == i, "answer %d is %+v, %v", i, got, err)
		}
		inWrite.Close()
		must.Equal(t, <-ended, 0, "status")
	}
}
