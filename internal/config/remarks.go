package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"heed/internal/base/ownfile"
	"heed/internal/config/access"
	"heed/internal/judge/acl"
)

// Remarks returns what is valid in the settings and cannot be meant: entries that never apply,
// files in directories that do not exist, protection that is switched off. It has only what
// is certain, in the order of the file.
func Remarks(c *Config) []Finding {
	all := slices.Concat(remarkGeneral(c), remarkForeign(c), MissingDirectories(c), remarkAccess(c), remarkClients(c), remarkHosts(c), remarkUpstream(c), remarkSigning(c))
	slices.SortStableFunc(all, func(a, b Finding) int { return a.Line - b.Line })
	return all
}

// remarkGeneral returns the remarks on single settings.
func remarkGeneral(c *Config) (all []Finding) {
	if c.HTTPS.Mode == "tunnel" {
		all = append(all, c.Find("https.mode", `https.mode = "tunnel" lets every https request pass unjudged; write "intercept", and https = "tunnel" only in the [[host]] that needs it`))
	}
	if !c.Audit.Enabled && c.Audit.File != "" {
		all = append(all, c.Find("audit.file", "audit.file is not used, since audit.enabled = false; remove one of them"))
	}
	if !c.Audit.Enabled && (c.Log.Level == "warn" || c.Log.Level == "error") {
		all = append(all, c.Find("log.level", `decisions are kept nowhere: audit.enabled = false, and log.level = %q leaves them out of the log; enable one of them`, c.Log.Level))
	}
	for _, f := range []struct{ key, file string }{{"fleet.ca_file", c.Fleet.CAFile}, {"fleet.cert", c.Fleet.Cert}} {
		switch {
		case f.file == "":
		case c.Fleet.URL == "":
			all = append(all, c.Find(f.key, "%s is not used, since fleet.url is empty; name the store there", f.key))
		case strings.HasPrefix(c.Fleet.URL, "redis://"):
			all = append(all, c.Find(f.key, "%s is not used, since redis:// is not encrypted; write rediss:// in fleet.url", f.key))
		}
	}
	return all
}

// remarkForeign returns a remark on each file that others can change, the file with the settings
// included. Settings and files that were named are used all the same.
func remarkForeign(c *Config) (all []Finding) {
	files := append(c.ReloadedFiles(), File{Path: c.File}, File{Key: "https.ca_cert", Path: c.HTTPS.CACert}, File{Key: "https.ca_key", Path: c.HTTPS.CAKey})
	for _, f := range files {
		if others := ownfile.Others(f.Path); others != "" {
			all = append(all, c.Find(f.Key, "%s can be changed by %s; let it belong to root, with the group of the user who runs heed (chown root:heed, chmod 640), or to that user", f.Path, others))
		}
	}
	return all
}

// MissingDirectories returns a remark for each file that heed creates in a directory that does not
// exist. Settings with mistakes may have them too.
func MissingDirectories(c *Config) (all []Finding) {
	files := map[string]string{"cache.file": c.Cache.File}
	if c.Audit.Enabled {
		files["audit.file"] = c.Audit.File
	}
	for key, file := range files {
		if file == "" {
			continue
		}
		dir := filepath.Dir(file)
		if info, err := os.Stat(dir); os.IsNotExist(err) || err == nil && !info.IsDir() {
			all = append(all, c.Find(key, "%s: there is no directory %s; create it before heed starts, or name another file", key, dir))
		}
	}
	return all
}

// remarkAccess returns the remarks on [access].
func remarkAccess(c *Config) (all []Finding) {
	for i, text := range c.Access.AllowTo {
		allowed, err := acl.ParseDestination(text)
		for _, refused := range c.Access.RefuseTo {
			if r, bad := acl.ParseDestination(refused); err == nil && bad == nil && r.Covers(allowed) {
				all = append(all, c.FindElement(i, "access.allow_to", "access.allow_to: %q is never allowed, since access.refuse_to has %q; remove one of them", text, refused))
				break
			}
		}
	}
	if c.Access.Users != "" || c.CheckExposure() != nil || onlyLoopback(c) {
		return all
	}
	for i, text := range c.Access.Clients {
		if p, err := netip.ParsePrefix(text); err == nil && p.Bits() == 0 {
			all = append(all, c.FindElement(i, "access.clients", "access.clients: %q lets every machine that reaches heed use it without a password; name your networks, or set access.users", text))
		}
	}
	return all
}

