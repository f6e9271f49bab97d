package identity

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"heed/cache"
	"heed/internal/base/ownfile"
	"heed/internal/check"
	"heed/internal/config"
	"heed/internal/config/route"
	"heed/internal/output/console"
	"heed/internal/trust/passport"
)

// VerifyCmd is `heed identity verify`.
type VerifyCmd struct {
	config.FileFlags
	Keys string `placeholder:"FILE" help:"Take the keys from FILE, a directory, in place of the site's."`
	At   string `placeholder:"TIME" help:"Verify as of TIME, such as 2026-05-03T14:00:00Z; for requests of the past."`
	HTTP bool   `name:"http" help:"The request was sent over http."`
	Base bool   `help:"Print the signature base too."`

	Target string `arg:"" name:"url|file" help:"The https URL of a directory or a card, or a file with a request; - is stdin."`
}

// maxMessage bounds the request in a file, in bytes.
const maxMessage = 1 << 20

// fetchTime bounds a fetch.
const fetchTime = 15 * time.Second

// Run verifies the target.
func (c *VerifyCmd) Run(a *console.App) error {
	v := &verifier{app: a, now: a.Now()}
	if c.At != "" {
		at, err := time.Parse(time.RFC3339, c.At)
		if err != nil {
			return fmt.Errorf("--at: %q is not a time; write 2026-05-03T14:00:00Z", console.Printable(c.At))
		}
		v.now = at
	}
	if !strings.HasPrefix(c.Target, "https://") {
		return c.request(v)
	}
	if err := passport.CheckAgent(c.Target); err != nil {
		return err
	}
	if err := v.open(&c.FileFlags); err != nil {
		return err
	}
	return v.document(c.Target)
}

// verifier prints what it finds out.
type verifier struct {
	app  *console.App
	now  time.Time
	send http.RoundTripper // to sites; nil: it was not opened
	bad  bool              // something is not valid
}

func (v *verifier) row(name, format string, values ...any) {
	fmt.Fprintf(v.app.Stdout, "%-11s %s\n", name, fmt.Sprintf(format, values...))
}

// fault prints what is not valid.
func (v *verifier) fault(format string, values ...any) {
	v.bad = true
	v.row("not valid", format, values...)
}

// result returns the exit status.
func (v *verifier) result() error {
	if v.bad {
		return console.Exit(console.ExitNo)
	}
	return nil
}

// open prepares requests to sites, as the settings have them reached.
func (v *verifier) open(flags *config.FileFlags) error {
	cfg, err := flags.Load(v.app)
	if err != nil {
		return err
	}
	out, err := route.Open(cfg, v.app.Environ, route.Options{Self: check.Listens(cfg)})
	if err != nil {
		return err
	}
	v.send = out.Transport
	return nil
}

// get requests a document as a verifier does: the status is 200, and no redirect is followed.
func (v *verifier) get(at string) (*url.URL, http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	r.Header.Set("Accept", passport.MediaType+", application/json;q=0.9")
	r.Header.Set("User-Agent", cache.DefaultUserAgent(""))
	resp, err := v.send.RoundTrip(r)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s cannot be fetched: %w", at, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, nil, fmt.Errorf("%s is answered with status %d; verifiers take 200 alone, and follow no redirect", at, resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, passport.MaxDirectory+1))
	if err == nil && len(body) > passport.MaxDirectory {
		err = fmt.Errorf("it has more than %d octets", passport.MaxDirectory)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s cannot be read: %w", at, err)
	}
	return r.URL, resp.Header, body, nil
}

// document verifies a directory, or a card and the directory that it names.
func (v *verifier) document(at string) error {
	u, header, body, err := v.get(at)
	if err != nil {
		return err
	}
	var card passport.Card
	if json.Unmarshal(body, &card) == nil && card.Keys != "" {
		v.row("card", "%s", console.Quoted(card.Name))
		if card.ClientID != at {
			v.fault("the client_id of the card is %s, not its URL", console.Quoted(card.ClientID))
		}
		if token := card.Robot.ProductToken; token != "" {
			v.row("robots.txt", "%s", console.Quoted(token))
		}
		if err := passport.CheckAgent(card.Keys); err != nil {
			v.fault("jwks_uri: %v", err)
			return v.result()
		}
		if u, header, body, err = v.get(card.Keys); err != nil {
			return err
		}
	}
	v.row("directory", "%s", console.Quoted(u.String()))
	l, err := passport.ReadDirectory(u, header, body, v.now)
	if err != nil {
		v.fault("%v", err)
		return v.result()
	}
	for i := range l.Keys {
		v.key(&l.Keys[i])
	}
	if l.Ignored > 0 {
		v.row("ignored", "%s of other kinds", console.Plural(uint64(l.Ignored), "key"))
	}
	for _, remark := range l.Remarks {
		v.fault("%s", remark)
	}
	return v.result()
}

