package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"heed/internal/base/ownfile"
	"heed/internal/judge/acl"
	"heed/internal/trust/passport"
	"heed/rules"
)

// SignConfig holds a sign of [[client]] or [robots]: the key that requests are signed with,
// and the URL at which sites find its public part.
type SignConfig struct {
	Key   string `toml:"key"`   // filePrefix and the path of a file for passport.ParseKey
	Agent string `toml:"agent"` // as passport.CheckAgent requires
}

// RobotsConfig holds [robots]: heed's own requests, for robots.txt and other documents.
type RobotsConfig struct {
	Sign *SignConfig `toml:"sign" json:",omitempty"` // nil: they are not signed
}

// The values of host.sign_form.
var signForms = map[string]passport.Form{"dictionary": passport.Dictionary, "string": passport.String}

// checkSign reports the problems of a sign to d. path is its full name. An empty table means
// nothing.
func checkSign(d *decoder, path string, sign **SignConfig) {
	s := *sign
	if s == nil {
		return
	}
	if *s == (SignConfig{}) {
		*sign = nil
		return
	}
	if key := path + ".key"; s.keyFile() == "" {
		d.problem(key, `%s does not name a file with a key; write "file:news.key" (heed identity new makes one)`, key) // without the value, which may be a key
	}
	d.note(path+".agent", passport.CheckAgent(s.Agent))
}

// errTestKey is the error of a key that anyone can sign with.
var errTestKey = errors.New("this is the example key of RFC 9421: anyone can sign with it, and verifiers reject it; make one with heed identity new")

// ReadKey reads a file with a key.
func ReadKey(path string) (*passport.Key, error) {
	file, err := ownfile.Read(path, passport.MaxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the key cannot be read: %w; make one with: heed identity new %s", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("the key cannot be read: %w", err)
	}
	if err := file.Check(ownfile.Secret, "the key"); err != nil {
		return nil, err
	}
	key, err := passport.ParseKey(file.Data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case key.Published():
		return nil, fmt.Errorf("%s: %w", path, errTestKey)
	}
	return key, nil
}

// keyFile returns the file of the key; empty for nil, and where the setting names no file.
func (s *SignConfig) keyFile() string {
	if s == nil || !strings.HasPrefix(s.Key, filePrefix) {
		return ""
	}
	return strings.TrimPrefix(s.Key, filePrefix)
}

// signer reads the key; nil for nil, and where the setting names no file.
func (s *SignConfig) signer() (*passport.Signer, error) {
	file := s.keyFile()
	if file == "" {
		return nil, nil
	}
	return NewSigner(file, s.Agent)
}

// NewSigner returns what signs with the key in the file path under the URL agent.
func NewSigner(path, agent string) (*passport.Signer, error) {
	if err := passport.CheckAgent(agent); err != nil {
		return nil, err
	}
	key, err := ReadKey(path)
	if err != nil {
		return nil, err
	}
	return passport.NewSigner(key, agent)
}

// RobotsSigner returns what signs heed's own requests; nil when they are not signed.
func (c *Config) RobotsSigner() (*passport.Signer, error) {
	s, err := c.Robots.Sign.signer()
	if err != nil {
		return nil, fmt.Errorf("robots.sign: %w", err)
	}
	return s, nil
}

// NamedSigner is what signs some requests.
type NamedSigner struct {
	Of string // whose requests, for people
	By *passport.Signer
}

// Signers reads all keys of the settings.
func (c *Config) Signers() (all []NamedSigner, err error) {
	own, err := c.RobotsSigner()
	if err != nil {
		return nil, err
	}
	if own != nil {
		all = append(all, NamedSigner{"heed's own requests", own})
	}
	for i := range c.Clients {
		by, err := c.Clients[i].signer()
		if err != nil {
			return nil, err
		}
		if by != nil {
			all = append(all, NamedSigner{fmt.Sprintf("client %q", c.Clients[i].Name), by})
		}
	}
	return all, nil
}

// signer reads the key of a client; nil when its requests are not signed.
func (cl *ClientConfig) signer() (*passport.Signer, error) {
	by, err := cl.Sign.signer()
	if err != nil {
		err = fmt.Errorf("client.sign of %q: %w", cl.Name, err)
	}
	return by, err
}

// addSigners reads the keys of [[client]] into r.
func (c *Config) addSigners(r *acl.Rules) error {
	wrong := make([]error, len(c.Clients))
	for i := range c.Clients {
		r.Clients[i].Signer, wrong[i] = c.Clients[i].signer()
	}
	return errors.Join(wrong...)
}

// unsignedHosts lists the hosts whose https is not intercepted, so that requests to them are
// not signed; empty when there are none.
func (c *Config) unsignedHosts() string {
	var hosts []string
	if c.HTTPS.Mode != "intercept" && c.HTTPS.Mode != "refuse" {
		hosts = append(hosts, "every host without a matching [[host]]")
	}
	for i := range c.Hosts {
		if h := &c.Hosts[i]; h.HTTPS == "tunnel" || h.HTTPS == "host-only" {
			hosts = append(hosts, h.Match...)
		}
	}
	if p := c.HTTPS.Pinned; p != "" && p != "refuse" && p != c.HTTPS.Mode {
		hosts = append(hosts, "hosts that are known to pin certificates")
	}
	return strings.Join(hosts, ", ")
}

// SiteSigning returns a function that returns what Site.Signing does for each origin.
func (c *Config) SiteSigning() func(rules.Origin) (passport.Form, bool) {
	r := c.baseRules()
	return func(o rules.Origin) (passport.Form, bool) { return r.For(nil, o, time.Time{}).Site.Signing(o) }
}
