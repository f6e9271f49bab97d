package study

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"heed/internal/analysis/accesslog"
	"heed/internal/audit/store"
	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/rules"
)

// LoadPolicies reads the robots.txt files at path: one file, a directory of dated files,
// a WARC file, or a record of heed. site is the host that files without a host are for; empty: every
// site.
func LoadPolicies(ctx context.Context, path, site string) (*Policies, error) {
	p := &Policies{}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the robots.txt files cannot be read: %w\nName a file, a directory of dated files, a WARC file or an audit.db", err)
	case info.IsDir():
		err = p.loadDirectory(path, site, true)
	case accesslog.IsRecord(path):
		err = p.loadRecord(ctx, path)
	case accesslog.IsWARC(path):
		var damaged bool
		if damaged, err = p.loadWARC(path); damaged { // the versions after that are not known
			err = fmt.Errorf("%s ends early or is damaged\nRepair it, or name the versions of robots.txt as dated files", path)
		}
	default:
		err = p.loadFile(path, site)
	}
	if err == nil && p.Empty() {
		err = fmt.Errorf("%s contains no robots.txt\nFiles of a directory are named by their date: 2026-05-03.txt, or 2026-05-03T14:00:00Z.404 for an answer without a file", path)
	}
	return p, err
}

// loadFile reads a file that was in force all the time.
func (p *Policies) loadFile(path, site string) error {
	body, err := readRobots(path)
	if err != nil {
		return err
	}
	p.add(&Version{Site: site, Source: filepath.Base(path), Body: body, rank: rankFile})
	return nil
}

func readRobots(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, rules.MaxBytes))
	if err == nil {
		err = rules.CheckFile(body)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return body, err
}

// dated matches the name of a dated file: a day, maybe a time of day in UTC, and txt or
// the status of the answer.
var dated = memo.Expression(`(\d{4})-?(\d\d)-?(\d\d)(?:[T_-]?(\d\d)[:.-]?(\d\d)(?:[:.-]?(\d\d))?Z?)?\.(txt|\d{3})$`)

// loadDirectory reads dated files, those of DIR for site, and with hosts those of DIR/HOST for HOST.
func (p *Policies) loadDirectory(dir, site string, hosts bool) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case err != nil:
		case !e.IsDir():
			err = p.loadDated(path, site)
		case hosts:
			err = p.loadDirectory(path, e.Name(), false)
		}
	}
	return err
}

// loadDated reads a dated file. Files with other names are an error: one that is left out
// without notice would make every judgement wrong.
func (p *Policies) loadDated(path, site string) error {
	name := filepath.Base(path)
	m := dated().FindStringSubmatch(name)
	if strings.HasPrefix(name, ".") {
		return nil
	}
	if m == nil {
		return fmt.Errorf("%s: the name has no date\nName it by the time from which it was in force, such as 2026-05-03.txt or 2026-05-03T14:00:00Z.txt; 2026-05-03.404 is an answer without a file", path)
	}
	for i := 4; i <= 6; i++ {
		if m[i] == "" {
			m[i] = "00"
		}
	}
	from, err := time.Parse("20060102150405", strings.Join(m[1:7], ""))
	if err != nil {
		return fmt.Errorf("%s: the name is not a valid date: %w", path, err)
	}
	v := &Version{Site: site, From: from, Source: name, rank: rankFile}
	if m[7] != "txt" {
		if v.Status, err = strconv.Atoi(m[7]); err != nil || v.Status < 100 || stateOf(v.Status) == rules.Available {
			return fmt.Errorf("%s: %s is not the status of an answer without a file\nA file has the ending .txt", path, m[7])
		}
	} else if v.Body, err = readRobots(path); err != nil {
		return err
	}
	p.add(v)
	return nil
}

// loadWARC reads the robots.txt answers of a WARC file. One that cannot be decoded is
// unreachable from its time on. damaged is set when the file ends early.
func (p *Policies) loadWARC(path string) (damaged bool, err error) {
	return accesslog.ReadRobots(path, func(r *accesslog.Robots) error {
		v := &Version{Site: r.Site, From: r.Time, Source: "WARC", Status: r.Status, rank: rankWARC}
		switch {
		case r.Status >= 300 && r.Status < 400:
			return nil // the answer is that of another record
		case r.Err != nil:
			v.Failed = true
		case r.Body != nil:
			v.Body = r.Body
		}
		p.add(v)
		return nil
	})
}

