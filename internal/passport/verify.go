package passport

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"heed/internal/structured"
)

// Outcome is what a verifier finds out about a request.
type Outcome string

// The outcomes (draft-ietf-webbotauth-httpsig-protocol-01, Verifier Outcomes).
const (
	Verified   Outcome = "verified"
	Invalid    Outcome = "invalid"    // the signature, what it covers, or its time is wrong
	Unverified Outcome = "unverified" // the key is not known
)

// Message is a message with a signature: a request, or the answer to one.
type Message struct {
	Method    string
	Scheme    string
	Authority string // of Host or :authority
	Target    string // path and query as they were sent
	Header    http.Header

	request *Message // that Header answers; nil: it is that of a request
}

// Claim is a signature that was read and is not verified.
type Claim struct {
	Agent   string    // the URL whose keys it names
	String  bool      // Signature-Agent is in the older form
	KeyID   string    // thumbprint of the key
	Created time.Time // zero: missing
	Expires time.Time // zero: missing
	Covered []string  // what it covers, such as "@authority"

	label, alg, tag string
	names           []structured.Name
	text            string // of its member in Signature-Input
}

// ErrUnsigned is the error of a request that has no signature for Web Bot Auth.
var ErrUnsigned = errors.New(`the request has no signature with tag="web-bot-auth"`)

// claimOf reads a member of Signature-Input (RFC 9421 §2.3).
func claimOf(l *structured.NameList) *Claim {
	c := &Claim{label: l.Key, names: l.Names, text: l.Text}
	for _, n := range l.Names {
		c.Covered = append(c.Covered, n.Text)
	}
	for _, p := range l.Parameters {
		switch v := p.Value.(type) {
		case int64:
			switch p.Name {
			case "created":
				c.Created = time.Unix(v, 0).UTC()
			case "expires":
				c.Expires = time.Unix(v, 0).UTC()
			}
		case string:
			switch p.Name {
			case "keyid":
				c.KeyID = v
			case "alg":
				c.alg = v
			case "tag":
				c.tag = v
			}
		}
	}
	return c
}

// covers reports whether c covers a component, with one parameter or, where that is empty,
// with none.
func (c *Claim) covers(name, parameter string) bool {
	return slices.ContainsFunc(c.names, func(n structured.Name) bool {
		switch {
		case n.Value != name:
			return false
		case parameter == "":
			return len(n.Parameters) == 0
		}
		return len(n.Parameters) == 1 && n.Parameters[0].Name == parameter
	})
}

// Read returns the first signature for Web Bot Auth of a request. An error that is not
// ErrUnsigned means that the signature is invalid.
func Read(m *Message) (*Claim, error) {
	lists, err := structured.NameLists(m.Header[signatureInput])
	if err != nil {
		return nil, fmt.Errorf("Signature-Input cannot be read: %w", err)
	}
	i := slices.IndexFunc(lists, func(l structured.NameList) bool { return claimOf(&l).tag == tag })
	if i < 0 {
		return nil, ErrUnsigned
	}
	c := claimOf(&lists[i])
	switch {
	case !c.covers("@authority", "") && !c.covers("@target-uri", ""):
		return nil, errors.New("the signature does not cover the host: neither @authority nor @target-uri")
	case c.KeyID == "" || c.Created.IsZero() || c.Expires.IsZero():
		return nil, errors.New("the signature has no keyid, created or expires")
	}
	return c, c.readAgent(m.Header[signatureAgent])
}

// readAgent reads the URL in the lines of Signature-Agent, which c must cover.
func (c *Claim) readAgent(lines []string) error {
	if len(lines) == 0 {
		return errors.New("the request has no Signature-Agent")
	}
	if c.String = strings.HasPrefix(strings.TrimSpace(lines[0]), `"`); c.String {
		agent, err := structured.String(lines)
		switch {
		case err != nil:
			return fmt.Errorf("Signature-Agent cannot be read: %w", err)
		case !c.covers("signature-agent", ""):
			return errors.New("the signature does not cover Signature-Agent")
		}
		c.Agent = agent
		return CheckAgent(agent)
	}
	members, err := structured.Strings(lines)
	if err != nil {
		return fmt.Errorf("Signature-Agent cannot be read: %w", err)
	}
	key := "" // of the covered member: that of the label, else the first

	for _, n := range c.names {
		if n.Value == "signature-agent" && len(n.Parameters) == 1 && n.Parameters[0].Name == "key" {
			if k, _ := n.Parameters[0].Value.(string); key == "" || k == c.label {
				key = k
			}
		}
	}
	i := slices.IndexFunc(members, func(v structured.Value[string]) bool { return v.Key == key })
	switch {
	case key == "":
		return errors.New("the signature does not cover a member of Signature-Agent")
	case i < 0:
		return fmt.Errorf("Signature-Agent has no member %q", key)
	case !members[i].Plain:
		return fmt.Errorf("the member %q of Signature-Agent has parameters", key)
	}
	c.Agent = members[i].Value
	return CheckAgent(c.Agent)
}

