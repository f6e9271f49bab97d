package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"heed/internal/terms"
	"heed/rules"
)

// inForce is all that verdicts rest on beside the rules of sites, as the record
// keeps it: the settings without their secrets, and what was added to them while
// heed ran. Its text is JSON.
type inForce struct {
	Settings string    `json:"settings"` // in the form of proxy.toml
	Observe  bool      `json:"observe,omitempty"`
	Granted  *granted  `json:"granted,omitempty"`
	Run      *saidOnce `json:"run,omitempty"`
}

// saidOnce is what one `heed run` asks for itself.
type saidOnce struct {
	Agent     []string `json:"agent,omitempty"`
	UserAgent string   `json:"user_agent,omitempty"`
	Observe   bool     `json:"observe,omitempty"`
	Services  []string `json:"services,omitempty"`
}

// inForce returns the settings as the record keeps them. What tells of secrets,
// of files and of ways to the sites is left out: no verdict rests on it.
func (c *Config) inForce() *inForce {
	said := *c
	said.HTTPS.CACert, said.HTTPS.CAKey, said.Access.Users, said.Cache.File, said.Audit.File = "", "", "", "", ""
	said.Fleet, said.Upstream.Proxy, said.Upstream.CAFile = FleetConfig{}, "", ""
	said.Hosts = append([]HostConfig(nil), c.Hosts...)
	for i := range said.Hosts {
		said.Hosts[i].HostUpstream = HostUpstream{}
	}
	text, err := toml.Marshal(keyTree(reflect.ValueOf(said)))
	if err != nil {
		panic("settings of plain strings and numbers cannot be marshalled: " + err.Error())
	}
	return &inForce{Settings: string(text), Observe: c.Observe}
}

func (in *inForce) text() string {
	text, err := json.Marshal(in)
	if err != nil {
		panic("plain values cannot be marshalled: " + err.Error())
	}
	return string(text)
}

// amended has b, a Book of its own, say in its text what was added to it. Its
// hash begins with that of the settings, and goes on after a "+".
func amended(b *terms.Book, add func(*inForce)) *terms.Book {
	if b.Text == "" {
		return b // it is of no settings
	}
	var in inForce
	if err := json.Unmarshal([]byte(b.Text), &in); err != nil {
		panic("what was marshalled cannot be read: " + err.Error())
	}
	before := in
	if add(&in); reflect.DeepEqual(in, before) {
		return b
	}
	b.Text = in.text()
	sum := sha256.Sum256([]byte(b.Text))
	settings, _, _ := strings.Cut(b.Hash, "+")
	b.Hash = settings + "+" + hex.EncodeToString(sum[:8])
	return b
}

// saidByRun returns what the record keeps of a run; nil when it asks for nothing.
func saidByRun(r terms.Run) *saidOnce {
	said := &saidOnce{Observe: r.Observe}
	if r.Client != nil {
		said.UserAgent = r.Client.SendUserAgent
		if r.Client.Agent != nil {
			for _, t := range r.Client.Agent.Tokens {
				said.Agent = append(said.Agent, t.Piece)
			}
		}
	}
	for _, p := range r.Services {
		said.Services = append(said.Services, p.String())
	}
	if reflect.DeepEqual(said, &saidOnce{}) {
		return nil
	}
	return said
}

// terms returns what was said as a Book takes it.
func (s *saidOnce) terms() (terms.Run, error) {
	r := terms.Run{Observe: s.Observe, Reason: serviceOfRun}
	for _, text := range s.Services {
		p, err := terms.ParseHostPattern(text)
		if err != nil {
			return r, err
		}
		r.Services = append(r.Services, p)
	}
	if len(s.Agent) > 0 || s.UserAgent != "" {
		r.Client = &terms.Client{Name: runName, SendUserAgent: s.UserAgent}
		if len(s.Agent) > 0 {
			r.Client.Agent = rules.Declare(s.Agent...)
		}
	}
	return r, nil
}

// bookInForce makes of a text of the record the Book that it is of, but for files:
// users, and robots.txt files of the operator's own.
func bookInForce(text string) (*terms.Book, error) {
	var in inForce
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, fmt.Errorf("the settings in the record cannot be read: %w", err)
	}
	c := &Config{Observe: in.Observe}
	if err := c.decode("the settings in the record", []byte(in.Settings)); err != nil {
		return nil, err
	}
	b, err := c.agreed()
	if err != nil {
		return nil, err
	}
	if in.Granted != nil {
		hosts, breaks, err := in.Granted.terms()
		if err != nil {
			return nil, err
		}
		b = b.With(breaks, hosts)
	}
	if in.Run != nil {
		r, err := in.Run.terms()
		if err != nil {
			return nil, err
		}
		b = b.ForRun(r)
	}
	return b, nil
}
