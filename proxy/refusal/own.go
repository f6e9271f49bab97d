package refusal

import (
	"cmp"
	"strings"
)

// own returns a detail for the operator's own command, which heed run has started: who reads it
// can write the line that changes the answer. host is the site's name.
func own(detail, host string) string {
	if strings.Contains(detail, " at the [[host]]") || strings.Contains(detail, "at its [[host]]") {
		detail += ` In proxy.toml: [[host]] match = ["` + cmp.Or(host, "HOST") + `"] and the setting; heed run --config FILE names the file, and heed config check reads it.`
	}
	return strings.TrimSpace(forOwn.Replace(detail))
}

// forOwn has the words for the operator of the proxy, and those for who is it.
var forOwn = strings.NewReplacer(
	"The operator of this proxy refuses this part of the site, independently of its robots.txt. A retry will not help.",
	"A line of proxy.toml here, or an entry of heed refuse, refuses this part of the site, independently of its robots.txt: heed check --explain URL names it.",
	", as the operator of this proxy wants it (also_obey).", ", as heed run --also-obey, or also_obey in proxy.toml here, wants it.",
	"The operator of this proxy requires that every client names itself.", "proxy.toml here requires that every client names itself.",
	"The operator of this proxy sees the cause with heed status.", "heed status names the cause.",
	"The operator finds it in the log under the decision id.", "It is in the log under the decision id: heed run --log FILE.",
	", the operator of this proxy says so with crawl = false at its [[host]] in proxy.toml, or for one command with heed run --service ", ", write crawl = false at its [[host]] in proxy.toml, or for this command heed run --service ",
	"the operator of this proxy can change limits.", "in proxy.toml here [limits] has ",
	"The operator of this proxy states the purpose", "heed run --purpose, or proxy.toml here, states the purpose",
	"Where the operator has a contract with the site, licence at its [[host]] names it.", "Where you have a contract with the site, write licence at its [[host]].",
	"The operator of this proxy can raise the limit of open files (ulimit -n, LimitNOFILE=).", "Raise the limit of open files (ulimit -n) before heed run.",
	"The operator of this proxy can allow these with old_tls = true at the [[host]] of the site.", "Allow these with old_tls = true at the [[host]] of the site.",
	renegotiateAdvice, "Allow one with renegotiate = true at the [[host]] of the site,",
	"Where its authority is to be trusted, the operator of this proxy names the file of its certificate in ca_file of [upstream], and heed reload applies it.",
	"Where its authority is to be trusted, write in proxy.toml: [upstream] ca_file = \"FILE\", the file of its certificate, or set SSL_CERT_FILE for heed run.",
	"the operator of this proxy checks that the clock of this machine is right.", "check that the clock of this machine is right.",
	"The operator of this proxy checks that the clock of this machine is right.", "Check that the clock of this machine is right.",
	" The operator of this proxy checks it. A retry can help", " Check it. A retry can help",
	"The operator of this proxy compares upstream_tls", "Compare upstream_tls",
	"; in the settings of this proxy, upstream_tls", "; in proxy.toml here, upstream_tls",
	"and to others as far as its operator allows: access.private_destinations, access.allow_to and access.refuse_to in its settings. A retry will not help while they stay the same.",
	"and to others as far as proxy.toml here allows: [access] private_destinations, allow_to and refuse_to.",
)
