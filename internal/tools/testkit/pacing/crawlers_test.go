package pacing

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// linked is a site whose first page leads to all others.
func linked(pages int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><title>A page</title>\n")
		for n := range pages {
			fmt.Fprintf(w, "<a href=\"/page/%d\">page %[1]d</a>\n", n)
		}
	})
}

// spider is a Scrapy spider that has no delay of its own and asks for sixteen
// pages at a time.
const spider = `
import scrapy
class Spider(scrapy.Spider):
    name = "spider"
    custom_settings = {
        "CONCURRENT_REQUESTS": 16, "DOWNLOAD_DELAY": 0,
        "AUTOTHROTTLE_ENABLED": False, "ROBOTSTXT_OBEY": False, "TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "INFO",
    }
    def start_requests(self):
        yield scrapy.Request(self.start)
    def parse(self, response):
        print("GOT", response.status, response.url, flush=True)
        for link in response.css("a"):
            yield response.follow(link, self.parse)
`

// Real crawlers without any delay of their own, on a site with Crawl-delay 2: they
// come at the site's speed, get every page, and none of them fails of the waiting.
func TestHeed_CrawlersComeAtTheSitesSpeed(t *testing.T) {
	pages := 5
	if testkit.Full {
		pages = 40
	}
	file := filepath.Join(t.TempDir(), "spider.py")
	must.OK(t, os.WriteFile(file, []byte(spider), 0o600))
	scrapy := func(start string, atOnce int) []string {
		return []string{testkit.Program(t, "scrapy"), "runspider", file, "-a", "start=" + start, "-s", fmt.Sprint("CONCURRENT_REQUESTS_PER_DOMAIN=", atOnce)}
	}
	loop := `for n in $(seq 0 $(($2 - 1))); do curl -fsS "$1/page/$n" -o "$n" || exit; done; curl -fsS "$1/" -o first`
	atOnce := `curl -fsS --parallel --parallel-immediate --parallel-max 16 "$1/page/[0-$(($2 - 1))]" -o '#1' "$1/" -o first`
	patient := "max_wait = \"2m\"\n" // more than sixteen turns
	for _, c := range []struct {
		name, origin, pacing string
		command              []string
	}{
		{"wget", "http://site.test", "", []string{"wget", "-nv", "-r", "http://site.test/"}},
		{"wget over https", "https://site.test", "", []string{"wget", "-nv", "-r", "https://site.test/"}},
		{"Scrapy", "http://site.test", patient, scrapy("http://site.test/", 16)},
		{"Scrapy over https", "https://site.test", patient, scrapy("https://site.test/", 16)},
		{"Scrapy's usual eight at a time", "http://site.test", "", scrapy("http://site.test/", 8)},
		{"a loop of curl", "http://site.test", "", []string{"sh", "-c", loop, "sh", "http://site.test", fmt.Sprint(pages)}},
		{"curl with sixteen at once", "https://site.test", patient, []string{"sh", "-c", atOnce, "sh", "https://site.test", fmt.Sprint(pages)}},
		{"curl that comes back when told", "http://site.test", "max_wait = \"4s\"\n", []string{"sh", "-c", "curl --retry 30 " + atOnce[len("curl "):], "sh", "http://site.test", fmt.Sprint(pages)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, testkit.GaugeOptions{Robots: delayed("2"), Handler: linked(pages)}, c.pacing)
			out := b.crawl(t, c.command...)
			found := map[string]int{}
			arrived := testkit.Pages(b.site.Starts(), c.origin)
			for _, a := range arrived {
				found[a.Target]++
				must.True(t, a.Via != "", "%s did not come through heed", a.Target)
			}
			must.True(t, len(found) == pages+1, "it got %d of %d pages:\n%s", len(found), pages+1, out)
			testkit.Keep(t, c.name, arrived, 2*time.Second)
			t.Logf("it was told:\n%s", out)
		})
	}
}

// crawl has `heed run` run a command that has to end well, in a folder of its own.
func (b *bed) crawl(t *testing.T, command ...string) (output string) {
	t.Helper()
	cmd := b.heed(append([]string{"run", "--config", b.File, "--"}, command...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), cmd.Env...)
	testkit.NotOrphaned(cmd)
	out, err := cmd.CombinedOutput()
	must.True(t, err == nil, "%s: %v", strings.Join(command, " "), err)
	return string(out)
}
