package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"heed/internal/audit/store"
	"heed/internal/base/memo"
	"heed/internal/base/safetext"
	"heed/rules"
)

// Policies are the policies of an earlier run, by which another run is judged. The
// policy of a site is that of the last usable response in the record: a file, or
// the status that there is none; where the site was asked under several names, it is the
// one that is in force for the client (rules.InForce). A site without one, or that is not
// in the record, is unreachable. Nothing is fetched, so that two runs are judged by the
// same rules. It is safe for concurrent use.
type Policies struct {
	name    string
	record  *store.Record
	library *library
	profile rules.Profile
	sites   map[rules.Origin]*siteAnswers
	known   memo.Map[int64, *rules.Policy]
}

// siteAnswers are the policies of a site in a record, one for each name under which it was
// asked: the last usable one, or else the last.
type siteAnswers struct {
	answers  []rules.Answer
	policies []recordedPolicy // of answers
}

// recordedPolicy is a policy in a record.
type recordedPolicy struct {
	id      int64
	askedAs string // the User-Agent of the request for robots.txt; empty: heed's own
}

// indexAnswers returns the answers of each site in a record.
func indexAnswers(r *store.Reader) (map[rules.Origin]*siteAnswers, error) {
	origins := map[int64]rules.Origin{}
	sites := map[rules.Origin]*siteAnswers{}
	err := errors.Join(
		r.Sites(&store.Filter{}, func(id int64, o rules.Origin, _ bool) { origins[id] = o }),
		r.Policies(func(row *store.Policy) {
			if !row.Source.Own {
				memo.At(sites, origins[row.Site]).add(row)
			}
		}),
	)
	return sites, err
}

// add adds a policy that is later than those before it.
func (s *siteAnswers) add(row *store.Policy) {
	denied := row.Source.Status == http.StatusUnauthorized || row.Source.Status == http.StatusForbidden
	a := rules.Answer{
		For: rules.NameKey(row.Answer.AskedAs), File: row.State == "available",
		Denied: denied, Failed: row.State == "unreachable" && !denied, // strict: a denial is unreachable
	}
	p := recordedPolicy{row.ID, row.Answer.AskedAs}
	i := slices.IndexFunc(s.answers, func(had rules.Answer) bool { return had.For == a.For })
	switch {
	case i < 0:
		s.answers, s.policies = append(s.answers, a), append(s.policies, p)
	case !a.Failed || s.answers[i].Failed:
		s.answers[i], s.policies[i] = a, p
	}
}

// inForce returns the policy for a client with a User-Agent; ok is false when there is none.
// other is set when the site was asked under the name of another client.
func (s *siteAnswers) inForce(userAgent string) (p recordedPolicy, other, ok bool) {
	if s == nil {
		return p, false, false
	}
	key := rules.NameKey(userAgent)
	i := rules.InForce(s.answers, key)
	if i < 0 {
		return p, false, false
	}
	return s.policies[i], s.answers[i].For != "" && s.answers[i].For != key, true
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
	}
	r, err := record.Read(context.Background())
	if err == nil {
		p.sites, err = indexAnswers(r)
		r.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("the policies in %s cannot be read: %w", path, err)
	}
	return p, nil
}

// Len returns the number of sites with a policy in the record.
func (p *Policies) Len() int { return len(p.sites) }

// Policy returns o's policy for a client with a User-Agent; it is never nil.
func (p *Policies) Policy(ctx context.Context, o rules.Origin, userAgent string) *rules.Policy {
	recorded, other, ok := p.sites[o].inForce(userAgent)
	var err error
	if ok {
		var made *rules.Policy
		made, err = p.made(ctx, recorded)
		switch {
		case err == nil && other:
			source := made.Source()
			source.Note = fmt.Sprintf("the site answered %s with status %d, which counts for every client", safetext.Quote(recorded.askedAs), source.Status)
			return made.With(source)
		case err == nil:
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
	if site := p.sites[o]; site != nil {
		for i := range site.answers {
			if a := &site.answers[i]; a.For != "" && a.File {
				if made, err := p.made(context.Background(), site.policies[i]); err == nil && made.Source().State == rules.Available {
					files = append(files, made)
				}
			}
		}
	}
	return files
}

func (p *Policies) made(ctx context.Context, a recordedPolicy) (*rules.Policy, error) {
	return p.known.LoadSized(a.id, sizeOf, maxPolicyBytes, func() (*rules.Policy, error) { return p.read(ctx, a.id) })
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
