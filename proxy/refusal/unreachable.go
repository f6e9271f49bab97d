package refusal

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"heed/internal/base/safetext"
	"heed/proxy/upstream"
)

// unreachableSentence states what could not be reached: the site, or the proxy that
// heed reaches it through.
func (a *Answer) unreachableSentence() string {
	site, f := a.of.Entry.Host, upstream.FailureOf(a.err())
	proxy := "the upstream proxy"
	if f.Proxy != "" {
		proxy += " " + f.Proxy
	}
	switch {
	case errors.Is(a.err(), context.Canceled):
		return "the client closed its side of the connection before " + site + " answered"
	case f.ByProxy && f.Certificate != "":
		return fmt.Sprintf("heed cannot use %s: its certificate %s", proxy, f.Certificate)
	case f.Certificate != "":
		return fmt.Sprintf("heed cannot reach %s: its certificate %s", site, f.Certificate)
	case f.ByProxy && f.Type == "proxy_configuration_error":
		return fmt.Sprintf("heed cannot use %s: it asks heed for other credentials", proxy)
	case f.ByProxy && f.Refused != 0:
		return fmt.Sprintf("%s did not let heed reach %s: status %d", proxy, site, f.Refused)
	case f.ByProxy && f.Proxy != "":
		return fmt.Sprintf("heed cannot reach %s: %s", proxy, f.Type)
	case f.ByProxy:
		return fmt.Sprintf("%s did not let heed reach %s: %s", proxy, site, f.Type)
	}
	cause := cmp.Or(safetext.Printable(f.Cause, maxCause), a.ErrorType)
	switch {
	case f.Type == "dns_timeout":
		return fmt.Sprintf("heed cannot look up %s: the name server of heed's machine did not answer: %s", site, cause)
	case f.Over != "" && f.Stage > upstream.NoTLS:
		return fmt.Sprintf("heed reached the upstream proxy %s, but %s: %s", f.Over, overProxy[f.Stage], cause)
	}
	return fmt.Sprintf(stages[f.Stage].sentence, site, cause)
}

// maxCause bounds the cause of a failure in a sentence, in bytes.
const maxCause = 160

// stages are the words for each Stage: a sentence with the site and the cause, and what
// is behind it. Whether a retry can help, Failure.Lasting says; the error type, its Type.
var stages = [...]struct{ sentence, detail string }{
	upstream.NotReached: {"heed cannot reach %s: %s", "The site itself could not be reached; no rule of robots.txt is behind this."},
	upstream.NoTLS:      {"heed reached %s, but TLS with it failed: %s", "The site was reached, but no TLS connection with it came about; no rule of robots.txt is behind this."},
	upstream.NoHTTP:     {"heed reached %s, but its answer is not valid HTTP: %s", "The site was reached, but what it answered cannot be read in one way only, and is not passed on; no rule of robots.txt is behind this. Its operator can correct it."},
	upstream.NoAnswer:   {"heed reached %s, but the connection ended before its answer: %s", "The site was reached, but it ended the connection without an answer; no rule of robots.txt is behind this."},
	upstream.TooLate:    {"heed reached %s, but it did not answer in time: %s", "The site was reached, but its answer did not begin in time ([upstream] response_header_timeout); no rule of robots.txt is behind this."},
	upstream.Ended:      {"heed reached %s, but had to end the connection: %s", "The site was reached, but it sent something in TLS that heed does not accept; no rule of robots.txt is behind this."},
}

// overProxy are the words for each Stage of a plain request over an HTTP proxy.
var overProxy = [...]string{
	upstream.NoHTTP:   "the answer that came over it is not valid HTTP",
	upstream.NoAnswer: "it ended the connection before the site's answer",
	upstream.TooLate:  "no answer of the site came over it in time",
	upstream.Ended:    "heed had to end the connection",
}

