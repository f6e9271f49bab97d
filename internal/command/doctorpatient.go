package command

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// patient is a runtime of this machine, or a command that is tried in its place.
type patient struct {
	runtimeKind
	Version string
}

// patientOf is a command as a patient. What it is missing is told by the runtime
// that occurs in it.
func patientOf(args []string) patient {
	kind := runtimeKind{proxy: proxyLine, trust: "SSL_CERT_FILE=BUNDLE"}
	for _, word := range args {
		base := filepath.Base(word)
		if i := slices.IndexFunc(runtimes, func(k runtimeKind) bool { return base == k.program || k.program == "python3" && base == "python" }); i >= 0 {
			kind.proxy, kind.trust = runtimes[i].proxy, runtimes[i].trust
			break
		}
	}
	name := atMost(strings.Join(args, " "), 40)
	if !slices.ContainsFunc(args, func(word string) bool { return strings.Contains(word, "{}") }) {
		args = append(slices.Clone(args), "{}")
	}
	kind.name, kind.fetch = name, args
	return patient{runtimeKind: kind}
}

// host is the patient's own host on the doctor's site.
func (p *patient) host() string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(p.name))
	return "x" + label[:min(len(label), 40)] + doctorDomain // a label has 63 octets at most (RFC 1035 §2.3.4)
}

// line is the command that fetches an address.
func (p *patient) line(dir, address string) []string {
	out := make([]string, len(p.fetch))
	for i, word := range p.fetch {
		out[i] = strings.ReplaceAll(word, "{}", address)
	}
	if strings.HasPrefix(out[0], "./") && p.build != nil {
		out[0] = filepath.Join(dir, out[0])
	}
	return out
}

// diagnose says what became of the patient's fetches.
func (p *patient) diagnose(tried []trial, site *doctorSite, judged []judgedAs) diagnosis {
	d := diagnosis{Name: p.name, Version: p.Version}
	host := p.host()
	d.ProxyHTTP = site.asked("http", host, allowedPath)
	d.ProxyHTTPS = slices.ContainsFunc(judged, func(j judgedAs) bool {
		return strings.HasPrefix(j.URL, "https://"+host) || strings.HasPrefix(j.URL, host+":443")
	})
	d.Refusal = d.ProxyHTTP
	for _, t := range tried {
		switch {
		case t.scheme == "https" && t.path == allowedPath:
			d.Trusted = t.status == 0 && site.asked(t.scheme, host, t.path)
		case t.path == refusedPath && (t.scheme == "http" || d.Trusted):
			d.Refusal = d.Refusal && t.status != 0 && !site.asked(t.scheme, host, t.path) && refusedByRule(judged, t.scheme+"://"+host+t.path)
		}
	}
	d.Missing = p.missing(&d)
	if i := slices.IndexFunc(tried, func(t trial) bool { return (t.status != 0) == (t.path == allowedPath) }); i >= 0 && !d.well() {
		d.Said = lastLine(tried[i].said)
	}
	return d
}

func refusedByRule(judged []judgedAs, address string) bool {
	return slices.ContainsFunc(judged, func(j judgedAs) bool {
		return strings.HasPrefix(j.URL, address) && j.Verdict == "refuse" && j.Reason == "rule"
	})
}

// missing is what would make a patient well; empty when it is.
func (p *patient) missing(d *diagnosis) string {
	switch {
	case d.well():
		return ""
	case !d.ProxyHTTP || !d.ProxyHTTPS:
		if p.program == "node" && !nodeKnowsProxies(p.Version) {
			return "a Node from 22.21 or 24 on: this one ignores proxy variables"
		}
		return p.proxy
	case !d.Trusted:
		return p.trust
	default:
		return "a look at the answer's status: 403 is taken for success"
	}
}

// nodeKnowsProxies reports whether a version of Node can be told to use proxy
// variables.
func nodeKnowsProxies(version string) bool {
	numbers := strings.SplitN(version, ".", 3)
	if len(numbers) < 2 {
		return true // nobody knows: the variable may help
	}
	major, _ := strconv.Atoi(numbers[0])
	minor, _ := strconv.Atoi(numbers[1])
	return major >= 24 || major == 22 && minor >= 21
}

// lastLine is the last line that says something, shortened.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return quoted(lines[len(lines)-1])
}
