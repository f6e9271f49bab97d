package ca

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

var longName = strings.Repeat(strings.Repeat("a", 40)+".", 5) + "test" // 209 octets

func TestLeafCarriesExactlyOneName(t *testing.T) {
	a := open(t, noon)
	for _, host := range []string{"example.com", "localhost", "xn--bcher-kva.example", "a_b-c.test", longName, "192.0.2.7", "2001:db8::1"} {
		_, c := leaf(t, a, host)
		must.Equal(t, len(c.DNSNames)+len(c.IPAddresses)+len(c.EmailAddresses)+len(c.URIs), 1, "%s: names", host)
		_, err := c.Verify(x509.VerifyOptions{Roots: pool(t, a), DNSName: host, CurrentTime: noon})
		must.OK(t, err, host)
		must.True(t, c.VerifyHostname("www."+host) != nil, "%s: valid for another name too", host)
	}
}

func TestLeafRefusesWhatIsNotCanonical(t *testing.T) {
	a := open(t, noon)
	for _, host := range []string{
		"", "Example.com", "example.com.", "a..b", ".a", "*.example.com", "example.com:443", "[::1]", "::1%eth0",
		"2001:DB8::1", "::ffff:192.0.2.1", "bücher.example", "a b", "a/b", "a\x00b", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a",
	} {
		_, err := a.Leaf(host)
		must.True(t, err != nil, "Leaf(%q) made a certificate", host)
	}
}

func TestRFC5280_LeafSaysWhatItIsForAndWhoMadeIt(t *testing.T) {
	a := open(t, noon)
	_, c := leaf(t, a, "example.com")
	must.True(t, !c.IsCA && c.KeyUsage == x509.KeyUsageDigitalSignature, "not an end certificate for signatures only")
	must.True(t, len(c.ExtKeyUsage) == 1 && c.ExtKeyUsage[0] == x509.ExtKeyUsageServerAuth,
		"extended key usage %v", c.ExtKeyUsage)
	must.Equal(t, string(c.AuthorityKeyId), string(a.chain[0].SubjectKeyId), "authority key identifier is not the CA's subject key identifier")
}

func TestLeavesDifferInKeyAndSerialNumber(t *testing.T) {
	a := open(t, noon)
	seen := map[string]bool{}
	for i := range 8 {
		_, c := leaf(t, a, fmt.Sprintf("site%d.test", i))
		seen[string(c.RawSubjectPublicKeyInfo)] = true
		seen[c.SerialNumber.String()] = true
	}
	must.Equal(t, len(seen), 16, "different keys and serial numbers in 8 leaves")
}

func TestLeafStaysWithinItsAuthoritysTime(t *testing.T) {
	now := noon
	a, err := Open(newDir(t), func() time.Time { return now })
	must.OK(t, err)
	ca := a.chain[0]
	_, c := leaf(t, a, "start.test")
	must.True(t, !c.NotBefore.Before(ca.NotBefore) && !c.NotBefore.After(now.Add(-50*time.Minute)),
		"begins at %v, the CA at %v", c.NotBefore, ca.NotBefore)
	life := c.NotAfter.Sub(c.NotBefore)
	must.True(t, life >= 30*24*time.Hour && life <= 90*24*time.Hour, "lives for %v", life)
	now = a.NotAfter().Add(-time.Hour)
	first, c := leaf(t, a, "end.test")
	must.True(t, c.NotAfter.Equal(a.NotAfter()), "ends at %v, the CA at %v", c.NotAfter, a.NotAfter())
	now = a.NotAfter()
	again, _ := leaf(t, a, "end.test")
	must.True(t, again == first, "a leaf that cannot be bettered was made anew")
	now = now.Add(time.Second)
	_, err = a.Leaf("end.test")
	fails(t, err, "expired on", "heed ca renew")
}

func TestLeafIsMadeAnewWithAThirdOfItsLifeLeft(t *testing.T) {
	now := noon
	a := must.Get(Open(newDir(t), func() time.Time { return now }))(t)
	first, c := leaf(t, a, "example.com")
	third := c.NotAfter.Sub(c.NotBefore) / 3
	now = c.NotAfter.Add(-third)
	again, _ := leaf(t, a, "example.com")
	must.True(t, again == first, "made anew too early")
	now = now.Add(time.Second)
	second, _ := leaf(t, a, "example.com")
	must.True(t, second != first, "not made anew")
}

func TestOneMakingForAllWhoWait(t *testing.T) {
	a := open(t, noon)
	results := make([]*tls.Certificate, 400)
	var clients sync.WaitGroup
	for i := range results {
		clients.Go(func() {
			var err error
			results[i], err = a.Leaf(fmt.Sprintf("site%d.test", i%4))
			must.True(t, err == nil, "%v", err)
		})
	}
	clients.Wait()
	for i, r := range results {
		must.Need(t, r == results[i%4], "made anew for caller %d", i)
	}
}

func TestKnownLeafCostsNoAllocation(t *testing.T) {
	a := open(t, noon)
	leaf(t, a, "example.com")
	must.Equal(t, testing.AllocsPerRun(100, func() { _, _ = a.Leaf("example.com") }), 0, "allocations")
}
