package control

import (
	"context"
	"net/http"
)

// CheckRequest is the body of POST /judge: URLs of one site, of any octets, which a text in
// JSON cannot have.
type CheckRequest struct {
	Agent    string   `json:"agent"`
	URLs     [][]byte `json:"urls"`
	Profile  string   `json:"profile,omitempty"`  // to judge by; empty: that of the settings
	Explain  bool     `json:"explain,omitempty"`  // include an explanation
	Delay    bool     `json:"delay,omitempty"`    // include the delay between two requests
	Client   string   `json:"client,omitempty"`   // name of a [[client]]; empty: judge by Agent only
	Sitemaps bool     `json:"sitemaps,omitempty"` // include the sitemaps that robots.txt names
}

// MaxSiteURLs bounds the URLs of one CheckRequest together, in octets.
const MaxSiteURLs = 128 << 10

// Check makes the running heed judge URLs of one site, in their order. Only the first
// Judgement has what is the same for all of them: URL, Agent, Robots, By, Age, State, Profile,
// Delay and Sitemaps.
func (c *Client) Check(ctx context.Context, q *CheckRequest) ([]*Judgement, error) {
	return call[[]*Judgement](ctx, c, http.MethodPost, "/judge", q)
}
