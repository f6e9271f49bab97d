package fleet

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Default ports.
const (
	serverPort   = "6379"
	sentinelPort = "26379"
)

const example = `write "redis://host:6379", with rediss:// for TLS`

// CheckURL returns what is wrong with the URL of a store, without its password; nil when it can be opened.
//
//	redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]           one server
//	redis://[USER[:PASSWORD]@]HOST[:PORT],HOST[:PORT]... a Cluster; or one HOST and ?cluster=true
//	redis://[USER[:PASSWORD]@]HOST[:PORT],.../DB?master=NAME
//
// In the last form the hosts are Sentinels, whose own user and password are in
// sentinel_user and sentinel_password. With rediss:// all connections are TLS.
func CheckURL(text string) error {
	_, err := parseURL(&Options{URL: text})
	return err
}

// parseURL reads the forms of CheckURL. Connections with TLS have the roots and the certificate
// of options.
func parseURL(options *Options) (*redis.UniversalOptions, error) {
	scheme, rest, ok := strings.Cut(options.URL, "://")
	if !ok || scheme != "redis" && scheme != "rediss" {
		return nil, errors.New("the store's URL does not begin with redis:// or rediss://; " + example)
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	user, hosts := "", rest[:end]
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		user, hosts = hosts[:at+1], hosts[at+1:]
	}
	// net/url accepts one host only, so it parses the URL with another host.
	u, err := url.Parse("redis://" + user + "host" + rest[end:])
	if err != nil {
		return nil, errors.New("the store's URL has a character that must be written as %XX, perhaps in the password")
	}
	// Protocol 2 has no push messages. With protocol 3 the client reads them without a
	// deadline, so that a subscription could not be closed.
	o := &redis.UniversalOptions{Username: u.User.Username(), Protocol: 2}
	o.Password, _ = u.User.Password()
	if scheme == "rediss" {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: options.RootCAs}
		if c := options.Certificate; c != nil {
			o.TLSConfig.Certificates = []tls.Certificate{*c}
		}
	}
	if err := readQuery(o, u.Query()); err != nil {
		return nil, err
	}
	if o.Addrs, err = addresses(hosts, o.MasterName != ""); err != nil {
		return nil, err
	}
	if len(o.Addrs) > 1 && o.MasterName == "" {
		o.IsClusterMode = true
	}
	return o, readDB(o, u)
}

func readQuery(o *redis.UniversalOptions, q url.Values) error {
	for name := range q {
		value := q.Get(name)
		switch name {
		case "master":
			o.MasterName = value
		case "sentinel_user":
			o.SentinelUsername = value
		case "sentinel_password":
			o.SentinelPassword = value
		case "cluster":
			if value != "true" {
				return errors.New("the store's URL says cluster, but not cluster=true; leave it out or write that")
			}
			o.IsClusterMode = true
		default:
			return fmt.Errorf("the store's URL has the unknown parameter %.40q; there are master, sentinel_user, sentinel_password and cluster", name)
		}
	}
	if o.IsClusterMode && o.MasterName != "" {
		return errors.New("the store's URL sets both master (Sentinel) and cluster (Cluster); leave one out")
	}
	return nil
}

func addresses(hosts string, sentinel bool) ([]string, error) {
	port := serverPort
	if sentinel {
		port = sentinelPort
	}
	var all []string
	for host := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse("redis://" + host)
		if err != nil || u.Hostname() == "" || u.User != nil {
			return nil, fmt.Errorf("the store's URL has no host in %.60q; %s", host, example)
		}
		if u.Port() == "" {
			host = net.JoinHostPort(u.Hostname(), port)
		}
		all = append(all, host)
	}
	return all, nil
}

func readDB(o *redis.UniversalOptions, u *url.URL) error {
	db := strings.Trim(u.Path, "/")
	if db == "" {
		return nil
	}
	n, err := strconv.ParseUint(db, 10, 16)
	switch {
	case err != nil, u.Fragment != "":
		return fmt.Errorf("the store's URL ends in %.40q, which is not the number of a database; %s", db, example)
	case o.IsClusterMode && n != 0:
		return errors.New("the store's URL names a database other than 0, which a Cluster does not have; leave it out")
	}
	o.DB = int(n)
	return nil
}
