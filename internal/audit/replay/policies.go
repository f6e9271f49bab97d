package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"heed/internal/audit/store"
	"heed/internal/memo"
	"heed/rules"
)

// Policies are the policies of an earlier run, by which another run is judged. The
// policy of a site is that of the last usable response in the record: a file, or
// the status that there is none. A site without one, or that is not in the record,
// is unreachable. Nothing is fetched, so that two runs are judged by the same
// rules. It is safe for concurrent use.
type Policies struct {
	name    string
	record  *store.Record
	library *library
	profile rules.Profile
	sites   map[rules.Origin]sitePolicies
	known   memo.Map[int64, *rules.Policy]
}

// sitePolicies are the policies of a site by the User-Agent of the request for
// robots.txt; empty: heed's own.
type sitePolicies map[string]recordedPolicy

// recordedPolicy is a policy of the record, and whether it is usable: the site
// was not unreachable.
type recordedPolicy struct {
	policy int64
	usable bool
}

// OpenPolicies opens the record at path. Files are parsed under profile, whatever
// the profile of the earlier run.
func OpenPolicies(path string, profile rules.Profile) (*Policies, error) {
	record, err := store.OpenRecord(path)
	if err != nil {
		return nil, err
	}
	p := &Policies{
		name: filepath.Base(path), record: record, library: &library{}, profile: profile,
		sites: map[rules.Origin]sitePolicies{},
	}
	if err := p.index(); err != nil {
		return nil, fmt.Errorf("the policies in %s cannot be read: %w", path, err)
	}
	return p, nil
}

// Len returns the number of sites with a policy in the record.
func (p *Policies) Len() int { return len(p.sites) }

// index sets the policy of each site and User-Agent.
func (p *Policies) index() error {
	r, err := p.record.Read(context.Background())
	if err != nil {
		return err
	}
	defer r.Close()
	origins := map[int64]rules.Origin{}
	return errors.Join(
		r.Sites(&store.Filter{}, func(id int64, o rules.Origin, _ bool) { origins[id] = o }),
		r.Policies(func(row *store.Policy) {
			if row.Source.Own {
				return
			}
			o := origins[row.Site]
			if p.sites[o] == nil {
				p.sites[o] = sitePolicies{}
			}
			as, a := row.Answer.AskedAs, recordedPolicy{row.ID, row.State != "unreachable"}
			if a.usable || !p.sites[o][as].usable {
				p.sites[o][as] = a
			}
		}),
	)
}

// Policy returns o's policy for a client with a User-Agent; it is never nil.
func (p *Policies) Policy(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	site := p.sites[o]
	a, ok := site[userAgent]
	if !ok {
		a, ok = site[""]
	}
	var err error
	if ok {
		var made *rules.Policy
		if made, err = p.made(ctx, a); err == nil {
			return made
		}
	}
	why := &notRecorded{
		"the record " + p.name + " has no robots.txt of this site, and only that record is judged by",
		"is not in the record of an earlier run, by which alone this run is judged", err,
	}
	if err != nil {
		why.text = fmt.Sprintf("the robots.txt in the record %s cannot be used: %v", p.name, err)
	}
	return rules.NewAs(p.profile, rules.Source{Origin: o, State: rules.Unreachable, Err: why}, nil)
}

// Held returns the policies of o that were recorded for clients with a User-Agent.
func (p *Policies) Held(o rules.Origin) (files []*rules.Policy) {
	site := p.sites[o]
	for _, as := range slices.Sorted(maps.Keys(site)) {
		if made, err := p.made(context.Background(), site[as]); as != "" && err == nil && made.Source().State == rules.Available {
			files = append(files, made)
		}
	}
	return files
}

func (p *Policies) made(ctx context.Context, a recordedPolicy) (*rules.Policy, error) {
	return p.known.LoadSized(a.policy, sizeOf, maxPolicyBytes, func() (*rules.Policy, error) { return p.read(ctx, a.policy) })
}

// read reads a policy of the record, and parses its file under p's profile.
func (p *Policies) read(ctx context.Context, id int64) (*rules.Policy, error) {
	r, err := p.record.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	recorded, err := p.library.policy(r, id)
	if err != nil {
		return nil, err
	}
	policy := recorded.under(p.profile)
	if source := policy.Source(); source.State == rules.Unreachable {
		public := "could not be read in the earlier run by which alone this run is judged"
		if source.Status != 0 {
			public = fmt.Sprintf("was answered with status %d in the earlier run by which alone this run is judged", source.Status)
		}
		source.Err = &notRecorded{"robots.txt " + public, public, source.Err}
		source.RetryAt = time.Time{}
		policy = policy.With(source)
	}
	return policy, recorded.err
}

// notRecorded is the error that a record has no robots.txt of a site.
type notRecorded struct {
	text   string // names the record, or the answer in it
	public string // for clients, after "robots.txt" in a sentence
	err    error  // why it cannot be read; nil: there is none
}

// Error returns why the record is of no use.
func (e *notRecorded) Error() string { return e.text }

// PublicText returns the text for clients, which follows "robots.txt" in a
// sentence.
func (e *notRecorded) PublicText() string { return e.public }

// Lasting reports that the record is all there is: no robots.txt is fetched.
func (*notRecorded) Lasting() bool { return true }

// Unwrap returns the error of reading the record; nil: it has no robots.txt.
func (e *notRecorded) Unwrap() error { return e.err }