// onlyLoopback reports whether heed listens on loopback addresses only, but for listeners with
// clients of their own.
func onlyLoopback(c *Config) bool {
	without := *c
	without.Access = AccessConfig{}
	return without.CheckExposure() == nil
}

// remarkClients returns a remark for each [[client]] that never matches, or has a setting that has
// no effect.
func remarkClients(c *Config) (all []Finding) {
	entries := c.ACLClients()
	index := acl.NewClientIndex(entries)
	users, _ := access.Open(c.Access.Users, time.Now) // nil: there is no file, or it is a mistake already
	for i := range entries {
		e := &entries[i]
		if len(e.Purpose) > 0 && (c.HTTPS.Mode == "tunnel" || c.HTTPS.Mode == "host-only") {
			all = append(all, c.FindEntry(i, "client.purpose", "client.purpose of %q has no effect on https: https.mode = %q hides what sites state about their pages; write \"intercept\", or remove purpose", e.Name, c.HTTPS.Mode))
		}
		for _, token := range e.AlsoObey {
			if slices.ContainsFunc(c.Clients[i].Agent, func(own string) bool { return strings.EqualFold(own, token) }) {
				all = append(all, c.FindEntry(i, "client.also_obey", "client.also_obey of %q has %q, under which its requests are judged anyway (agent): a group for it counts once, and * where there is none; remove it", e.Name, token))
			}
		}
		name := fmt.Sprintf("client %q never matches", e.Name)
		if e.User != "" && c.Access.Users == "" {
			all = append(all, c.FindEntry(i, "client.user", "%s: no client can log in as %q, since access.users is empty; name a users file there, or recognise the client by from, listener or user_agent", name, e.User))
		}
		if e.User != "" && users != nil && !users.Has(e.User) {
			all = append(all, c.FindEntry(i, "client.user", "%s: access.users (%s) has no user %q; add one: heed config password %s", name, c.Access.Users, e.User, e.User))
		}
		if len(e.From) > 0 && len(c.Access.Clients) > 0 && !slices.ContainsFunc(e.From, func(p netip.Prefix) bool { return overlapsAny(p, c.Access.Clients) }) {
			all = append(all, c.FindEntry(i, "client.from", "%s: access.clients admits none of its addresses; add them there, or remove the entry", name))
		}
		if j := index.Covering(i); j < i {
			all = append(all, c.FindEntry(i, "client.name", "%s: the earlier client %q matches every request that it would; move it above that one, or narrow that one", name, entries[j].Name))
		}
	}
	return all
}

func overlapsAny(p netip.Prefix, networks []string) bool {
	return slices.ContainsFunc(networks, func(text string) bool {
		q, err := netip.ParsePrefix(text)
		return err != nil || p.Overlaps(q)
	})
}

// sharedKeys are the keys of [[host]] of which not the first matching entry alone counts, and
// those that go with another key.
var sharedKeys = []string{"match", "allow", "refuse", "clients", "licence", "reason", "expires", "never_allow", "client_key"}

// singleKeys returns the keys of [[host]] that h sets and of which the first matching entry that
// sets one counts. fields are those of a HostConfig.
func (h *HostConfig) singleKeys(fields []reflect.StructField) (set []string) {
	for _, f := range fields {
		key, v := f.Tag.Get("toml"), reflect.ValueOf(h).Elem().FieldByIndex(f.Index)
		missing := v.IsZero() || isUnset(v) || key == "crawl" && !h.service()
		if !missing && !slices.Contains(sharedKeys, key) {
			set = append(set, key)
		}
	}
	return set
}

