package auditcmd

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"heed/internal/audit/store"
	"heed/internal/base/ownfile"
	"heed/internal/base/safetext"
	"heed/internal/base/state"
	"heed/internal/config"
	"heed/internal/output/console"
	"heed/rules"
)

// sealKeyFile is the key that signs checkpoints, in the state directory.
const sealKeyFile = "seal.key"

// keyName is the name of the key in signed notes.
const keyName = "heed-audit"

// sealKey returns the signer of the state directory and its public key, which are made on first
// use.
func sealKey(a *console.App) (note.Signer, string, error) {
	dir, err := state.Find(a.Stderr)
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, sealKeyFile)
	secret, _, err := note.GenerateKey(rand.Reader, keyName)
	if err != nil {
		return nil, "", err
	}
	if err = os.MkdirAll(dir, 0o700); err == nil {
		secret, err = state.ReadOrCreate(path, secret+"\n")
	}
	if err == nil {
		err = ownfile.CheckFile(ownfile.Secret, "the key", path)
	}
	if err != nil {
		return nil, "", fmt.Errorf("the key that signs heads of the record cannot be used: %w\nRun this as the user of heed, or set HEED_STATE to another directory", err)
	}
	secret = strings.TrimSpace(secret)
	signer, err := note.NewSigner(secret)
	if err != nil {
		return nil, "", fmt.Errorf("the file %s contains no key: %w\nMove it away and heed makes a new one; others must get its public key then", path, err)
	}
	public, err := publicKey(secret)
	return signer, public, err
}

// publicKey returns the public key of a key as note.GenerateKey returns it: PRIVATE+KEY+NAME+HASH+
// the algorithm and the seed.
func publicKey(secret string) (string, error) {
	parts := strings.SplitN(secret, "+", 5)
	seed, err := base64.StdEncoding.DecodeString(parts[4]) // note.NewSigner has read it
	if err != nil {
		return "", err
	}
	return note.NewEd25519VerifierKey(parts[2], ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey))
}

// printCheckpoint signs a head and prints it.
func (c *AuditSealCmd) printCheckpoint(a *console.App, h *store.Head) (err error) {
	signer, _, err := sealKey(a)
	if err != nil {
		return err
	}
	signed, err := note.Sign(&note.Note{Text: h.Checkpoint()}, signer)
	if err != nil {
		return err
	}
	if h.Signed = string(signed); c.JSON {
		return console.PrintJSON(a.Stdout, []store.Head{*h})
	}
	_, err = io.WriteString(a.Stdout, h.Signed)
	return err
}

// AuditKeyCmd is `heed audit key`.
type AuditKeyCmd struct{}

// Run prints the public key that verifies checkpoints and proofs.
func (*AuditKeyCmd) Run(a *console.App) error {
	_, public, err := sealKey(a)
	if err == nil {
		_, err = fmt.Fprintln(a.Stdout, public)
	}
	return err
}

// AuditProveCmd is `heed audit prove`.
type AuditProveCmd struct {
	config.FileFlags
	File       []string `short:"f" placeholder:"FILE" help:"Search these records (default: this heed's own)."`
	ForSite    string   `placeholder:"HOST" help:"Prove all decisions on a site, or on *.SITE, in place of one."`
	Since      string   `placeholder:"TIME" aliases:"from" help:"With --for-site: from TIME on, as for heed audit list."`
	Until      string   `placeholder:"TIME" aliases:"to" help:"With --for-site: before TIME."`
	WithClient bool     `help:"Add what is recorded of the client: address, names, port, errors."`
	Output     string   `short:"o" placeholder:"FILE" help:"Write to this new file (default: standard output)."`

	ID string `arg:"" optional:"" name:"id" help:"The id of a decision, or its beginning."`
}

// mostProved is the number of decisions of one proof.
const mostProved = 100_000

// Run writes the proof.
func (c *AuditProveCmd) Run(a *console.App) error {
	filter, err := c.filter(a)
	if err != nil {
		return err
	}
	signer, public, err := sealKey(a)
	if err != nil {
		return err
	}
	sign := func(h *store.Head) (string, string, error) {
		signed, err := note.Sign(&note.Note{Text: h.Checkpoint()}, signer)
		return string(signed), public, err
	}
	paths, err := (&recordFiles{FileFlags: c.FileFlags, Files: c.File}).paths(a)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	for _, path := range paths {
		e, err := store.Prove(ctx, path, &store.Wanted{Filter: filter, Most: mostProved, WithClient: c.WithClient}, sign)
		if err != nil {
			return err
		}
		if e != nil {
			return c.write(a, e)
		}
	}
	fmt.Fprintf(a.Stderr, "heed: the record has no such decision\n%s\n", listed(c.File))
	return console.Exit(console.ExitNo)
}

