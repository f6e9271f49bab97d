// Package studycmd holds the command heed study: from access logs to tables.
package studycmd

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"

	"heed/internal/analysis/accesslog"
	"heed/internal/analysis/study"
	"heed/internal/audit"
	"heed/internal/base/memo"
	"heed/internal/base/ownfile"
	"heed/internal/base/safetext"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/output/console"
)

// StudyCmd is `heed study`.
type StudyCmd struct {
	config.FileFlags
	Robots     string   `placeholder:"FILE|DIR" help:"Read robots.txt from a file, dated files, a WARC file or audit.db."`
	Site       string   `placeholder:"URL" help:"Name the site of logs that contain no host."`
	Format     string   `placeholder:"PATTERN" help:"Read lines of this nginx log_format or Apache LogFormat."`
	JSONFields []string `name:"json-fields" placeholder:"FIELD=NAME" help:"Name members of JSON logs, or columns of CSV, that are not known."`

	Endpoint  string   `placeholder:"PREFIX" help:"Count paths with PREFIX for the endpoint measure of Kim et al."`
	ASN       string   `name:"asn" placeholder:"FILE" help:"Read autonomous systems from FILE: first address, last, number (TSV)."`
	Ranges    []string `placeholder:"AGENT=FILE" help:"Read the address ranges that a robot's operator publishes (JSON)."`
	Addresses string   `enum:"hashed,full" default:"hashed" placeholder:"WORD" help:"Print addresses hashed (the default) or full."`
	Key       string   `placeholder:"FILE" help:"Keep the key of the hashes in FILE, made on first use."`
	Text      bool     `xor:"form" help:"Print plain text (the default)."`
	HTML      bool     `xor:"form" name:"html" help:"Print one self-contained HTML page."`
	JSON      bool     `xor:"form" name:"json" help:"Print one JSON object with all tables."`
	CSV       string   `name:"csv" placeholder:"DIR" help:"Write tables, requests, queries and a codebook to a new directory."`
	Methods   bool     `xor:"form" help:"Print the definitions of all tables and exit."`
	Logs      []string `arg:"" optional:"" name:"log" help:"Access logs; - is standard input."`
}

// Run reads the logs and prints the tables.
func (c *StudyCmd) Run(a *console.App) error {
	if c.Methods {
		_, err := io.WriteString(a.Stdout, study.MethodsText())
		return err
	}
	if len(c.Logs) == 0 {
		return errors.New("no log is named\nName access logs, or - for standard input")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second interrupt ends the process
	options, err := c.options(ctx, a)
	if err != nil {
		return err
	}
	var tables *study.Directory // nil: none is written
	if c.CSV != "" {
		if tables, err = study.NewDirectory(c.CSV); err != nil {
			return err
		}
		options.Rows = tables.Row
	}
	result, err := c.read(ctx, a, options) // nil with an error
	if tables != nil {
		err = errors.Join(err, tables.Close(result))
	}
	if result == nil {
		return err
	}
	w := bufio.NewWriter(a.Stdout)
	if err = errors.Join(err, c.write(w, result), w.Flush()); err == nil && result.Partial {
		a.Complain(errors.New("interrupted: the tables are of what had been read"))
		return console.Exit(130)
	}
	return err
}

func (c *StudyCmd) write(w io.Writer, r *study.Result) error {
	switch {
	case c.HTML:
		return r.WriteHTML(w)
	case c.JSON:
		return r.WriteJSON(safetext.EscapingWriter{Writer: w})
	}
	return r.WriteText(w)
}

// options returns what the flags say.
func (c *StudyCmd) options(ctx context.Context, a *console.App) (o study.Options, err error) {
	o.Heed = console.Version()
	if o.Site, err = siteHost(c.Site); err != nil {
		return o, err
	}
	if c.Endpoint != "" && !strings.HasPrefix(c.Endpoint, "/") {
		return o, fmt.Errorf("--endpoint: %q is no beginning of a path\nWrite a path such as /page-data/", c.Endpoint)
	}
	o.Endpoint, o.Hashed = c.Endpoint, c.Addresses == "hashed"
	if o.Privacy, err = c.privacy(a); err != nil {
		return o, err
	}
	if o.Policies = (&study.Policies{}); c.Robots != "" {
		if o.Policies, err = study.LoadPolicies(ctx, c.Robots, o.Site); err != nil {
			return o, err
		}
	}
	if err := o.Policies.AddLogs(ctx, c.Logs); err != nil {
		return o, err
	}
	if c.ASN != "" {
		if o.Networks, err = study.LoadNetworks(c.ASN); err != nil {
			return o, fmt.Errorf("--asn: %w", err)
		}
	}
	for _, pair := range c.Ranges {
		token, path, ok := strings.Cut(pair, "=")
		if !ok || token == "" {
			return o, fmt.Errorf("--ranges: %q is not AGENT=FILE\nWrite for example --ranges gptbot=gptbot.json", pair)
		}
		list, err := study.LoadRanges(path)
		if err != nil {
			return o, fmt.Errorf("--ranges: %w", err)
		}
		memo.Set(&o.Ranges, strings.ToLower(token), list)
	}
	return o, nil
}

// siteHost returns the host of --site.
func siteHost(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("--site: %q is not the URL of a site\nWrite for example --site https://example.org", text)
	}
	return u.Host, nil
}

