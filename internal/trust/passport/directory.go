package passport

import (
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

	"heed/internal/base/memo"
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
		input, value := k.seal(directoryBase(k.Thumbprint, authority("https", u.Host), digest, from.Unix(), until.Unix()))
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

// directoryBase returns the signature base of the possession proof of a key, and where the
// parameters begin in it.
func directoryBase(thumbprint, authority, digest string, from, until int64) (text []byte, parameters int) {
	text = []byte(`"@authority";req: ` + authority + "\n" + `"content-digest": ` + digest + "\n" + parametersLine)
	return fmt.Appendf(text, `("@authority";req "content-digest");created=%d;expires=%d;keyid="%s";tag="%s"`, from, until, thumbprint, directoryTag), len(text)
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

// A possession proof as NewDirectory writes it: label, created, expires and keyid.
var proofMember = memo.Expression(`([a-z][a-z0-9]*)=\("@authority";req "content-digest"\);created=([0-9]{1,15});expires=([0-9]{1,15});keyid="([A-Za-z0-9_-]+)";tag="` + directoryTag + `"`)

// proof returns the end of the possession proof of a key, or why there is none.
func proof(k *PublicKey, at *url.URL, h http.Header, body []byte, now time.Time) (end time.Time, missing string) {
	missing = "the directory is not signed by it, in the form that heed writes"
	values := strings.Split(strings.Join(h[signature], ", "), ", ")
	for _, p := range proofMember().FindAllStringSubmatch(strings.Join(h[signatureInput], ", "), maxKeys) {
		i := slices.IndexFunc(values, func(v string) bool { return strings.HasPrefix(v, p[1]+"=") })
		if p[4] != k.Thumbprint || i < 0 {
			continue
		}
		from, _ := strconv.ParseInt(p[2], 10, 64)
		until, _ := strconv.ParseInt(p[3], 10, 64)
		digest := h.Get("Content-Digest")
		text, _ := directoryBase(k.Thumbprint, authority("https", at.Host), digest, from, until)
		value, err := bytesOf(values[i], p[1])
		end = time.Unix(until, 0).UTC()
		if err == nil {
			err = k.verify(text, value, time.Unix(from, 0).UTC(), end, now)
		}
		switch {
		case err != nil:
			missing = err.Error()
		case digest != contentDigest(body):
			missing = "Content-Digest is not that of the document"
		default:
			return end, ""
		}
	}
	return end, missing
}
