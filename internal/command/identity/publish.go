package identity

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"heed/internal/base/ownfile"
	"heed/internal/config"
	"heed/internal/output/console"
	"heed/internal/trust/passport"
)

// PublishCmd is `heed identity publish`.
type PublishCmd struct {
	config.FileFlags
	Client  string   `placeholder:"NAME" help:"Publish the key of this [[client]]; needed when several have one."`
	Own     bool     `help:"Publish the key of heed's own requests, [robots] sign."`
	Also    []string `sep:"none" placeholder:"FILE" help:"Publish this key too, such as the next one. Repeatable."`
	Days    int      `default:"28" placeholder:"N" help:"Sign the directory for N days (28)."`
	Trigger string   `enum:"crawler,fetcher" default:"crawler" placeholder:"crawler|fetcher" help:"Who causes requests: the robot itself, or a person."`

	Dir string `arg:"" name:"dir" help:"The directory to write to: the document root of a web server."`
}

// robot is what is published.
type robot struct {
	client   *config.ClientConfig // nil: heed itself
	cfg      *config.Config
	agent    *url.URL // of the directory
	keys     []*passport.Key
	from, to time.Time
	trigger  string
}

// Run writes the files.
func (c *PublishCmd) Run(a *console.App) error {
	cfg, err := c.Load(a)
	if err != nil {
		return err
	}
	r, err := c.robot(cfg)
	if err != nil {
		return err
	}
	if c.Days < 1 || c.Days > 366 {
		return errors.New("--days: write a number from 1 to 366")
	}
	r.from = a.Now().Truncate(time.Second)
	r.to = r.from.AddDate(0, 0, c.Days)
	for _, k := range r.keys {
		if !k.NotAfter.IsZero() && k.NotAfter.Before(r.to) {
			r.to = k.NotAfter
		}
	}
	if !r.from.Before(r.to) {
		return errors.New("a key has ended; make the next one with heed identity new, and set it in proxy.toml")
	}
	files, err := r.files()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := write(filepath.Join(c.Dir, filepath.FromSlash(f.path)), f.data); err != nil {
			return fmt.Errorf("the files cannot be written: %w\nName a directory that you may write to, such as the document root of a web server", err)
		}
		fmt.Fprintln(a.Stdout, filepath.Join(c.Dir, filepath.FromSlash(f.path)))
	}
	a.Remark(r.remarks()...)
	fmt.Fprintf(a.Stderr, "heed: signed until %s; publish again before. Check it with: heed identity verify %s\n", r.to.UTC().Format(time.DateOnly), r.agent)
	return nil
}

// robot returns the client whose key is published.
func (c *PublishCmd) robot(cfg *config.Config) (*robot, error) {
	r := &robot{cfg: cfg, trigger: c.Trigger}
	var sign *config.SignConfig
	switch {
	case c.Own && c.Client != "":
		return nil, errors.New("--own and --client name two keys\nLeave one of them out")
	case c.Own:
		if sign = cfg.Robots.Sign; sign == nil {
			return nil, errors.New("--own: [robots] has no sign\nAdd it: sign = { key = \"file:heed.key\", agent = \"https://bots.example/heed.json\" }")
		}
	default:
		var names []string
		for i := range cfg.Clients {
			cl := &cfg.Clients[i]
			if cl.Sign == nil {
				continue
			}
			names = append(names, console.Printable(cl.Name))
			if c.Client == "" || cl.Name == c.Client {
				r.client, sign = cl, cl.Sign
			}
		}
		switch {
		case len(names) == 0:
			return nil, fmt.Errorf("no [[client]] of %s has sign\nAdd sign to the [[client]] of the robot, as heed help identity shows, or name another file with --config", cfg.Source())
		case r.client == nil:
			return nil, fmt.Errorf("--client: there is no [[client]] %q with sign in %s\nThose with sign are %s", c.Client, cfg.Source(), strings.Join(names, ", "))
		case c.Client == "" && len(names) > 1:
			return nil, fmt.Errorf("several clients have a key: %s\nChoose one with --client", strings.Join(names, ", "))
		}
	}
	var err error
	if r.agent, err = url.Parse(sign.Agent); err != nil {
		return nil, err
	}
	if p := r.agent.Path; p == "" || strings.HasSuffix(p, "/") || path.Clean(p) != p {
		return nil, fmt.Errorf("the path of %s names no file; sign under a URL such as https://%s%s", sign.Agent, r.agent.Host, passport.WellKnown)
	}
	for _, file := range append([]string{strings.TrimPrefix(sign.Key, "file:")}, c.Also...) {
		k, err := config.ReadKey(file)
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, k)
	}
	return r, nil
}

// file is a file that is published. Its path is that of its URL.
type file struct {
	path string
	data []byte
}

// write replaces a file that everyone may read.
func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return ownfile.Write(path, data, 0o644)
}

// serverConfig is where the fields for the web server are written.
const serverConfig = "server-config"

// beside returns the URL path of a file beside the directory of keys. Below /.well-known only
// registered names are used (RFC 8615 §3).
func (r *robot) beside(name string) string {
	dir := path.Dir(r.agent.Path)
	if dir == "/.well-known" {
		dir = "/"
	}
	return path.Join(dir, name)
}

// at returns the URL of a path.
func (r *robot) at(path string) string { return "https://" + r.agent.Host + path }

func (r *robot) files() ([]file, error) {
	d, err := passport.NewDirectory(r.agent.String(), r.keys, r.from, r.to)
	if err != nil {
		return nil, err
	}
	card := r.card()
	return []file{
		{r.agent.Path, d.Body},
		{r.beside("card.json"), card.JSON()},
		{r.beside("robot.html"), r.page(card)},
		{serverConfig + "/headers.txt", []byte(fields(d.Header, "%s: %s\n"))},
		{serverConfig + "/nginx.conf", r.nginx(d)},
		{serverConfig + "/apache.conf", r.apache(d)},
	}, nil
}

// fields returns the fields of an answer with the directory, each in a form.
func fields(of []passport.Field, form string) string {
	var b strings.Builder
	for _, f := range of {
		fmt.Fprintf(&b, form, f.Name, f.Value)
	}
	return b.String()
}

// nginx returns the location of the directory, to be included in a server.
func (r *robot) nginx(d *passport.Directory) []byte {
	return fmt.Appendf(nil, "location = %s {\n\ttypes { }\n\tdefault_type %s;\n%s}\n",
		r.agent.Path, passport.MediaType, fields(d.Header[1:], "\tadd_header %s '%s';\n"))
}

// apache returns the same for Apache, which needs mod_headers.
func (r *robot) apache(d *passport.Directory) []byte {
	return fmt.Appendf(nil, "<Location \"%s\">\n\tForceType %s\n%s</Location>\n",
		r.agent.Path, passport.MediaType, fields(d.Header[1:], "\tHeader set %s %q\n"))
}