// key prints a key of a directory.
func (v *verifier) key(k *passport.ListedKey) {
	text := k.Thumbprint
	if !k.NotAfter.IsZero() {
		text += ", until " + k.NotAfter.UTC().Format(time.RFC3339)
	}
	v.row("key", "%s", text)
	switch {
	case !k.Valid(v.now):
		v.fault("the key cannot be used now (nbf, exp)")
	case k.Remark != "":
		v.fault("%s", k.Remark)
	default:
		v.row("", "it signs the directory until %s", k.Proven.UTC().Format(time.RFC3339))
	}
}

// request verifies the request in a file.
func (c *VerifyCmd) request(v *verifier) error {
	m, err := c.message(v.app)
	if err != nil {
		return err
	}
	claim, err := passport.Read(m)
	switch {
	case errors.Is(err, passport.ErrUnsigned):
		return err
	case err != nil:
		v.row("outcome", "%s: %v", passport.Invalid, err)
		return console.Exit(console.ExitNo)
	}
	v.row("signed by", "%s", console.Quoted(claim.Agent))
	v.row("key", "%s", console.Quoted(claim.KeyID))
	v.row("covers", "%s", console.Quoted(strings.Join(claim.Covered, " ")))
	v.row("valid", "from %s until %s", claim.Created.Format(time.RFC3339), claim.Expires.Format(time.RFC3339))
	if c.Base {
		for line := range strings.SplitSeq(claim.Base, "\n") {
			v.row("base", "%s", console.Printable(line))
		}
	}
	keys, err := c.keys(v, claim)
	if err != nil {
		v.row("outcome", "%s: %v", passport.Unverified, err)
		return console.Exit(console.ExitNo)
	}
	outcome, why := claim.Verify(keys, v.now)
	if why != "" {
		v.bad = true
		why = ": " + why
	}
	v.row("outcome", "%s%s", outcome, why)
	return v.result()
}

// keys returns the keys of --keys, or those that the request names.
func (c *VerifyCmd) keys(v *verifier, claim *passport.Claim) ([]passport.ListedKey, error) {
	at, header, body := &url.URL{}, http.Header{}, []byte(nil)
	if c.Keys != "" {
		file, err := ownfile.Read(c.Keys, passport.MaxDirectory)
		if err != nil {
			return nil, fmt.Errorf("--keys: %w", err)
		}
		body = file.Data
	} else {
		err := v.open(&c.FileFlags)
		if err == nil {
			at, header, body, err = v.get(claim.Directory())
		}
		if err != nil {
			return nil, err
		}
	}
	l, err := passport.ReadDirectory(at, header, body, v.now)
	if err != nil {
		return nil, err
	}
	return l.Keys, nil
}

// noRequest returns the error of data, which is no request. It quotes nothing of them: they
// may be a private key.
func noRequest(data []byte, path string) error {
	path = console.Printable(path)
	if _, err := passport.ParseKey(data); err == nil {
		return fmt.Errorf("%s contains a private key, and no request\nPrint the key with heed identity show %s", path, path)
	}
	var directory struct{ Keys []json.RawMessage }
	if json.Unmarshal(data, &directory) == nil && directory.Keys != nil {
		return fmt.Errorf("%s contains a directory of keys, and no request\nVerify the directory at its URL, or a request in a file with --keys %s", path, path)
	}
	return fmt.Errorf("%s does not contain the head of a request, as HTTP/1 sends it\nIt begins with a line such as GET /page HTTP/1.1; the fields follow, each on a line", path)
}

// message reads the request.
func (c *VerifyCmd) message(a *console.App) (*passport.Message, error) {
	var data []byte
	if c.Target == "-" {
		var err error
		if data, err = io.ReadAll(io.LimitReader(a.Stdin, maxMessage)); err != nil {
			return nil, err
		}
	} else {
		file, err := ownfile.Read(c.Target, maxMessage)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an https URL nor a file that can be read: %w\nWrite the URL out, such as https://bots.example/news/keys.json: sites request it over https", console.Printable(c.Target), err)
		}
		data = file.Data
	}
	if !bytes.Contains(data, []byte("\n\n")) && !bytes.Contains(data, []byte("\r\n\r\n")) {
		data = append(bytes.TrimRight(data, "\r\n"), "\r\n\r\n"...) // a head alone
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
	if err != nil {
		return nil, noRequest(data, c.Target)
	}
	m := &passport.Message{Method: r.Method, Scheme: "https", Authority: r.Host, Target: r.RequestURI, Header: r.Header}
	if c.HTTP {
		m.Scheme = "http"
	}
	if r.URL.IsAbs() { // in the form for proxies (RFC 9112 §3.2.2)
		m.Scheme, m.Target = r.URL.Scheme, strings.TrimPrefix(m.Target, r.URL.Scheme+"://"+r.URL.Host)
	}
	return m, nil
}
