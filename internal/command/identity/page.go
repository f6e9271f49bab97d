package identity

import (
	"bytes"
	_ "embed" // robot.html
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"

	"heed/cache"
	"heed/internal/config"
	"heed/internal/trust/passport"
	"heed/rules"
)

// card describes the robot as the settings do: nothing that they do not say is in it.
func (r *robot) card() *passport.Card {
	c := &passport.Card{
		ClientID: r.at(r.beside("card.json")), About: r.at(r.beside("robot.html")), Keys: r.agent.String(),
		Robot: passport.Robot{Trigger: r.trigger, KnownURLs: []string{"/robots.txt"}},
	}
	c.Robot.ProductToken, c.Robot.UserAgent = r.names()
	c.Name = c.Robot.ProductToken
	if contact := r.cfg.Contact; contact != "" {
		if strings.Contains(contact, "@") && !strings.Contains(contact, ":") {
			contact = "mailto:" + contact
		}
		c.Contacts = []string{contact}
	}
	if r.obeys() {
		c.Robot.Compliance = []string{"User-Agent", "Allow", "Disallow", "Crawl-delay"}
	}
	if r.client != nil {
		c.Robot.Purpose = r.client.Purpose.String()
		if c.Name == "" {
			c.Name = r.client.Name
		}
	}
	if len(c.Robot.Purpose) > 0 && r.obeys() {
		c.Robot.Compliance = append(c.Robot.Compliance, "Content-Signal", "Content-Usage")
	}
	if r.cfg.Pacing.RetryAfter == "obey" {
		c.Robot.RateControl = "Crawl-delay in robots.txt; 429 and 503 with Retry-After"
	}
	if d := r.cfg.Pacing.MinDelay; d > 0 {
		c.Robot.Rate = fmt.Sprintf("at most one request every %v to one site", d)
	}
	return c
}

// names returns the product token by which the robot is judged, and the User-Agent that sites
// see; empty where the settings do not have them.
func (r *robot) names() (token, userAgent string) {
	if r.client == nil {
		userAgent = cache.DefaultUserAgent(r.cfg.Contact)
	} else if userAgent = r.client.SendUserAgent; len(r.client.Agent) > 0 {
		return r.client.Agent[0], userAgent
	}
	if tokens := rules.Identify(userAgent).Tokens; userAgent != "" && len(tokens) > 0 {
		token, _, _ = strings.Cut(tokens[0].Piece, "/")
	}
	return token, userAgent
}

// obeys reports whether the settings have the robot obey robots.txt everywhere.
func (r *robot) obeys() bool {
	if r.client != nil && (r.client.Mode == "observe" || r.client.Mode == "exempt") || r.cfg.Observe {
		return false
	}
	for i := range r.cfg.Hosts {
		if r.cfg.Hosts[i].Mode == "observe" {
			return false
		}
	}
	return r.cfg.HTTPS.Mode == "intercept"
}

// remarks returns what the files do not contain since the settings do not have it.
func (r *robot) remarks() (all []string) {
	if token, userAgent := r.names(); token == "" || userAgent == "" {
		all = append(all, "the card has no name for robots.txt, or no User-Agent: set agent and send_user_agent in the [[client]]")
	}
	if r.cfg.Contact == "" {
		all = append(all, "the card has no contact: set contact in proxy.toml")
	}
	if !r.obeys() {
		all = append(all, "the card does not say that the robot obeys robots.txt, since the settings only observe, or do not see all requests")
	}
	if !slices.ContainsFunc(r.cfg.Hosts, func(h config.HostConfig) bool { return h.SignForm == "string" }) {
		all = append(all, "some large verifiers take the older form of Signature-Agent only (Cloudflare, as of June 2026): to sign in it everywhere, add a [[host]] with match = [\"*\"] and sign_form = \"string\" (heed help identity)")
	}
	return all
}

//go:embed robot.html
var pageText string

// pageTemplate is the page for people.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("robot").Parse(pageText))
})

// page returns the page about the robot.
func (r *robot) page(c *passport.Card) []byte {
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, c); err != nil {
		panic("a template of plain texts fails: " + err.Error())
	}
	return b.Bytes()
}