// loadRecord reads what a record of heed knows of robots.txt files: those that were answered,
// and when there was none or it could not be read. Files of the operator and copies that were
// used for want of a later one are left out.
func (p *Policies) loadRecord(ctx context.Context, path string) (err error) {
	record, err := store.OpenRecord(path)
	if err != nil {
		return err
	}
	r, err := record.Read(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	var failed error
	err = r.Policies(func(v *store.Policy) {
		if !v.Source.Own && !v.Source.Stale {
			failed = errors.Join(failed, p.addRecorded(r, v))
		}
	})
	return errors.Join(err, failed)
}

// addRecorded adds a recorded policy.
func (p *Policies) addRecorded(r *store.Reader, v *store.Policy) error {
	a := &v.Answer
	origin, err := r.Site(v.Site)
	if err != nil {
		return err
	}
	next := &Version{Site: origin.Authority(), From: v.Source.FetchedAt, Source: "audit.db", Status: v.Source.Status, rank: rankRecord}
	if a.AskedAs != "" {
		next.nameKey, next.Source = rules.NameKey(a.AskedAs), "audit.db, asked as "+safetext.Visible(a.AskedAs)
	}
	next.Failed = v.State == stateWords[rules.Unreachable]
	if a.Time != 0 {
		next.From, next.Status = time.UnixMicro(a.Time), int(a.Status)
		if a.Body != 0 && !next.Failed {
			if next.Body, err = r.Body(a.Body); err != nil {
				return err
			}
		}
	}
	if next.From.IsZero() {
		return nil
	}
	p.add(next)
	return nil
}

// AddLogs adds the robots.txt files that logs themselves have: records of heed and WARC
// files. Of a WARC file that is damaged those before the damage are added.
func (p *Policies) AddLogs(ctx context.Context, logs []string) error {
	for _, path := range logs {
		info, err := os.Stat(path)
		switch {
		case err != nil || !info.Mode().IsRegular():
			err = nil // standard input, a pipe, which is read once, or what the reader of logs names
		case accesslog.IsRecord(path):
			err = p.loadRecord(ctx, path)
		case accesslog.IsWARC(path):
			_, err = p.loadWARC(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// LoadNetworks reads autonomous systems from a file of lines "first address, last
// address, number", separated by tabs, with anything after. The func it returns finds the
// system of an address.
func LoadNetworks(path string) (func(netip.Addr) (string, bool), error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []network
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for n := 1; scanner.Scan(); n++ {
		one, err := parseNetwork(scanner.Text())
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w\nA line has the first address, the last and the number, separated by tabs", path, n, err)
		}
		if one.name != "AS0" {
			list = append(list, one)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no autonomous systems\nA line has the first address, the last and the number, separated by tabs", path)
	}
	slices.SortFunc(list, func(a, b network) int { return a.from.Compare(b.from) })
	return func(a netip.Addr) (string, bool) {
		i := sort.Search(len(list), func(i int) bool { return list[i].from.Compare(a) > 0 }) - 1
		if i < 0 || list[i].to.Compare(a) < 0 {
			return "", false
		}
		return list[i].name, true
	}, nil
}

type network struct {
	from, to netip.Addr
	name     string
}

// parseNetwork reads a line of LoadNetworks; the number 0 is of addresses in no system.
func parseNetwork(line string) (n network, err error) {
	fields := strings.SplitN(line, "\t", 4)
	if len(fields) < 3 {
		return n, errors.New("there are not three fields separated by tabs")
	}
	if n.from, err = netip.ParseAddr(fields[0]); err != nil {
		return n, err
	}
	if n.to, err = netip.ParseAddr(fields[1]); err != nil {
		return n, err
	}
	if n.from.BitLen() != n.to.BitLen() || n.to.Less(n.from) {
		return n, errors.New("the last address is before the first")
	}
	number := strings.TrimPrefix(fields[2], "AS")
	if _, err := strconv.ParseUint(number, 10, 32); err != nil {
		return n, fmt.Errorf("%q is not the number of an autonomous system", fields[2])
	}
	n.name = "AS" + number
	return n, nil
}

// LoadRanges reads the address ranges that the operator of a robot publishes, in the form
// that several use: {"prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": ...}]}.
func LoadRanges(path string) ([]netip.Prefix, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Prefixes []struct {
			V4 string `json:"ipv4Prefix"`
			V6 string `json:"ipv6Prefix"`
		} `json:"prefixes"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var list []netip.Prefix
	for _, p := range file.Prefixes {
		prefix, err := netip.ParsePrefix(p.V4 + p.V6)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a prefix: %w\nWrite for example 192.0.2.0/24", path, p.V4+p.V6, err)
		}
		list = append(list, prefix)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no prefixes\nIt must look like {\"prefixes\": [{\"ipv4Prefix\": \"192.0.2.0/24\"}]}", path)
	}
	return list, nil
}
