package passport

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"heed/internal/structured"
)

// MediaType is that of a directory.
const MediaType = "application/http-message-signatures-directory+json"

// Field is a header field.
type Field struct{ Name, Value string }

// Directory is a set of keys as it is published, and the header of its answer. Both are
// valid as they are until the signatures in the header end, so that any web server can send
// them.
type Directory struct {
	Body   []byte
	Header []Field
}

const directoryTag = "http-message-signatures-directory"

// NewDirectory returns the directory of keys at an https URL. Each key signs it, which proves
// that the publisher has the key; the signatures are valid from and until the times given.
func NewDirectory(at string, keys []*Key, from, until time.Time) (*Directory, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	public := make([]*jwk, len(keys))
	for i, k := range keys {
		public[i] = k.jwk()
	}
	d := &Directory{}
	if d.Body, err = json.Marshal(map[string]any{"keys": public}); err != nil {
		return nil, err
	}
	digest := contentDigest(d.Body)
	var inputs, signatures []string
	for i, k := range keys {
		label := "binding" + strconv.Itoa(i)
		input, value := directorySignature(k, authority("https", u.Host), digest, from, until)
		inputs = append(inputs, label+"="+input)
		signatures = append(signatures, label+"=:"+value+":")
	}
	d.Header = []Field{
		{"Content-Type", MediaType},
		{"Cache-Control", "max-age=86400"},
		{"Content-Digest", digest},
		{signatureInput, strings.Join(inputs, ", ")},
		{signature, strings.Join(signatures, ", ")},
	}
	return d, nil
}

// contentDigest returns the field Content-Digest of a body (RFC 9530 §2).
func contentDigest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// directorySignature returns the possession proof of a key: the value of its member in
// Signature-Input, and the signature in base64.
func directorySignature(k *Key, authority, digest string, from, until time.Time) (input, value string) {
	lines := `"@authority";req: ` + authority + "\n" + `"content-digest": ` + digest + "\n"
	input = fmt.Sprintf(`("@authority";req "content-digest");created=%d;expires=%d;keyid="%s";tag="%s"`, from.Unix(), until.Unix(), k.Thumbprint, directoryTag)
	return input, seal(k, []byte(lines), []byte(input))
}

// Bounds of a directory that is read.
const (
	MaxDirectory = 64 << 10 // octets
	maxKeys      = 100
)

// ListedKey is a key of a directory that was read.
type ListedKey struct {
	PublicKey
	Proven time.Time // the end of a valid signature of the directory by it; zero: there is none
	Remark string    // why it has no such signature; empty: it has
}

// Listed is a directory that was read.
type Listed struct {
	Keys    []ListedKey // those that heed can use
	Ignored int         // keys of other kinds
	Remarks []string    // what a verifier may object to
}

// Errors of ReadDirectory.
var (
	errNoSet    = errors.New(`the document is not a set of keys: JSON with a list "keys"`)
	errManyKeys = fmt.Errorf("the document has more than %d keys", maxKeys)
	errUnusable = errors.New("the document has no Ed25519 key")
)

// ReadDirectory reads the answer to a request for a directory at an https URL as a verifier
// does (draft-ietf-webbotauth-httpsig-protocol-01). The status of the answer was 200.
func ReadDirectory(at *url.URL, h http.Header, body []byte, now time.Time) (*Listed, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil || set.Keys == nil {
		return nil, errNoSet
	}
	if len(set.Keys) > maxKeys {
		return nil, errManyKeys
	}
	d := &Listed{}
	wellKnown := at.Path == WellKnown
	if kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); wellKnown && kind != MediaType {
		d.Remarks = append(d.Remarks, fmt.Sprintf("its Content-Type is %q; at this path it must be %s", kind, MediaType))
	}
	for i, raw := range set.Keys {
		var j jwk
		if json.Unmarshal(raw, &j) != nil {
			d.Ignored++
			continue
		}
		k, err := j.public()
		switch {
		case errors.Is(err, errDates):
			d.Remarks = append(d.Remarks, fmt.Sprintf("key %d: %v", i+1, err))
			fallthrough
		case err != nil:
			d.Ignored++
			continue
		}
		if j.D != "" {
			d.Remarks = append(d.Remarks, "key "+k.Thumbprint+" is published with its PRIVATE part: anyone can sign with it; make another one")
		}
		if wellKnown && j.ID != k.Thumbprint {
			d.Remarks = append(d.Remarks, fmt.Sprintf("key %s has the kid %q; at this path it must be the thumbprint", k.Thumbprint, j.ID))
		}
		if k.Published() {
			d.Remarks = append(d.Remarks, "key "+k.Thumbprint+" is the example of RFC 9421; verifiers reject it")
		}
		d.Keys = append(d.Keys, ListedKey{PublicKey: *k})
	}
	if len(d.Keys) == 0 {
		return nil, errUnusable
	}
	for i := range d.Keys {
		k := &d.Keys[i]
		if k.Proven, k.Remark = proof(&k.PublicKey, at, h, body, now); k.Remark != "" {
			k.Proven = time.Time{}
		}
	}
	return d, nil
}

// proof returns the end of the possession proof of a key, or why there is none.
func proof(k *PublicKey, at *url.URL, h http.Header, body []byte, now time.Time) (end time.Time, missing string) {
	lists, err := structured.NameLists(h[signatureInput])
	if err != nil || len(lists) == 0 {
		return end, "the directory is not signed by it"
	}
	missing = "the directory is not signed by it"
	request := &Message{Method: http.MethodGet, Scheme: "https", Authority: at.Host, Target: at.RequestURI()}
	answer := &Message{Header: h, request: request}
	for i := range lists {
		c := claimOf(&lists[i])
		if c.tag != directoryTag || c.KeyID != k.Thumbprint {
			continue
		}
		switch err := c.check(answer, k, now); {
		case err != nil:
			missing = err.Error()
		case !c.covers("@authority", "req") || !c.covers("content-digest", ""):
			missing = "its signature of the directory does not cover the host and the digest"
		case !digestMatches(h, body):
			missing = "Content-Digest is not that of the document"
		default:
			return c.Expires, ""
		}
	}
	return end, missing
}

// digestMatches reports whether Content-Digest has the SHA-256 of the body.
func digestMatches(h http.Header, body []byte) bool {
	digests, err := structured.ByteSequences(h["Content-Digest"])
	sum := sha256.Sum256(body)
	return err == nil && slices.ContainsFunc(digests, func(d structured.Value[[]byte]) bool {
		return d.Key == "sha-256" && bytes.Equal(d.Value, sum[:])
	})
}
