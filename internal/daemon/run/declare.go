package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/judge/acl"
	"heed/internal/output/console"
	"heed/rules"
)

// flags returns the settings that the flags request for the run, but the key of --sign.
func (c *RunCmd) flags() (f acl.Flags, err error) {
	if f, err = c.Flags(); err != nil {
		return f, err
	}
	token, userAgent, err := declared(c.Agent, c.Contact)
	if err != nil {
		return f, err
	}
	if f.Observe, f.UserAgent = c.Observe, userAgent; token != "" {
		f.Agent = []string{token}
	}
	for _, host := range c.Service {
		p, err := acl.ParseHostPattern(host)
		if err != nil {
			return f, fmt.Errorf("--service: %w", err)
		}
		f.Services = append(f.Services, p)
	}
	return f, f.Validate()
}

// declared returns the product token to judge by and the User-Agent to send, from --agent
// and --contact. Both are empty without these flags.
func declared(name, contact string) (token, userAgent string, err error) {
	switch {
	case name == "" && contact == "":
		return "", "", nil
	case name == "":
		return "", "", errors.New("--contact needs --agent: the name of the client, such as --agent NewsBot")
	case contact == "":
		return "", "", errors.New("--agent needs --contact: a URL or mail address where the site's owner can reach you")
	}
	if err := config.CheckContact(contact); err != nil {
		return "", "", fmt.Errorf("--contact: %w", err)
	}
	token, version, versioned := strings.Cut(name, "/")
	if !versioned {
		version = "1.0"
	}
	if rules.CheckToken(token) != nil || config.CheckName(token) != nil || config.CheckName(version) != nil || version == "" {
		return "", "", fmt.Errorf("--agent: %q is not a valid product token; write letters, digits, - _ and ., such as NewsBot or NewsBot/2.1", console.Printable(name))
	}
	return token, token + "/" + version + " (+" + contact + ")", nil
}

// sign returns the key of --sign, which can be read, and its URL; nil without the flags.
func (c *RunCmd) sign(now time.Time) (*control.RunSign, error) {
	switch {
	case c.Sign == "" && c.SignAt == "":
		return nil, nil
	case c.SignAt == "":
		return nil, errors.New("--sign needs --sign-agent: the URL at which sites find the key (heed help identity)")
	case c.Sign == "":
		return nil, errors.New("--sign-agent needs --sign: the file of the key, which heed identity new makes")
	}
	path, err := filepath.Abs(strings.TrimPrefix(c.Sign, "file:"))
	if err != nil {
		return nil, fmt.Errorf("--sign: %w", err)
	}
	signer, err := config.NewSigner(path, c.SignAt)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--sign: %w", err)
	case !signer.Key().Valid(now):
		return nil, fmt.Errorf("--sign: the key in %s is not valid now (nbf, exp), so that nothing would be signed", path)
	}
	return &control.RunSign{Key: path, Agent: c.SignAt}, nil
}
