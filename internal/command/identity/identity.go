// Package identity is heed identity: it makes the keys of signed requests, publishes them as
// static files, and verifies what a site would verify.
//
// identity.go makes and shows keys, publish.go and page.go write the files, verify.go
// verifies directories, cards and requests.
package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"heed/internal/config"
	"heed/internal/output/console"
	"heed/internal/trust/passport"
)

// IdentityCmd is `heed identity`: keys and pages for signed requests.
type IdentityCmd struct {
	New     NewCmd     `cmd:"" help:"Make a key for signed requests."`
	Show    ShowCmd    `cmd:"" help:"Print a key, or the keys of the settings."`
	Publish PublishCmd `cmd:"" help:"Write the files by which sites verify signatures."`
	Verify  VerifyCmd  `cmd:"" help:"Verify a directory of keys or a signed request."`
}

// NewCmd is `heed identity new`.
type NewCmd struct {
	Days *int `placeholder:"N" help:"End the key after N days; without it the key has no end."`

	File string `arg:"" name:"file" help:"The file to write, which must not exist."`
}

// maxDays is the longest time of a key.
const maxDays = 36500

// Run makes the key.
func (c *NewCmd) Run(a *console.App) error {
	var end time.Time
	switch {
	case c.Days == nil:
	case *c.Days < 1 || *c.Days > maxDays:
		return fmt.Errorf("--days: write a number from 1 to %d; without --days the key has no end", maxDays)
	default:
		end = a.Now().AddDate(0, 0, *c.Days)
	}
	key, err := passport.NewKey(end)
	if err != nil {
		return err
	}
	if err := writeNew(c.File, key.File()); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s\n", key.Thumbprint)
	fmt.Fprintf(a.Stderr, "heed: %s contains a new key%s\nSet it in a [[client]] of proxy.toml, with the URL at which you publish it:\n  sign = { key = \"file:%s\", agent = \"https://bots.example/keys.json\" }\nThen write the files to publish: heed identity publish DIR\n",
		console.Quoted(c.File), endWords(&key.PublicKey), console.Printable(c.File))
	return nil
}

// writeNew writes a file that only this user can read, and that did not exist.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already, and may contain a key in use\nName another file", console.Printable(path))
	}
	if err != nil {
		return fmt.Errorf("the key cannot be written: %w\nName a file in a directory that exists and that you may write to", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("the key cannot be written: %w", err), os.Remove(path))
	}
	return nil
}

// endWords returns the end of a key, as the end of a sentence.
func endWords(k *passport.PublicKey) string {
	if k.NotAfter.IsZero() {
		return ""
	}
	return ", which ends on " + k.NotAfter.UTC().Format(time.DateOnly)
}

// ShowCmd is `heed identity show`.
type ShowCmd struct {
	config.FileFlags
	JSON bool `name:"json" help:"Print the keys as a JSON object."`

	File string `arg:"" optional:"" name:"file" help:"The file of a key; without it, the keys of the settings."`
}

// shown is one key.
type shown struct {
	Of       string    `json:"of,omitempty"` // whose requests are signed; empty: the key is that of a file
	Agent    string    `json:"agent,omitempty"`
	Key      string    `json:"key"` // thumbprint
	NotAfter time.Time `json:"not_after,omitzero"`
	Valid    bool      `json:"valid"`
	JWK      string    `json:"jwk"`
}

// Run prints the keys.
func (c *ShowCmd) Run(a *console.App) error {
	all, err := c.keys(a)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.NewJSON(a.Stdout).Encode(map[string]any{"keys": all})
	}
	if len(all) == 0 {
		fmt.Fprintln(a.Stdout, "No client of the settings is signed: heed help identity")
	}
	for i, k := range all {
		if i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		row := func(name, text string) {
			if text != "" {
				fmt.Fprintf(a.Stdout, "%-11s %s\n", name, text)
			}
		}
		row("signs", k.Of)
		row("as", console.Quoted(k.Agent))
		row("thumbprint", k.Key)
		switch {
		case !k.Valid:
			row("end", k.NotAfter.UTC().Format(time.RFC3339)+"; it signs nothing now")
		case !k.NotAfter.IsZero():
			row("end", k.NotAfter.UTC().Format(time.RFC3339))
		}
		row("public key", k.JWK)
	}
	return nil
}

// keys returns the key of the file, or those of the settings.
func (c *ShowCmd) keys(a *console.App) ([]shown, error) {
	all := []shown{} // in JSON a list, also when it is empty
	add := func(of, agent string, k *passport.PublicKey) {
		jwk := k.JWK()
		all = append(all, shown{of, agent, k.Thumbprint, k.NotAfter, k.Valid(a.Now()), string(jwk[:len(jwk)-1])})
	}
	if c.File != "" {
		k, err := config.ReadKey(c.File)
		if err != nil {
			return nil, err
		}
		add("", "", &k.PublicKey)
		return all, nil
	}
	cfg, err := c.Load(a)
	if err != nil {
		return nil, err
	}
	signers, err := cfg.Signers()
	for _, s := range signers {
		add(console.Quoted(s.Of), s.By.Agent(), s.By.Key())
	}
	return all, err
}
