package refusal

import (
	"context"
	"errors"
	"fmt"

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
	return fmt.Sprintf("heed cannot reach %s: %s", site, a.ErrorType)
}

// certificateDetail explains a certificate that is not accepted, and names the setting
// that can change that.
func certificateDetail(f upstream.Failure) string {
	whose, other := "the site", "upstream_tls at the [[host]] of the site can accept it all the same"
	if f.ByProxy {
		whose, other = "the upstream proxy", "[upstream] proxy can name another one"
	}
	text := fmt.Sprintf("The certificate of %s %s; no rule of robots.txt is behind this. A retry will not help. ", whose, f.Certificate)
	switch f.Certificate {
	case upstream.UnknownAuthority:
		return text + "Where its authority is to be trusted, the operator of this proxy names the file of its certificate in ca_file of [upstream], and heed reload applies it."
	case upstream.Expired:
		return text + "It has to be renewed there; the operator of this proxy checks that the clock of this machine is right. [upstream] ca_file does not change this; " + other + "."
	case upstream.NotYetValid:
		return text + "The operator of this proxy checks that the clock of this machine is right. [upstream] ca_file does not change this; " + other + "."
	case upstream.OtherThanPinned:
		return text + "The operator of this proxy compares upstream_tls at the [[host]] of the site with the certificate that it shows now."
	}
	return text + "It has to be replaced there. [upstream] ca_file does not change this; in the settings of this proxy, " + other + "."
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