// Directory returns the URL from which a verifier gets the keys. In the older form an origin
// stands for its well-known path.
func (c *Claim) Directory() string {
	if rest := strings.TrimPrefix(c.Agent, "https://"); c.String && !strings.Contains(rest, "/") {
		return c.Agent + WellKnown
	}
	return c.Agent
}

// Verify verifies c, the signature of m, with the keys that its directory has. why is empty
// for Verified.
func (c *Claim) Verify(m *Message, keys []ListedKey, now time.Time) (o Outcome, why string) {
	i := slices.IndexFunc(keys, func(k ListedKey) bool { return k.Thumbprint == c.KeyID })
	if i < 0 {
		return Unverified, "the directory has no key " + c.KeyID
	}
	if err := c.check(m, &keys[i].PublicKey, now); err != nil {
		return Invalid, err.Error()
	}
	return Verified, ""
}

// check returns why c is no valid signature of m by k now; nil when it is.
func (c *Claim) check(m *Message, k *PublicKey, now time.Time) error {
	switch {
	case c.alg != "" && c.alg != "ed25519":
		return fmt.Errorf("the signature has the algorithm %q, the key is for ed25519", c.alg)
	case c.Created.After(now):
		return fmt.Errorf("the signature was created in the future, at %s", c.Created.Format(time.RFC3339))
	case !now.Before(c.Expires):
		return fmt.Errorf("the signature has expired at %s", c.Expires.Format(time.RFC3339))
	case !k.Valid(now):
		return errors.New("the key is not valid now (nbf, exp)")
	}
	values, err := structured.ByteSequences(m.Header[signature])
	if err != nil {
		return fmt.Errorf("the field Signature cannot be read: %w", err)
	}
	i := slices.IndexFunc(values, func(v structured.Value[[]byte]) bool { return v.Key == c.label })
	if i < 0 {
		return fmt.Errorf("the field Signature has no member %q", c.label)
	}
	text, err := c.Base(m)
	if err != nil {
		return err
	}
	if len(c.names) == 0 || !ed25519.Verify(k.Public, []byte(text), values[i].Value) {
		return errors.New("the signature is not that of this message by this key")
	}
	return nil
}

// Base returns the signature base of m for c (RFC 9421 §2.5).
func (c *Claim) Base(m *Message) (string, error) {
	var b strings.Builder
	seen := map[string]bool{}
	for _, n := range c.names {
		if seen[n.Text] {
			return "", fmt.Errorf("the signature covers %s twice", n.Text)
		}
		seen[n.Text] = true
		value, err := m.component(&n)
		if err != nil {
			return "", err
		}
		b.WriteString(n.Text + ": " + value + "\n")
	}
	b.WriteString(`"@signature-params": ` + c.text)
	return b.String(), nil
}

// component returns the value of a component of m (RFC 9421 §2).
func (m *Message) component(n *structured.Name) (string, error) {
	key, fromRequest := "", false
	for _, p := range n.Parameters {
		switch v, isText := p.Value.(string); {
		case p.Name == "req" && p.Value == true && m.request != nil:
			fromRequest = true
		case p.Name == "key" && isText && v != "":
			key = v
		default:
			return "", fmt.Errorf("heed does not verify a signature with the component %s", n.Text)
		}
	}
	if fromRequest {
		m = m.request
	}
	if m.request == nil && key == "" && strings.HasPrefix(n.Value, "@") {
		return m.derived(n)
	}
	lines, ok := m.Header[http.CanonicalHeaderKey(n.Value)]
	switch {
	case !ok || strings.HasPrefix(n.Value, "@"):
		return "", fmt.Errorf("the message has no %s, which the signature covers", n.Text)
	case key != "":
		text, has, err := structured.Serialized(lines, key)
		if err != nil || !has {
			return "", fmt.Errorf("the message has no %s, which the signature covers", n.Text)
		}
		return text, nil
	}
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		trimmed[i] = strings.TrimSpace(line)
	}
	return strings.Join(trimmed, ", "), nil
}

// derived returns the value of a component that is not a field (RFC 9421 §2.2).
func (m *Message) derived(n *structured.Name) (string, error) {
	path, query, has := strings.Cut(m.Target, "?")
	path = cmp.Or(path, "/")
	switch n.Value {
	case "@method":
		return m.Method, nil
	case "@authority":
		return authority(m.Scheme, m.Authority), nil
	case "@scheme":
		return m.Scheme, nil
	case "@path":
		return path, nil
	case "@query":
		return "?" + query, nil
	case "@request-target":
		return m.Target, nil
	case "@target-uri":
		if has {
			path += "?" + query
		}
		return m.Scheme + "://" + authority(m.Scheme, m.Authority) + path, nil
	}
	return "", fmt.Errorf("heed does not verify a signature with the component %s", n.Text)
}
