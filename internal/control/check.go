package control

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"unicode/utf8"
)

// CheckRequest is the body of POST /check.
type CheckRequest struct {
	Agent   string `json:"agent"`
	URL     string `json:"url"`
	Profile string `json:"profile,omitempty"` // to judge by; empty: that of the settings
	Explain bool   `json:"explain,omitempty"` // include an explanation
	Delay   bool   `json:"delay,omitempty"`   // include the delay between two requests
	Client  string `json:"client,omitempty"`  // name of a [[client]]; empty: judge by Agent only

	Sitemaps bool     `json:"sitemaps,omitempty"` // include the sitemaps that robots.txt names
	More     []string `json:"more,omitempty"`     // POST /check/site only: further URLs of the site

	// Octets are URL and More in place of these when one is not UTF-8, which JSON cannot
	// contain: another URL would be judged. MarshalJSON and UnmarshalJSON alone use it.
	Octets [][]byte `json:"octets,omitempty"`
}

// plainRequest is a CheckRequest without methods.
type plainRequest CheckRequest

// MarshalJSON implements json.Marshaler.
func (q *CheckRequest) MarshalJSON() ([]byte, error) {
	plain := plainRequest(*q)
	all := append([]string{q.URL}, q.More...)
	if slices.ContainsFunc(all, func(s string) bool { return !utf8.ValidString(s) }) {
		plain.URL, plain.More = "", nil
		for _, s := range all {
			plain.Octets = append(plain.Octets, []byte(s))
		}
	}
	return json.Marshal(&plain)
}

// UnmarshalJSON implements json.Unmarshaler.
func (q *CheckRequest) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, (*plainRequest)(q))
	if len(q.Octets) == 0 {
		return err
	}
	q.URL, q.More = string(q.Octets[0]), nil
	for _, s := range q.Octets[1:] {
		q.More = append(q.More, string(s))
	}
	q.Octets = nil
	return err
}

// Check makes the running heed judge a URL.
func (c *Client) Check(ctx context.Context, q *CheckRequest) (*Judgement, error) {
	a, err := call[*Judgement](ctx, c, http.MethodPost, "/check", q)
	if err == nil {
		a.URL = q.URL // octet for octet
	}
	return a, err
}

// MaxSiteURLs bounds the URLs of one CheckSite together, in octets.
const MaxSiteURLs = 128 << 10

// CheckSite makes the running heed judge URLs of one site, q.URL and those of q.More, in
// their order. Only the first Judgement has what is the same for all of them: URL, Agent,
// Robots, By, Age, State, Profile, Delay and Sitemaps.
func (c *Client) CheckSite(ctx context.Context, q *CheckRequest) ([]*Judgement, error) {
	return call[[]*Judgement](ctx, c, http.MethodPost, "/check/site", q)
}

// StoredKey is the body of POST /stored: one key of one route.
type StoredKey struct {
	Route string `json:"way"` // its identity
	Key   []byte `json:"key"` // any octets
}

// StoredCopy is the response to a StoredKey.
type StoredCopy struct {
	Found    bool   `json:"found"`
	Record   []byte `json:"record,omitempty"`
	Snapshot []byte `json:"snapshot,omitempty"`
}

// Stored returns the copy that the running heed stored under a key.
func (c *Client) Stored(ctx context.Context, q *StoredKey) (*StoredCopy, error) {
	return call[*StoredCopy](ctx, c, http.MethodPost, "/stored", q)
}