// privacy returns what hides addresses and secrets.
func (c *StudyCmd) privacy(a *console.App) (*audit.Privacy, error) {
	cfg, err := c.Load(a)
	if err != nil {
		return nil, err
	}
	key := make([]byte, audit.PrivacyKeySize)
	_, _ = rand.Read(key) // never fails
	if c.Key != "" {
		if key, err = keepKey(c.Key, key); err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
	}
	clients := audit.ClientsHashed
	if c.Addresses == "full" {
		clients = audit.ClientsFull
	}
	return audit.NewPrivacy(clients, cfg.Audit.Redact, key)
}

// keepKey returns the key in a file, which is created with the key fresh on first use.
func keepKey(path string, fresh []byte) ([]byte, error) {
	text, err := state.ReadOrCreate(path, hex.EncodeToString(fresh)+"\n")
	if err == nil {
		err = ownfile.CheckFile(ownfile.Secret, "the key", path)
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != audit.PrivacyKeySize {
		return nil, fmt.Errorf("the file %s contains no key\nName a new file, and heed creates a key in it", path)
	}
	return key, nil
}

// read passes the requests of the logs to a study. An interrupt ends it early.
func (c *StudyCmd) read(ctx context.Context, a *console.App, o study.Options) (*study.Result, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // large maps: less memory counts more than time
	logs, err := accesslog.Open(accesslog.Options{Files: c.Logs, Stdin: a.Stdin, Format: c.Format, Names: c.JSONFields})
	if err != nil {
		return nil, err
	}
	defer logs.Close()
	defer context.AfterFunc(ctx, logs.Stop)() // what was read before is counted
	progress, end := a.Bar("reading logs")
	defer end()
	s := study.New(o)
	reading, enough := context.WithCancel(context.WithoutCancel(ctx))
	defer enough()
	batches := make(chan []accesslog.Request, 4)
	var failed, broken error
	go func() {
		defer close(batches)
		failed = pass(reading, logs, batches)
	}()
	for batch := range batches { // to the end, as the reader waits for each to be taken
		for i := 0; i < len(batch) && broken == nil; i++ {
			if broken = s.Add(&batch[i]); broken != nil {
				enough()
			}
		}
		progress(logs.Progress())
	}
	if err := errors.Join(broken, failed); err != nil {
		return nil, err
	}
	counts := logs.Counts()
	if counts.Unparsed == counts.Lines && ctx.Err() == nil {
		return nil, fmt.Errorf("no line of %s could be read as a request%s\nheed study reads common, combined, JSON and W3C logs, WARC files and records of heed; --format describes others", strings.Join(c.Logs, ", "), why(counts))
	}
	return s.Finish(counts, ctx.Err() != nil, a.Now()), nil
}

// why returns the first reason why lines could not be read, after a colon.
func why(c accesslog.Counts) string {
	if len(c.Problems) == 0 {
		return ": there is none"
	}
	return ": " + c.Problems[0].Reason
}

// batchSize is how many requests are passed from the reader to the study together.
const batchSize = 2048

// pass passes requests to batches, to the end of the logs or of ctx.
func pass(ctx context.Context, logs *accesslog.Reader, batches chan<- []accesslog.Request) error {
	for ctx.Err() == nil {
		batch := make([]accesslog.Request, 0, batchSize)
		var err error
		for len(batch) < batchSize && err == nil {
			var r accesslog.Request
			if r, err = logs.Next(); err == nil {
				batch = append(batch, r)
			}
		}
		batches <- batch
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