// remarkHosts returns the remarks on [[host]]: entries without settings, and settings that never
// apply.
func remarkHosts(c *Config) (all []Finding) {
	never, first, fields := firsts{}, map[string]firsts{}, keyed(reflect.TypeFor[HostConfig]())
	for i := range c.Hosts {
		if c.Hosts[i].NeverAllow {
			never.add(c, i)
		}
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		sets := len(h.Allow)+len(h.Refuse) > 0 || h.Licence != "" || h.NeverAllow
		for _, key := range h.singleKeys(fields) {
			sets = true
			if first[key] == nil {
				first[key] = firsts{}
			}
			if by := first[key].covering(c, h); by != nil {
				all = append(all, c.FindEntry(i, "host."+key, "host.%s never applies to %s: an earlier [[host]], of %s, sets it for these hosts; move this entry above that one, or narrow that one",
					key, strings.Join(h.Match, ", "), strings.Join(by.Match, ", ")))
			}
			first[key].add(c, i)
		}
		if by := never.covering(c, h); by != nil {
			for key, set := range map[string]bool{"host.allow": len(h.Allow) > 0, "host.crawl": h.service()} {
				if set {
					all = append(all, c.FindEntry(i, key, "%s never applies to %s: never_allow in the [[host]] of %s forbids it; remove one of them", key, strings.Join(h.Match, ", "), strings.Join(by.Match, ", ")))
				}
			}
		}
		if !sets {
			all = append(all, c.FindEntry(i, "host.match", "this [[host]] sets nothing for %s; add a setting, or remove it", strings.Join(h.Match, ", ")))
		}
	}
	return all
}

// remarkUpstream returns a remark for each setting that takes Via off requests which go through
// another proxy. A loop through that proxy cannot be found then: what comes back does not
// name heed, and does not come from or go to an address of its own.
func remarkUpstream(c *Config) (all []Finding) {
	const text = "%s: requests go through an upstream proxy without Via, and heed cannot recognise one that comes back; write via = true, or make sure that the proxy never forwards to this heed"
	if !c.Upstream.Via && c.Upstream.Proxy != "" {
		all = append(all, c.Find("upstream.via", text, "upstream.via = false"))
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		proxied := h.Upstream != "" && h.Upstream != Direct
		switch {
		case h.Via != nil && !*h.Via && (proxied || h.Upstream == "" && c.Upstream.Proxy != ""):
			all = append(all, c.FindEntry(i, "host.via", text, "host.via = false"))
		case h.Via == nil && !c.Upstream.Via && proxied:
			all = append(all, c.FindEntry(i, "host.upstream", text, "host.upstream with upstream.via = false"))
		}
	}
	return all
}

// firsts has the first [[host]] with each pattern, by its key, of those that set something.
// A host matches few patterns, so that looking costs nothing.
type firsts map[string]int

// add adds entry i, which comes after those that were added.
func (f firsts) add(c *Config, i int) {
	for _, text := range c.Hosts[i].Match {
		p, err := acl.ParseHostPattern(text)
		if _, known := f[p.Key()]; err == nil && !known {
			f[p.Key()] = i
		}
	}
}

// covering returns an entry of f, if those in f match every host that h matches; else nil.
func (f firsts) covering(c *Config, h *HostConfig) (by *HostConfig) {
	for _, text := range h.Match {
		p, err := acl.ParseHostPattern(text)
		if err != nil {
			return nil
		}
		best := len(c.Hosts)
		for _, key := range p.CoveredBy() {
			if i, known := f[key]; known {
				best = min(best, i)
			}
		}
		if best == len(c.Hosts) {
			return nil
		}
		by = &c.Hosts[best]
	}
	return by
}

// remarkSigning returns the remarks on signatures: keys that several robots share, so that sites
// cannot tell them apart (draft-ietf-webbotauth-httpsig-protocol-01, Key Reuse Considered
// Harmful).
func remarkSigning(c *Config) (all []Finding) {
	keys := map[string]string{}
	if c.Robots.Sign != nil {
		keys[c.Robots.Sign.Key] = "heed itself ([robots])"
	}
	robot := func(cl *ClientConfig) string { return strings.Join(cl.Agent, " ") + "\n" + cl.SendUserAgent }
	for i := range c.Clients {
		cl := &c.Clients[i]
		if cl.Sign == nil {
			continue
		}
		same := slices.ContainsFunc(c.Clients[:i], func(other ClientConfig) bool {
			return other.Sign != nil && *other.Sign == *cl.Sign && robot(&other) == robot(cl)
		})
		if by, shared := keys[cl.Sign.Key]; shared && !same {
			all = append(all, c.FindEntry(i, "client.sign", "client %q is signed with the key of %s, so that sites take both for one robot; make another key with heed identity new", cl.Name, by))
			continue
		}
		keys[cl.Sign.Key] = "client " + cl.Name
	}
	return all
}
