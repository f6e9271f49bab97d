package proxy

import "heed/rules"

// mark is the parameter of Proxy-Status that names x's decision, so that an
// answer can be found in the record; empty unless the settings want it.
func (x *exchange) mark() string {
	if x.settings == nil || !x.settings.Mark {
		return ""
	}
	return `; decision="` + x.entry.ID.String() + `"`
}

// remark returns what Proxy-Status says of heed on an answer that is not its
// own; empty when there is nothing to say.
func (x *exchange) remark() string {
	if x.entry.Decision.Verdict == rules.WouldRefuse {
		return x.wouldRefuse() + x.mark()
	}
	if mark := x.mark(); mark != "" {
		return x.proxy.statusName + mark
	}
	return ""
}

// established opens a tunnel that heed does not look into.
func (x *exchange) established() string {
	if x.mark() == "" {
		return established
	}
	return "HTTP/1.1 200 Connection established\r\nProxy-Status: " + x.remark() + "\r\n\r\n"
}
