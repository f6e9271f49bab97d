package passport

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/base/memo"
)

// Outcome is what a verifier finds out about a request.
type Outcome string

// The outcomes (draft-ietf-webbotauth-httpsig-protocol-01, Verifier Outcomes).
const (
	Verified   Outcome = "verified"
	Invalid    Outcome = "invalid"    // the signature, what it covers, or its time is wrong
	Unverified Outcome = "unverified" // the key is not known
)

// Message is a request with a signature.
type Message struct {
	Method    string
	Scheme    string
	Authority string // of Host or :authority
	Target    string // path and query as they were sent
	Header    http.Header
}

// Claim is a signature as a Signer makes one, that was read and is not verified.
type Claim struct {
	Agent   string    // the URL whose keys it names
	KeyID   string    // thumbprint of the key
	Created time.Time // it is valid from then
	Expires time.Time // and until then
	Covered []string  // what it covers, such as "@authority"
	Base    string    // the signature base of the message (RFC 9421 §2.5)

	form  Form
	value []byte // the signature
}

// The errors of Read.
var (
	ErrUnsigned = errors.New(`the request has no signature with tag="web-bot-auth"`)

	errForm  = errors.New("Signature-Input is not in the form that heed writes; verify signatures of other signers with their own tools")
	errAgent = errors.New("Signature-Agent does not have the URL that the signature covers")
	errValue = errors.New("the field Signature has no value for the signature in Signature-Input")
)

// A member of Signature-Input as base.build writes it, with any label: its label, what it
// covers, the label of the member in Signature-Agent, created, keyid, expires and nonce.
var member = memo.Expression(`^([a-z][a-z0-9]*)=(\(((?:"@method" )?"@authority"(?: "@path")? "signature-agent"(?:;key="([a-z][a-z0-9]*)")?)\);` +
	`created=([0-9]{1,15});keyid="([A-Za-z0-9_-]+)";alg="ed25519";expires=([0-9]{1,15});nonce="([A-Za-z0-9+/=]*)";tag="` + tag + `")$`)

// Read returns the signature for Web Bot Auth of a request that a Signer has signed. An error
// that is not ErrUnsigned means that the signature is invalid or that of another program.
func Read(m *Message) (*Claim, error) {
	input := strings.Join(m.Header[signatureInput], ", ")
	if !strings.Contains(input, `tag="`+tag+`"`) {
		return nil, ErrUnsigned
	}
	p := member().FindStringSubmatch(input)
	if p == nil {
		return nil, errForm
	}
	c := &Claim{KeyID: p[6], Covered: strings.Split(p[3], " ")}
	b := base{authority: authority(m.Scheme, m.Authority), label: p[4], nonce: p[8], agent: strings.Join(m.Header[signatureAgent], ", ")}
	if p[4] == "" {
		b.form = String
	}
	c.form = b.form
	if slices.Contains(c.Covered, `"@method"`) {
		b.method = m.Method
	}
	if slices.Contains(c.Covered, `"@path"`) {
		b.path, _, _ = strings.Cut(m.Target, "?")
	}
	b.created, _ = strconv.ParseInt(p[5], 10, 64)
	b.expires, _ = strconv.ParseInt(p[7], 10, 64)
	c.Created, c.Expires = time.Unix(b.created, 0).UTC(), time.Unix(b.expires, 0).UTC()
	url, quoted := strings.CutPrefix(b.agent, b.prefix()+`"`)
	if c.Agent = strings.TrimSuffix(url, `"`); !quoted || c.Agent == url {
		return nil, errAgent
	}
	if err := CheckAgent(c.Agent); err != nil {
		return nil, err
	}
	text, _ := b.build(nil, c.KeyID)
	c.Base = string(text)
	var err error
	c.value, err = bytesOf(strings.Join(m.Header[signature], ", "), p[1])
	return c, err
}

// bytesOf returns the octet sequence (RFC 9651 §3.3.5) that is the only member of a dictionary.
func bytesOf(field, label string) ([]byte, error) {
	text, has := strings.CutPrefix(field, label+"=:")
	text, ends := strings.CutSuffix(text, ":")
	value, err := base64.StdEncoding.DecodeString(text)
	if !has || !ends || err != nil {
		return nil, errValue
	}
	return value, nil
}

// Directory returns the URL from which a verifier gets the keys. In the older form an origin
// stands for its well-known path.
func (c *Claim) Directory() string {
	if rest := strings.TrimPrefix(c.Agent, "https://"); c.form == String && !strings.Contains(rest, "/") {
		return c.Agent + WellKnown
	}
	return c.Agent
}

// Verify verifies c with the keys that its directory has. why is empty for Verified.
func (c *Claim) Verify(keys []ListedKey, now time.Time) (o Outcome, why string) {
	i := slices.IndexFunc(keys, func(k ListedKey) bool { return k.Thumbprint == c.KeyID })
	if i < 0 {
		return Unverified, "the directory has no key " + c.KeyID
	}
	if err := keys[i].verify([]byte(c.Base), c.value, c.Created, c.Expires, now); err != nil {
		return Invalid, err.Error()
	}
	return Verified, ""
}

// verify returns why value is no valid signature of a signature base by k now; nil when it is.
func (k *PublicKey) verify(text, value []byte, created, expires, now time.Time) error {
	switch {
	case created.After(now):
		return fmt.Errorf("the signature was created in the future, at %s", created.Format(time.RFC3339))
	case !now.Before(expires):
		return fmt.Errorf("the signature has expired at %s", expires.Format(time.RFC3339))
	case !k.Valid(now):
		return errors.New("the key is not valid now (nbf, exp)")
	case !ed25519.Verify(k.Public, text, value):
		return errors.New("the signature is not that of this message by this key")
	}
	return nil
}
