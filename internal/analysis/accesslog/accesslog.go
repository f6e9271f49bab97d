// Package accesslog reads the access logs of web servers in the order of time.
//
// It reads the common and the combined format of Apache and nginx, also with the virtual
// host first, lines of JSON (Caddy, nginx, Traefik, logs of services), CSV with the names of
// its columns, the W3C extended format (IIS,
// CloudFront), any pattern of nginx's log_format and Apache's LogFormat, WARC files and
// records of heed. Files may be compressed by gzip, zstd or bzip2. The format of each file
// is found from its first lines.
//
// Several files are merged by time. A file that is in order, or nearly so, is streamed:
// it is read once for the order of its lines and once for the requests. Others, and
// standard input, are sorted, in a temporary file once they exceed a bound of memory.
//
// Lines that are no requests are counted by reason with their places. The package starts
// goroutines during the first call of Next, to look at several files, and one for standard
// input and for each pipe, which ends with it; a caller that wants to read ahead calls Next
// in a goroutine of its own.
package accesslog

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"
)

// Request is a request in an access log. Its strings share memory with those of other
// requests: those that are kept for long should be cloned.
type Request struct {
	Time      time.Time // with the zone of the line
	Client    string    // address, the name that the server looked up, or the hash in a record; empty: not logged
	Scheme    string    // http or https; empty: not logged
	Host      string    // virtual host, maybe with a port; empty: the log has none
	Method    string    // empty: the line has no request
	Target    string    // as sent, escapes of the log undone
	Status    int       // 0: not logged
	Bytes     int64     // octets of the answer; 0: not logged
	Referrer  string    // empty: none, or not logged
	UserAgent string    // empty: none, or not logged
	Source    string    // name of the file
	Line      int64     // number of the line in it, from 1; of the record in a WARC file and in a record of heed
	// Refused is set for a request that heed answered itself, so that no site saw it. Only
	// records, log lines and exports of heed have those, with Options.Refused.
	Refused bool
	// OutOfOrder is set when the time of the line is before that of the request before it
	// in the file.
	OutOfOrder bool

	source int  // index of the file
	cut    bool // the line is longer than maxLine
}

// compare is negative when a is returned before b: by time, then by the order of the files,
// then by that of the lines.
func (a *Request) compare(b *Request) int {
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.source, b.source), cmp.Compare(a.Line, b.Line))
}

const (
	maxLine       = 1 << 20 // octets of a line that are read
	maxWindow     = 1 << 14 // requests of a file that are put in order in memory
	maxExamples   = 5
	clockStep     = time.Hour
	defaultMemory = 128 << 20
)

// Problem is a number of lines that are no requests, for one reason.
type Problem struct {
	Reason string
	Count  int64
	Lines  []string // the first of them, as FILE:LINE
}

// Counts is what was read so far.
type Counts struct {
	Lines     int64 // without comments; records of WARC files and of heed count as lines
	Unparsed  int64
	Cut       int64 // lines longer than 1 MiB, of which the rest was not read
	Steps     int64 // lines more than an hour before the line before
	Problems  []Problem
	Truncated []string // files that end early or are damaged; what is before that was read
}

// Options names the logs and how they are read.
type Options struct {
	Files []string  // the name - is standard input
	Stdin io.Reader // for that name
	// Format is the pattern of the lines, as nginx's log_format or Apache's LogFormat has
	// it, or one of the names common, combined, vhost_combined, json, csv and w3c. Empty: it is
	// found from the first lines. WARC files and records of heed are always recognised.
	Format string
	// Names are fields as FIELD=NAME: one of FieldNames, and the member of JSON objects, or the
	// column of CSV, that has it. They count before the names that are known.
	Names []string
	// Refused also returns the requests that heed answered itself, from records, log lines and
	// exports of heed.
	Refused bool
	// TempDir is the directory of the file for sorting; empty: that of os.TempDir.
	TempDir string
	// Memory bounds in octets the requests that are sorted in memory, to 2 GiB; 0: 128 MiB.
	Memory int
}

// Reader reads requests. Only Progress and Stop may be called while Next runs.
type Reader struct {
	options  Options
	custom   parser // of Options.Format; nil: found from the first lines
	names    names  // of JSON members and CSV columns
	sources  []*source
	prepared bool
	heads    []*merged // one for each stream that has not ended, in order
	sorter   sorter
	counts   Counts
	done     atomic.Int64
	all      atomic.Int64
	stopped  context.Context
	stop     context.CancelFunc
}