// filter returns what selects the decisions.
func (c *AuditProveCmd) filter(a *console.App) (*store.Filter, error) {
	if err := checkHost("--for-site", c.ForSite); err != nil {
		return nil, err
	}
	f := &store.Filter{Host: c.ForSite}
	if (c.ID == "") == (c.ForSite == "") {
		return nil, errors.New("name the id of one decision, or a site with --for-site")
	}
	if c.ForSite == "" {
		ids, digits, ok := idRange(c.ID)
		if !ok || digits < minIDDigits {
			return nil, fmt.Errorf("%s is neither the id of a decision nor its beginning\nA refusal has it in its text, and `heed audit list` prints it", console.Quoted(c.ID))
		}
		f.IDs = ids
		if c.Since != "" || c.Until != "" {
			return nil, errors.New("--since and --until choose among the decisions on a site\nLeave them out, or use --for-site")
		}
		return f, nil
	}
	var err error
	if f.From, err = parseTime("--since", c.Since, a.Now()); err == nil {
		f.To, err = parseTime("--until", c.Until, a.Now())
	}
	return f, err
}

// write writes the proof, one row a line.
func (c *AuditProveCmd) write(a *console.App, e *store.Evidence) error {
	if c.Output == "" {
		_, err := a.Stdout.Write(e.Text())
		return err
	}
	f, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(e.Text())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("the proof cannot be written: %w\nName a new file", err)
	}
	_, err = fmt.Fprintf(a.Stderr, "heed: %s holds %s; its reader checks it with `heed audit check-proof`\n", console.Quoted(c.Output), console.Plural(uint64(e.Decisions()), "decision"))
	return err
}

