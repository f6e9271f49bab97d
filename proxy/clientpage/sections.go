package clientpage

import (
	"bytes"
	"html/template"
	"strings"
)

const (
	title = "heed: a forward proxy that keeps robots.txt"
	intro = `This is a proxy, not a site. Programs that use it obey the robots.txt of every
site that they request: a page that it disallows is answered 403 by the proxy, and
the answer gives the reason. To judge a page, the proxy reads https as well.`
)

// Section is a part of the page.
type Section struct {
	Title string
	Intro string // empty: none
	Lines []Line
}

// Line is one row of a section.
type Line struct {
	Of   string // a platform, a program or a file
	Do   string // a command, or what to do
	Link string // the path of a file of the proxy; empty: none
}

// sections returns the parts of the page, the same for text and HTML.
func (f *Facts) sections() []Section {
	url := "http://" + f.Addr
	files := []Line{
		{"certificate (PEM)", url + "/ca.pem", "/ca.pem"},
		{"certificate (DER)", url + "/ca.der", "/ca.der"},
		{"with usual roots", url + "/bundle.pem", "/bundle.pem"},
	}
	for _, print := range f.Fingerprints() {
		files = append(files, Line{Of: "SHA-256", Do: print})
	}
	return []Section{
		{Title: "Use it", Lines: lines(strings.ReplaceAll(useLines, "URL", url))},
		{Title: "Files", Intro: `For https, a client has to trust the certificate authority of this proxy. Compare
the SHA-256 with the one that its operator gives you another way
(heed ca path prints where the certificate is).`, Lines: files},
		{Title: "Trust it on a platform", Lines: lines(strings.ReplaceAll(platformLines, "URL", url))},
		{Title: "Trust it in a program", Intro: "FILE is where you saved ca.pem, and BUNDLE where you saved bundle.pem.", Lines: lines(programLines)},
		{Title: "Programs that pin certificates", Intro: `A program that accepts only the certificate of its site cannot be intercepted: its
hosts are named in proxy.toml with https = "host-only".`},
	}
}

// useLines are rows of platform and command, separated by a bar.
const useLines = `this machine, a shell | eval "$(heed env)"
this machine, one program | heed run -- COMMAND, trust included
Linux, macOS, a shell | export http_proxy=URL https_proxy=URL HTTP_PROXY=URL HTTPS_PROXY=URL
Windows, PowerShell | $env:HTTP_PROXY = "URL"; $env:HTTPS_PROXY = "URL"
Windows, for the user | setx HTTP_PROXY URL & setx HTTPS_PROXY URL
systemd unit | Environment=HTTP_PROXY=URL HTTPS_PROXY=URL
Docker | docker run -e HTTP_PROXY=URL -e HTTPS_PROXY=URL IMAGE
browsers | automatic proxy configuration: URL/proxy.pac
GNOME | gsettings set org.gnome.system.proxy autoconfig-url URL/proxy.pac
macOS, the system | networksetup -setautoproxyurl Wi-Fi URL/proxy.pac
Windows, the system | Settings, Network, Proxy, Use setup script: URL/proxy.pac`

const platformLines = `this machine | heed ca install
Debian, Ubuntu | sudo curl -o /usr/local/share/ca-certificates/heed.crt URL/ca.pem && sudo update-ca-certificates
Fedora, RHEL | sudo curl -o /etc/pki/ca-trust/source/anchors/heed.pem URL/ca.pem && sudo update-ca-trust
Alpine | wget -O /usr/local/share/ca-certificates/heed.crt URL/ca.pem && update-ca-certificates
macOS | curl -O URL/ca.pem && sudo security add-trusted-cert -d -k /Library/Keychains/System.keychain ca.pem
Windows | curl.exe -O URL/ca.der && certutil -addstore Root ca.der
containers | copy ca.pem into the image, then update-ca-certificates`

const programLines = `curl | curl --cacert BUNDLE, or CURL_CA_BUNDLE=BUNDLE
wget | wget --ca-certificate=BUNDLE
git | GIT_SSL_CAINFO=BUNDLE, or git config http.sslCAInfo BUNDLE
Python requests | REQUESTS_CA_BUNDLE=BUNDLE, or verify="BUNDLE"
Python urllib | SSL_CERT_FILE=BUNDLE; httpx and aiohttp take it, too
Node.js | NODE_EXTRA_CA_CERTS=FILE
Go | SSL_CERT_FILE=BUNDLE (on Linux)
Java | keytool -importcert -cacerts -alias heed -file FILE
Ruby, Perl | SSL_CERT_FILE=BUNDLE, PERL_LWP_SSL_CA_FILE=BUNDLE
Rust, .NET, PHP | SSL_CERT_FILE=BUNDLE where they use OpenSSL or the system's store
Chromium | import FILE under Certificates in its settings (Authorities)
Firefox | import FILE under Certificates in its settings, or security.enterprise_roots.enabled`

func lines(table string) (all []Line) {
	for row := range strings.SplitSeq(table, "\n") {
		of, do, _ := strings.Cut(row, " | ")
		all = append(all, Line{Of: of, Do: do})
	}
	return all
}

// page is the HTML form. It has no script, and its style is in it.
var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
dl { display: grid; grid-template-columns: minmax(9rem, max-content) 1fr; gap: .3rem 1rem; margin: 0 }
dt { font-weight: 600 } dd { margin: 0; min-width: 0 }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr } dd { margin-bottom: .6rem } }
</style></head><body><main>
<h1>{{.Title}}</h1>
<p>{{.Intro}}</p>
{{with .Contact}}<p>Contact: {{.}}</p>{{end}}
{{range .Sections}}<h2>{{.Title}}</h2>
{{with .Intro}}<p>{{.}}</p>{{end}}
{{if .Lines}}<dl>
{{range .Lines}}<dt>{{.Of}}</dt><dd>{{if .Link}}<a href="{{.Link}}"><code>{{.Do}}</code></a>{{else}}<code>{{.Do}}</code>{{end}}</dd>
{{end}}</dl>{{end}}
{{end}}</main></body></html>
`))

// ContentSecurityPolicy is the policy of the HTML page: nothing is loaded, and nothing
// runs.
const ContentSecurityPolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// HTML returns the page for browsers.
func (f *Facts) HTML() ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, map[string]any{"Title": title, "Intro": intro, "Contact": f.Contact, "Sections": f.sections()})
	return b.Bytes(), err
}
