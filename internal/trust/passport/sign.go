package passport

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Form is how Signature-Agent is written. The zero value is the form of the draft.
type Form uint8

// The forms.
const (
	Dictionary Form = iota // sig1="https://..." (draft-ietf-webbotauth-httpsig-protocol-01)
	String                 // "https://...", as earlier drafts have it and some verifiers
)

// The fields of a signature (RFC 9421 §4, draft-ietf-webbotauth-httpsig-protocol-01).
const (
	signatureAgent = "Signature-Agent"
	signatureInput = "Signature-Input"
	signature      = "Signature"
)

// WellKnown is the path of a directory that stands for a whole domain.
const WellKnown = "/.well-known/http-message-signatures-directory"

// maxAgent is the greatest length of a URL, in octets: it is sent with each request.
const maxAgent = 1024

const (
	label    = "sig1"
	tag      = "web-bot-auth"
	lifetime = time.Minute // of a signature
	nonce    = 64          // octets
)

// Signed reports whether h has a field of a signature: such a request is not signed again,
// since the parts of two signatures would be one.
func Signed(h http.Header) bool {
	return slices.ContainsFunc([]string{signatureAgent, signatureInput, signature}, func(name string) bool {
		_, ok := h[name]
		return ok
	})
}

// Signer signs requests with one key under one URL. It is immutable and safe for concurrent
// use.
type Signer struct {
	key    *Key
	agent  string
	fields [2][]string // the lines of Signature-Agent in each Form, never changed
}

// NewSigner returns a Signer. agent is the URL of the directory that has the key.
func NewSigner(key *Key, agent string) (*Signer, error) {
	if err := CheckAgent(agent); err != nil {
		return nil, err
	}
	s := &Signer{key: key, agent: agent}
	s.fields[Dictionary] = []string{label + `="` + agent + `"`}
	// Earlier drafts have the origin, and its directory at the well-known path.
	s.fields[String] = []string{`"` + strings.TrimSuffix(agent, WellKnown) + `"`}
	return s, nil
}

var errURL = errors.New(`write the URL at which your directory of keys is published, such as "https://bots.example/news/keys.json"`)

// CheckAgent returns an error unless agent is an absolute https URL that can be sent.
func CheckAgent(agent string) error {
	u, err := url.Parse(agent)
	switch {
	case err != nil, len(agent) > maxAgent, u.Scheme != "https", u.Hostname() == "", u.User != nil, u.Fragment != "",
		strings.ContainsFunc(agent, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return fmt.Errorf("%q is not an absolute https URL of printable ASCII, without user and fragment; %w", agent, errURL)
	}
	return nil
}

// Key returns the public part of the key.
func (s *Signer) Key() *PublicKey { return &s.key.PublicKey }

// Agent returns the URL under which s signs.
func (s *Signer) Agent() string { return s.agent }

// ID identifies s: what is signed by Signers with the same ID is signed alike.
func (s *Signer) ID() string {
	if s == nil {
		return ""
	}
	return s.key.Thumbprint + " " + s.agent
}

// Request is what is signed of a request.
type Request struct {
	Method    string
	Scheme    string
	Authority string // as it is sent in Host or :authority
	Target    string // path and query as they are sent
}

// Sign puts a signature of r into h, in place of an earlier one, and returns true. It
// returns false, and removes an earlier one, when the key is not valid now.
func (s *Signer) Sign(h http.Header, r *Request, form Form, now time.Time) bool {
	if !s.key.Valid(now) {
		delete(h, signatureAgent)
		delete(h, signatureInput)
		delete(h, signature)
		return false
	}
	expires := now.Add(lifetime)
	if end := s.key.NotAfter; !end.IsZero() && end.Before(expires) {
		expires = end
	}
	var random [nonce]byte
	_, _ = rand.Read(random[:]) // it never fails: see crypto/rand
	var text [nonce/3*4 + 4]byte
	var lines [1536]byte
	base64.StdEncoding.Encode(text[:], random[:])
	m := base{form: form, agent: s.fields[form][0], label: label, created: now.Unix(), expires: expires.Unix(), nonce: string(text[:])}
	m.method, m.path = r.Method, plainPath(r.Target)
	m.authority = authority(r.Scheme, r.Authority)
	input, value := s.key.seal(m.build(lines[:0], s.key.Thumbprint))
	h[signatureAgent] = s.fields[form]
	h[signatureInput] = []string{label + "=" + input}
	h[signature] = []string{label + "=:" + value + ":"}
	return true
}

// base is what a signature is made of (RFC 9421 §2.5).
type base struct {
	method, path string // empty: not covered
	authority    string
	form         Form
	agent        string // the line of Signature-Agent; with Dictionary its one member
	label        string // of that member

	created, expires int64
	nonce            string
}

// prefix is what is before the URL in the line of Signature-Agent.
func (m *base) prefix() string {
	if m.form == String {
		return ""
	}
	return m.label + "="
}

// build appends the signature base for the key with a thumbprint to lines, and returns where
// the parameters begin in it: they are the value of the member in Signature-Input.
func (m *base) build(lines []byte, thumbprint string) (text []byte, parameters int) {
	names := make([]byte, 0, 512)
	cover := func(name, value string) {
		lines = append(append(append(append(lines, name...), ": "...), value...), '\n')
		if names = append(names, ' '); len(names) == 1 {
			names[0] = '('
		}
		names = append(names, name...)
	}
	if m.method != "" {
		cover(`"@method"`, m.method)
	}
	cover(`"@authority"`, m.authority)
	if m.path != "" {
		cover(`"@path"`, m.path)
	}
	if m.form == String {
		cover(`"signature-agent"`, m.agent)
	} else {
		cover(`"signature-agent";key="`+m.label+`"`, m.agent[len(m.prefix()):])
	}
	lines = append(lines, parametersLine...)
	parameters = len(lines)
	lines = append(append(lines, names...), ");created="...)
	lines = strconv.AppendInt(lines, m.created, 10)
	lines = append(append(lines, `;keyid="`...), thumbprint...)
	lines = append(lines, `";alg="ed25519";expires=`...)
	lines = strconv.AppendInt(lines, m.expires, 10)
	lines = append(append(lines, `;nonce="`...), m.nonce...)
	return append(lines, `";tag="`+tag+`"`...), parameters
}

// parametersLine begins the last line of a signature base (RFC 9421 §2.5).
const parametersLine = `"@signature-params": `

// seal returns the parameters in a signature base, and its signature in base64.
func (k *Key) seal(text []byte, parameters int) (input, value string) {
	return string(text[parameters:]), base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, text))
}

// authority returns the component @authority (RFC 9421 §2.2.3).
func authority(scheme, host string) string {
	host = strings.ToLower(host)
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// plainPath returns the path of a target, the component @path (RFC 9421 §2.2.6); empty when
// URL parsers write it in another way, since verifiers use one: then it is not covered.
func plainPath(target string) string {
	path, _, _ := strings.Cut(target, "?")
	if path == "" || path[0] != '/' || strings.HasPrefix(path, "//") {
		return ""
	}
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("/-._~!$&'()*+,;=:@", c) >= 0:
		case c == '%' && i+2 < len(path) && isHex(path[i+1]) && isHex(path[i+2]):
			i += 2
		default:
			return ""
		}
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if isDots(segment) {
			return ""
		}
	}
	return path
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// isDots reports whether a segment of a path is "." or "..", also escaped.
func isDots(segment string) bool {
	if len(segment) > len("%2e%2e") {
		return false
	}
	plain := strings.ReplaceAll(strings.ToLower(segment), "%2e", ".")
	return plain == "." || plain == ".."
}
