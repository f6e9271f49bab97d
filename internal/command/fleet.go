package command

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"heed/internal/ca"
	"heed/internal/fleet"
	"heed/rules"
)

// openFleet opens the store that heeds share; nil when there is none.
func openFleet(cfg *Config, environ []string, log *slog.Logger) (*fleet.Store, error) {
	url, err := fleetURL(cfg, environ)
	if url == "" || err != nil {
		return nil, err
	}
	var roots *x509.CertPool // the system's
	if cfg.Fleet.CAFile != "" {
		if roots, err = ca.SystemPool(cfg.Fleet.CAFile); err != nil {
			return nil, fmt.Errorf("fleet.ca_file: %w", err)
		}
	}
	return fleet.Open(fleet.Options{URL: url, RootCAs: roots, Log: log})
}

// fleetURL is where the store is; empty when there is none.
func fleetURL(cfg *Config, environ []string) (string, error) {
	url, err := revealed(cfg.Fleet.URL, environ)
	if err == nil && url != "" {
		err = fleet.CheckURL(url)
	}
	if err != nil {
		return "", fmt.Errorf("fleet.url: %w", err)
	}
	return url, nil
}

// checkFleet accepts "", the URL of a store and where one stands.
func checkFleet(url string) error {
	if url == "" {
		return nil
	}
	if isReference(url) {
		return checkReference(url)
	}
	return fleet.CheckURL(url)
}

// shared is what the fleet knows of sites that are reached in the way of the
// settings. Runs that go another way, or trust other CAs, keep what they find
// to themselves. The passwords of upstream proxies do not count: not even what
// is made of them belongs into the store.
func (s *egresses) shared() (*fleet.Policies, error) {
	plain := egresses{cfg: s.cfg, hosts: slices.Clone(s.hosts)}
	for i := range plain.hosts {
		plain.hosts[i].Upstream = redactURL(plain.hosts[i].Upstream)
	}
	if p := s.proxy; p != nil {
		plain.proxy = &upstreamProxy{All: redactURL(p.All), HTTP: redactURL(p.HTTP), HTTPS: redactURL(p.HTTPS), NoProxy: p.NoProxy}
	}
	space, err := plain.identity(way{})
	if err != nil {
		return nil, err
	}
	if p := s.cfg.profile(); p != rules.Standard {
		space += "-" + p.String() // heeds that take a denial differently would undo each other's word
	}
	return s.fleet.Policies(space), nil
}

// redactFleet takes the passwords out of the URL of a store.
func redactFleet(url string) string {
	if isReference(url) {
		return url
	}
	url, query, more := strings.Cut(url, "?")
	url = redactURL(url)
	if !more {
		return url
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		if strings.HasPrefix(p, "sentinel_password=") {
			parameters[i] = "sentinel_password=..."
		}
	}
	return url + "?" + strings.Join(parameters, "&")
}

// fleetWords says how the store is and was.
func fleetWords(h *fleet.Health, now time.Time) string {
	text := h.Hosts + ", shared"
	if h.Away {
		text = fmt.Sprintf("%s, away for %v: %s", h.Hosts, now.Sub(h.Since).Round(time.Second), quoted(h.Why))
	}
	switch {
	case h.Heeds > 0 && h.Away:
		text += fmt.Sprintf("; every delay of a site is kept once for each of %s until it is back", plural(uint64(h.Heeds), "heed"))
	case h.Heeds > 0:
		text += "; turns at sites are taken together by " + plural(uint64(h.Heeds), "heed")
	}
	if h.Outages > 0 {
		text += fmt.Sprintf("; found away %s, %s not answered", plural(h.Outages, "time"), plural(h.Missed, "question"))
	}
	return text
}