// stageDetail explains a failure by how far the request came.
func (a *Answer) stageDetail(f upstream.Failure) string {
	text := stages[f.Stage].detail
	if f.Type == "dns_timeout" {
		return "The site was not asked, and no rule of robots.txt is behind this: a name server that heed's machine uses (/etc/resolv.conf) did not answer." +
			a.forReader(" The operator of this proxy checks it.", " Check it.") + " A retry can help when it works again."
	}
	if f.Over != "" && f.Stage > upstream.NoTLS {
		text = "The proxy that heed itself goes through, or the site behind it, has failed; no rule of robots.txt is behind this. See [upstream] proxy in the settings, or the [[host]] of the site."
	}
	if f.Scarce {
		return "heed has as many connections and files open as its process may; neither the site nor a rule of robots.txt is behind this." +
			a.forReader(" The operator of this proxy can raise the limit of open files (ulimit -n, LimitNOFILE=).", " Raise the limit of open files (ulimit -n) before heed run.") +
			" A retry can help when other requests have ended."
	}
	if f.Offer {
		text += " It may offer only what heed does not: TLS 1.0 and 1.1, key exchange with RSA, CBC. " + a.forReader("The operator of this proxy can allow", "Allow") + " these with old_tls = true at the [[host]] of the site." +
			" What heed cannot use at all, such as key exchange with DHE only, is left to the client with https = \"tunnel\" there."
	}
	if f.Again {
		text += " Some sites do so for a folder that is for clients with a certificate. " + a.forReader("The operator of this proxy can allow", "Allow") +
			" one with renegotiate = true at the [[host]] of the site, or leave the site to the client with https = \"tunnel\" there."
	}
	retry := " A retry can help when the site works again."
	if f.Lasting {
		retry = " A retry will not help."
	}
	if f.Offer || f.Again {
		retry += a.hostLine()
	}
	return text + retry
}

// certificateDetail explains a certificate that is not accepted, and names the setting
// that can change that.
func (a *Answer) certificateDetail(f upstream.Failure) string {
	whose, other := "the site", "upstream_tls at the [[host]] of the site can accept it all the same."+a.hostLine()
	if f.ByProxy {
		whose, other = "the upstream proxy", "[upstream] proxy can name another one."
	}
	clock := " that the clock of this machine is right. [upstream] ca_file does not change this; " + other
	text := fmt.Sprintf("The certificate of %s %s; no rule of robots.txt is behind this. A retry will not help. ", whose, f.Certificate)
	switch f.Certificate {
	case upstream.UnknownAuthority:
		return text + "Where its authority is to be trusted, " +
			a.forReader("the operator of this proxy names the file of its certificate in ca_file of [upstream], and heed reload applies it.",
				`write in proxy.toml: [upstream] ca_file = "FILE", the file of its certificate, or set SSL_CERT_FILE for heed run.`)
	case upstream.Expired:
		return text + "It has to be renewed there; " + a.forReader("the operator of this proxy checks", "check") + clock
	case upstream.NotYetValid:
		return text + a.forReader("The operator of this proxy checks", "Check") + clock
	case upstream.Unparsable:
		return text + "It has to be replaced there. With https = \"tunnel\" at the [[host]] of the site it is left to the client, which may parse it." + a.hostLine()
	case upstream.OtherThanPinned:
		return text + a.forReader("The operator of this proxy compares", "Compare") + " upstream_tls at the [[host]] of the site with the certificate that it shows now." + a.hostLine()
	}
	return text + "It has to be replaced there. [upstream] ca_file does not change this; in " + a.forReader("the settings of this proxy", "proxy.toml here") + ", " + other
}

// Explanations of a site that could not be reached, where it is not the site that
// failed to answer.
const (
	statusDetail = "The answer carried a status that only a proxy may give (407), or none at all; it is not passed on, so that no client sends " +
		"credentials to the wrong place. Where heed itself goes through a proxy, that proxy may need other credentials: see [upstream] proxy in the settings."

	leftDetail = "heed ends a request when its client closes the connection, or only its side of it; no rule of robots.txt is behind this, and the site was not waited for. " +
		"A client that closes its side while it waits for the answer cannot use heed."

	upstreamDetail = "The proxy that heed itself reaches this site through could not be used, or did not open the tunnel; no rule of robots.txt is behind this. " +
		"See [upstream] proxy in the settings, or the [[host]] of the site."
)
