package command

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"heed/internal/ca"
	"heed/internal/fleet"
	"heed/rules"
)

// openFleet opens the store that heeds share; nil when there is none.
func openFleet(cfg *Config, log *slog.Logger) (*fleet.Store, error) {
	if cfg.Fleet.URL == "" {
		return nil, nil
	}
	var roots *x509.CertPool // the system's
	if cfg.Fleet.CAFile != "" {
		var err error
		if roots, err = ca.SystemPool(cfg.Fleet.CAFile); err != nil {
			return nil, fmt.Errorf("fleet.ca_file: %w", err)
		}
	}
	return fleet.Open(fleet.Options{URL: cfg.Fleet.URL, RootCAs: roots, Log: log})
}

// checkFleet accepts "" and the URL of a store.
func checkFleet(url string) error {
	if url == "" {
		return nil
	}
	return fleet.CheckURL(url)
}

// shared is what the fleet knows of sites that are reached in the way of the
// settings. Runs that go another way, or trust other CAs, keep what they find
// to themselves. The passwords of upstream proxies do not count: not even what
// is made of them belongs into the store.
func (s *egresses) shared() (*fleet.Policies, error) {
	plain := egresses{cfg: s.cfg}
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
	if h.Outages > 0 {
		text += fmt.Sprintf("; found away %s, %s not answered", plural(h.Outages, "time"), plural(h.Missed, "question"))
	}
	return text
}
