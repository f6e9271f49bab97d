package fleet_test

import (
	"strings"
	"testing"

	"heed/internal/pace/fleet"
	"heed/internal/tools/testkit/must"
)

func TestHeed_StoresAreNamedByURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://store.test", "redis://store.test:6380/3", "rediss://user:p%40ss@store.test/", "redis://:pass@[::1]:6379",
		"redis://a.test:1,b.test,c.test:3", "rediss://a.test?cluster=true", "redis://u:p@a.test,b.test:26380/2?master=heeds&sentinel_user=s&sentinel_password=p",
	} {
		must.OK(t, fleet.CheckURL(url), url)
	}
	for url, want := range map[string]string{
		"store.test:6379":                            "does not begin with redis://",
		"http://u:secret@store.test":                 "does not begin with redis://",
		"redis://":                                   "no host",
		"redis://u:secret@":                          "no host",
		"redis://a.test,,b.test":                     "no host",
		"redis://a.test:port":                        "no host",
		"redis://u:secret%zz@a.test":                 "%XX",
		"redis://a.test/one":                         "not the number of a database",
		"redis://a.test,b.test/1":                    "which a Cluster does not have",
		"redis://a.test?db=1":                        `unknown parameter "db"`,
		"redis://a.test?cluster=yes":                 "cluster=true",
		"redis://a.test?cluster=true&master=heeds":   "leave one out",
		"redis://u:secret@x@a.test/1/2?master=heeds": "not the number",
	} {
		err := fleet.CheckURL(url)
		must.True(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "secret"),
			"%s: %v; want %q and no password", url, err, want)
	}
}
