package config

import (
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_PrivateDestinationsFollowTheListener(t *testing.T) {
	for _, c := range []struct {
		listen, mode string
		want         bool
	}{
		{"127.0.0.1:3128", "auto", true}, {"localhost:3128", "auto", true}, {"[::1]:0", "auto", true}, {"[::ffff:127.0.0.1]:0", "auto", true},
		{"0.0.0.0:3128", "auto", false}, {":3128", "auto", false}, {"192.0.2.1:3128", "auto", false},
		{"127.0.0.1:3128", "refuse", false}, {"0.0.0.0:3128", "allow", true},
	} {
		d := (&Config{Listen: Addresses{c.listen}, Access: AccessConfig{PrivateDestinations: c.mode}}).Destinations()
		must.Equal(t, d.Private, c.want, "%s on %s", c.mode, c.listen)
	}
}
