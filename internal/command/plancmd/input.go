package plancmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"heed/internal/analysis/accesslog"
	"heed/internal/analysis/plan"
	"heed/internal/check"
	"heed/internal/output/console"
	"heed/rules"
)

// inputs are the lists, logs and sitemaps of a plan.
type inputs struct {
	*PlanCmd
	app   *console.App
	sites *check.Sites
	plan  *plan.Plan

	lists  []list
	logs   *accesslog.Reader // nil: none is named
	scheme string            // of requests in logs without one
	host   string            // of requests in logs without one

	named    map[rules.Origin]bool // the sites that the lists name; nil: they do not matter
	seen     sync.Map              // the sitemaps that were requested
	waits    waits                 // for sitemaps
	failed   atomic.Bool           // a sitemap could not be read
	problems plan.Problems
}

// list is an open list of URLs.
type list struct {
	name string
	in   io.ReadCloser
}

// open opens the lists and logs, so that a missing one is known before the first request.
func (c *PlanCmd) open(a *console.App, sites *check.Sites) (*inputs, error) {
	in := &inputs{PlanCmd: c, app: a, sites: sites, scheme: "https"}
	if c.Sitemaps {
		in.named = map[rules.Origin]bool{}
	}
	err := in.openLists()
	if err == nil {
		err = in.openLogs()
	}
	return in, err
}

// openLists opens the lists, and checks the addresses of sitemaps.
func (in *inputs) openLists() error {
	files := in.Files
	if len(files) == 0 && len(in.Sitemap) == 0 && len(in.FromLog) == 0 {
		if f, ok := in.app.Stdin.(*os.File); ok && console.IsTerminal(f) {
			return errors.New("there is no list of URLs\nName one: heed plan --agent ExampleBot urls.txt; - is standard input")
		}
		files = []string{"-"}
	}
	for _, name := range files {
		if err := in.openList(name); err != nil {
			return err
		}
	}
	for _, address := range in.Sitemap {
		if _, _, err := rules.ParseURL(address); err != nil {
			return fmt.Errorf("--sitemap: %w\nIt takes the URL of a sitemap; write the URLs of one in a file into a list", err)
		}
	}
	return nil
}

// openLogs opens the logs.
func (in *inputs) openLogs() (err error) {
	if in.Site != "" {
		u, err := url.Parse(in.Site)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("--site: %q is not the URL of a site\nWrite for example --site https://example.org", in.Site)
		}
		in.scheme, in.host = u.Scheme, u.Host
	}
	if len(in.FromLog) == 0 {
		return nil
	}
	if slices.Contains(in.FromLog, "-") && slices.ContainsFunc(in.lists, func(l list) bool { return l.name == stdinName }) {
		return errors.New("--from-log - and the list would both read standard input\nName a file")
	}
	if in.logs, err = accesslog.Open(accesslog.Options{Files: in.FromLog, Stdin: in.app.Stdin, Names: in.JSONFields, Refused: true}); err != nil {
		return fmt.Errorf("--from-log: %w", err)
	}
	return nil
}

// stdinName is the name of the list on standard input.
const stdinName = "standard input"

func (in *inputs) openList(name string) error {
	if name == "-" {
		if slices.ContainsFunc(in.lists, func(l list) bool { return l.name == stdinName }) {
			return errors.New("standard input is named twice\nName - once")
		}
		in.lists = append(in.lists, list{stdinName, io.NopCloser(in.app.Stdin)})
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		advice := "Name a file with one URL a line; a sitemap is named with --sitemap URL"
		if strings.Contains(name, "://") {
			advice = "A list is a file with one URL a line; to judge URLs of the command line: heed check --agent NAME URL"
		}
		return fmt.Errorf("the list of URLs cannot be read: %w\n%s", err, advice)
	}
	in.lists = append(in.lists, list{name, f})
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory\nName the lists in it", console.Printable(name))
	}
	return nil
}

func (in *inputs) close() {
	for _, l := range in.lists {
		_ = l.in.Close() // it was only read
	}
	if in.logs != nil {
		in.logs.Close()
	}
}

// read adds all pages to the plan, until ctx ends, and closes the lists and logs. The first error
// is returned; what came before it, and what other inputs have, was added.
func (in *inputs) read(ctx context.Context) (first error) {
	defer in.close()
	for _, l := range in.lists {
		err := plan.ReadList(ctx, l.in, l.name, in.add, &in.problems)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the gzip file ends too early; copy it again")
		}
		if err != nil && first == nil {
			first = fmt.Errorf("%s cannot be read to its end: %w", l.name, err)
		}
	}
	if in.logs != nil {
		if err := in.readLogs(ctx); err != nil && first == nil {
			first = err
		}
	}
	in.readSitemaps(ctx)
	return first
}

// add adds a page of a list.
func (in *inputs) add(address string) error {
	if in.named != nil {
		if o, _, err := rules.ParseURL(address); err == nil {
			in.named[o] = true
		}
	}
	return in.plan.Add(address)
}

// readLogs adds the pages of the logs.
func (in *inputs) readLogs(ctx context.Context) error {
	defer context.AfterFunc(ctx, in.logs.Stop)()
	for {
		q, err := in.logs.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		address, err := in.pageOf(&q)
		if err == nil {
			err = in.add(address)
		}
		if err != nil {
			in.problems.Add(fmt.Sprintf("%s:%d", q.Source, q.Line), address, err.Error())
		}
	}
	for _, name := range in.logs.Counts().Truncated {
		in.problems.Add(name, name, "the log ends early or is damaged: what follows was not read")
	}
	for _, p := range in.logs.Counts().Problems {
		in.problems.Merge(&plan.Problem{Reason: p.Reason, Count: p.Count, Places: p.Lines})
	}
	return nil
}

// The reasons of requests in logs that name no page.
var (
	errMethod = errors.New("the request is neither GET nor HEAD")
	errNoHost = errors.New("the request names no host; --site names that of the log")
	errNoPath = errors.New("the request has no path")
)

// pageOf returns the URL that a request in a log was for.
func (in *inputs) pageOf(q *accesslog.Request) (string, error) {
	host := cmp.Or(q.Host, in.host)
	switch {
	case q.Method != "" && q.Method != http.MethodGet && q.Method != http.MethodHead:
		return "", errMethod
	case strings.HasPrefix(q.Target, "http://"), strings.HasPrefix(q.Target, "https://"):
		return q.Target, nil
	case !strings.HasPrefix(q.Target, "/"):
		return "", errNoPath
	case host == "":
		return "", errNoHost
	}
	return cmp.Or(q.Scheme, in.scheme) + "://" + host + q.Target, nil
}
