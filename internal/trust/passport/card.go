package passport

// Card describes a robot: a signature agent card, which is OAuth client metadata with the
// object web_bot_auth (draft-meunier-webbotauth-registry-04). Empty members are left out.
type Card struct {
	ClientID string   `json:"client_id"` // the URL of the card itself
	Name     string   `json:"client_name,omitempty"`
	About    string   `json:"client_uri,omitempty"` // the page about the robot
	Contacts []string `json:"contacts,omitempty"`   // URIs
	Keys     string   `json:"jwks_uri"`             // the URL of the directory

	Robot Robot `json:"web_bot_auth"`
}

// Robot is what a Card has of a robot's conduct.
type Robot struct {
	UserAgent    string   `json:"expected-user-agent,omitempty"`
	ProductToken string   `json:"rfc9309-product-token,omitempty"`
	Compliance   []string `json:"rfc9309-compliance,omitempty"` // the lines of robots.txt that it obeys
	Trigger      string   `json:"trigger,omitempty"`            // "crawler": it requests pages by itself; "fetcher": a person does
	Purpose      string   `json:"purpose,omitempty"`
	RateControl  string   `json:"rate-control,omitempty"`     // how a site changes the rate of its requests
	Rate         string   `json:"rate-expectation,omitempty"` // of its requests to one site
	KnownURLs    []string `json:"known-urls,omitempty"`
}

// JSON returns the document that is published.
func (c *Card) JSON() []byte { return mustJSON(c, "  ") }