// readKey returns a public key that is given as heed audit key prints it, or by the name of a file
// with it; empty when none is.
func readKey(key string) (string, error) {
	if key == "" || strings.Count(key, "+") >= 2 {
		return key, nil
	}
	text, err := os.ReadFile(key)
	if err != nil {
		return "", fmt.Errorf("%s is neither a key as `heed audit key` prints it nor a file that can be read: %w", console.Quoted(key), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// AuditCheckProofCmd is `heed audit check-proof`.
type AuditCheckProofCmd struct {
	Key  string `placeholder:"KEY|FILE" help:"Require this key, as heed audit key prints it."`
	File string `arg:"" name:"file" help:"The proof; - reads standard input."`
}

// Run checks the proof and prints what it proves.
func (c *AuditCheckProofCmd) Run(a *console.App) error {
	text, err := a.Input(c.File, store.MaxProof)
	if err != nil {
		return err
	}
	key, err := readKey(c.Key)
	if err != nil {
		return err
	}
	proof, err := store.CheckProof(text, key)
	if errors.Is(err, store.ErrNoProof) {
		return fmt.Errorf("%s: %w\nName the file that `heed audit prove` wrote", console.Quoted(c.File), err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early: its end is missing; copy it again")
	}
	if err != nil {
		fmt.Fprintf(a.Stdout, "wrong  %s\n       %s\n", console.Quoted(c.File), console.PrintableLines(err.Error()))
		return console.Exit(console.ExitNo)
	}
	return c.print(a, proof)
}

// print prints what a proof proves, and what it does not.
func (c *AuditCheckProofCmd) print(a *console.App, p *store.Checked) error {
	w, wrong := a.Stdout, 0
	fmt.Fprintf(w, "right  %s\n       %s of record %s, up to commit %d\n", console.Quoted(c.File), console.Plural(uint64(len(p.Decisions)), "decision"), console.Quoted(p.Head.Store), p.Head.Commit)
	for _, d := range p.Decisions {
		again, same := judgeAgain(d)
		if !same {
			wrong++
		}
		fmt.Fprintf(w, "\n%s\n       %s\n", describe(d), again)
	}
	key := "The file names the key itself: that it is heed's, you must know otherwise (--key)."
	if p.KeyKnown {
		key = "The key is the one that you named: whose it is, you must know otherwise."
	}
	fmt.Fprintf(w, "\nProved: the holder of the key recorded these decisions, as heed does before it answers, and\nthe rows and octets shown here are those of the record at its commit %d.\nNot proved: that no other request was sent. %s\n", p.Head.Commit, key)
	if wrong > 0 {
		return console.Exit(console.ExitNo)
	}
	return nil
}

// text returns a value of a row as text for a terminal; empty for NULL.
func text(row map[string]any, column string) string {
	switch v := row[column].(type) {
	case string:
		return console.Printable(v)
	case []byte:
		return safetext.Octets(string(v))
	case int64:
		return fmt.Sprint(v)
	}
	return ""
}

func number(row map[string]any, column string) int64 {
	n, _ := row[column].(int64)
	return n
}

// siteOf returns the origin of a row of site.
func siteOf(row map[string]any) rules.Origin {
	host, _ := row["host"].(string)
	scheme, _ := row["scheme"].(string)
	return rules.Origin{Scheme: scheme, Host: host, Port: uint16(number(row, "port"))}
}

// describe returns the lines on a decision: what was asked, when, the verdict and how it ended.
func describe(d *store.CheckedDecision) string {
	var b strings.Builder
	url := "(unknown host)"
	if d.Site != nil {
		url = console.Printable(siteOf(d.Site).String()) + text(d.Entry, "target")
	}
	g := d.Ground
	fmt.Fprintf(&b, "%s  %s %s\n", text(g, "verdict"), text(d.Entry, "method"), url)
	id, _ := d.Entry["id"].([]byte)
	fmt.Fprintf(&b, "       decision %s of %s, recorded in commit %d\n", uuidText(id), micros(number(d.Entry, "time")), d.Commit)
	fmt.Fprintf(&b, "       reason %s", text(g, "reason"))
	if line := number(g, "line"); line > 0 {
		fmt.Fprintf(&b, ": line %d, %s, in the group %s", line, text(g, "rule"), text(g, "group_name"))
	}
	if settled := text(g, "settled"); settled != "" {
		fmt.Fprintf(&b, ": %s", settled)
	}
	if a := d.Answer; a != nil {
		fmt.Fprintf(&b, "\n       by the answer with status %d to a request for robots.txt at %s", number(a, "status"), micros(number(a, "time")))
		if sum, _ := d.Body["sha256"].([]byte); sum != nil {
			fmt.Fprintf(&b, ", sha256:%x", sum)
		}
	}
	switch o := d.Outcome; {
	case o == nil:
		b.WriteString("\n       the proof has no outcome of it")
	case o["from_site"] == nil:
		b.WriteString("\n       another proxy sent it, and heed did not see the answer")
	default:
		fmt.Fprintf(&b, "\n       status %d from %s, %d octets, after %v", number(o, "status"), map[bool]string{true: "the site", false: "heed"}[number(o, "from_site") == 1],
			number(o, "bytes_out"), (time.Duration(number(o, "duration")) * time.Microsecond).Round(10*time.Microsecond))
	}
	if c := d.Client; c != nil {
		fmt.Fprintf(&b, "\n       client %s %s, User-Agent %s, names %s", text(c, "client"), text(c, "client_name"), text(c, "user_agent"), text(c, "tokens"))
	}
	return b.String()
}

func uuidText(id []byte) string {
	if len(id) != 16 {
		return fmt.Sprintf("%x", id)
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func micros(n int64) string { return time.UnixMicro(n).UTC().Format(time.RFC3339) }

// judgeAgain judges a decision again by the robots.txt in its proof, as the name whose group
// decided, and reports what comes out, and whether the proof does not contradict itself.
func judgeAgain(d *store.CheckedDecision) (said string, same bool) {
	g, p := d.Ground, d.Policy
	target, _ := d.Entry["target"].([]byte)
	switch {
	case p == nil:
		return "it rests on no robots.txt, but on the operator's settings or on the request itself: not judged again", true
	case number(d.Entry, "redacted") == 1:
		return "parts of the target are keyed hashes: not judged again", true
	case text(g, "judged") == "no":
		return "it was not judged by its path or host: not judged again", true
	}
	profile, known := rules.ParseProfile(text(p, "profile"))
	state := slices.Index(rules.StateNames, text(p, "state"))
	if !known || state < 0 {
		return "this heed does not know how its robots.txt was read: not judged again", true
	}
	var body []byte
	if d.Body != nil {
		s := &rules.Snapshot{Size: int(number(d.Body, "size"))}
		sum, _ := d.Body["sha256"].([]byte)
		copy(s.SHA256[:], sum)
		s.Zlib, _ = d.Body["zlib"].([]byte)
		var err error
		if body, err = s.Body(); err != nil {
			return "its robots.txt cannot be read: " + err.Error(), false
		}
	}
	policy := rules.NewAs(profile, rules.Source{Origin: siteOf(d.Site), State: rules.State(state), Status: int(number(p, "status"))}, body)
	agent := rules.Declare()
	if token := text(g, "token"); token != "" {
		agent = rules.Declare(token)
	}
	again := rules.Decision{}
	if text(g, "judged") == "host" {
		again, _ = policy.DecideHost(agent)
	} else {
		again = policy.Decide(agent, rules.NewTarget(string(target)))
	}
	refused := text(g, "verdict") != rules.Allow.String()
	if string(again.Reason) == text(g, "reason") && (again.Verdict == rules.Refuse) == refused && int64(again.Line) == number(g, "line") && console.Printable(again.Rule) == text(g, "rule") {
		return "judged again by the robots.txt in the proof, it comes out the same", true
	}
	what := fmt.Sprintf("judged again by the robots.txt in the proof alone: %s (%s)", again.Verdict, again.Reason)
	switch byRules := []rules.Reason{rules.ReasonRule, rules.ReasonNoRule}; {
	case !slices.Contains(byRules, rules.Reason(text(g, "reason"))):
		return what + "; the verdict rests on more than the rules", true
	case number(g, "engine") != rules.Engine:
		return what + fmt.Sprintf("; it was judged by engine %d of the rules, and this heed has %d", number(g, "engine"), rules.Engine), true
	}
	return what + ", which is another verdict than the recorded one", false
}