// Open opens the logs of o. The error names a file that does not exist, or what is
// wrong with the format.
func Open(o Options) (*Reader, error) {
	r := &Reader{options: o}
	r.stopped, r.stop = context.WithCancel(context.Background())
	r.sorter.reader = r
	if o.Memory <= 0 {
		r.options.Memory = defaultMemory
	}
	var err error
	if r.names, err = namesWith(o.Names); err != nil {
		return nil, err
	}
	if o.Format != "" {
		custom, err := r.compile(o.Format)
		if err != nil {
			return nil, err
		}
		r.custom = custom
	}
	named := false
	for i, name := range o.Files {
		s := &source{reader: r, index: i, path: name, name: name}
		if name == "-" {
			if named {
				return nil, fmt.Errorf("standard input is named twice\nName - once")
			}
			named, s.piped, s.path, s.name = true, true, "", "standard input"
		} else if err := s.look(); err != nil {
			return nil, err
		}
		r.sources = append(r.sources, s)
	}
	return r, nil
}

// Close closes the files and removes the temporary one.
func (r *Reader) Close() {
	r.stop()
	for _, s := range r.sources {
		s.close()
	}
	r.sorter.close()
}

// Progress returns how many octets of the files have been read, and how many there are.
// Octets that are read twice count twice.
func (r *Reader) Progress() (done, all int64) { return r.done.Load(), r.all.Load() }

// Stop ends the logs where they are: Next returns what was read and sorted before, and
// then io.EOF. It does not wait for standard input or a pipe.
func (r *Reader) Stop() { r.stop() }

// Counts returns what was read so far. It is valid until the next call of Next.
func (r *Reader) Counts() Counts { return r.counts }

// stream is requests in the order of time. The error after the last one is io.EOF.
type stream interface {
	next(q *Request) error
}

// merged is a stream and its first request. Until that is read, and a file is opened, head has
// the time of the first request of a file.
type merged struct {
	head Request
	from stream
	read bool
}

func (m *merged) compare(o *merged) int { return m.head.compare(&o.head) }

// Next returns the next request in the order of time; equal times keep the order of the
// files and of their lines. The error after the last one is io.EOF; others name the file
// that cannot be read.
func (r *Reader) Next() (Request, error) {
	if !r.prepared {
		r.prepared = true
		if err := r.prepare(); err != nil {
			return Request{}, err
		}
	}
	for len(r.heads) > 0 {
		m := r.heads[0]
		q, read := m.head, m.read
		m.read = true
		switch err := m.from.next(&m.head); err {
		case nil:
			at, _ := slices.BinarySearchFunc(r.heads[1:], m, (*merged).compare)
			copy(r.heads, r.heads[1:at+1])
			r.heads[at] = m
		case io.EOF:
			r.heads = r.heads[1:]
		default:
			return Request{}, err
		}
		if read {
			return q, nil
		}
	}
	return Request{}, io.EOF
}

// prepare finds which files are in order, and sorts the others.
func (r *Reader) prepare() error {
	if err := r.survey(); err != nil {
		return err
	}
	for _, s := range r.sources {
		if s.ordered {
			r.heads = append(r.heads, &merged{head: Request{Time: s.first, source: s.index}, from: s.stream()})
		} else if err := r.sort(s); err != nil {
			return err
		}
	}
	streams, err := r.sorter.streams()
	for _, in := range streams {
		r.heads = append(r.heads, &merged{from: in})
	}
	slices.SortFunc(r.heads, (*merged).compare)
	return err
}

// sort passes the requests of a source to the sorter.
func (r *Reader) sort(s *source) error {
	defer s.close()
	for {
		var q Request
		err := s.next(&q)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = r.sorter.add(&q)
		}
		if err != nil {
			return err
		}
	}
}

// problem counts q, which is no request.
func (r *Reader) problem(q *Request, reason string) {
	r.counts.Unparsed++
	at := slices.IndexFunc(r.counts.Problems, func(p Problem) bool { return p.Reason == reason })
	if at < 0 {
		at = len(r.counts.Problems)
		r.counts.Problems = append(r.counts.Problems, Problem{Reason: reason})
	}
	p := &r.counts.Problems[at]
	if p.Count++; len(p.Lines) < maxExamples {
		p.Lines = append(p.Lines, fmt.Sprintf("%s:%d", q.Source, q.Line))
	}
}
