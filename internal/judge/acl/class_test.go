package acl

import (
	"net/netip"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// classes returns a check of the class of each of the addresses.
func classes(t *testing.T) func(want Class, addresses string) {
	return func(want Class, addresses string) {
		t.Helper()
		for a := range strings.FieldsSeq(addresses) {
			must.Equal(t, Classify(netip.MustParseAddr(a)), want, a)
		}
	}
}

func TestClassify_IPv4Addresses(t *testing.T) {
	are := classes(t)
	are(Public, `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
		169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0
		192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0
		203.0.112.255 203.0.114.0 223.255.255.255 168.63.129.15 168.63.129.17`)
	are(Private, `10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255`)
	are(CGNAT, `100.64.0.0 100.127.255.255 100.100.100.199 100.100.100.201`)
	are(Loopback, `127.0.0.0 127.0.0.1 127.255.255.255`)
	are(LinkLocal, `169.254.0.0 169.254.169.253 169.254.169.255 169.254.255.255`)
	are(Metadata, `169.254.169.254 169.254.170.2 169.254.170.23 169.254.0.23 169.254.42.42 100.100.100.200 168.63.129.16 192.0.0.192`)
	are(Unspecified, `0.0.0.0 0.0.0.1 0.255.255.255`)
	are(Multicast, `224.0.0.0 239.255.255.255`)
	are(Broadcast, `255.255.255.255`)
	are(Benchmark, `198.18.0.0 198.19.255.255`)
	are(Reserved, `192.0.0.0 192.0.0.191 192.0.0.255 192.88.99.0 192.88.99.255 240.0.0.0 255.255.255.254`)
	are(Documentation, `192.0.2.0 192.0.2.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255`)
}

func TestClassify_IPv6Addresses(t *testing.T) {
	are := classes(t)
	are(Public, `2000:: 2606:4700::1111 2001:200:: 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9::
		3ffe:ffff::1 3fff:1000:: 3fff:ffff:: 2003::`)
	are(UniqueLocal, `fc00:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fd00:ec2::253 fd00:ec2::255`)
	are(SiteLocal, `fec0:: feff::1`)
	are(Benchmark, `2001:2:: 2001:2:0:ffff::1`)
	are(LinkLocal, `fe80:: fe80::1%eth0 febf:ffff::1 fe80::a9fe:a9fd`)
	are(Loopback, `::1`)
	are(Unspecified, `::`)
	are(Multicast, `ff00:: ff02::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff`)
	are(Metadata, `fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 fe80::a9fe:a9fe fe80::a9fe:a9fe%eth0`)
	are(Documentation, `2001:db8:: 2001:db8:ffff::1 3fff:: 3fff:fff:ffff::1`)
	are(Reserved, `::2 1:: 100:: 100::1 1fff:ffff::1 4000:: 5f00:: fbff::1 fe00:: fe7f:ffff::1
		2001:1::1 2001:2:1:: 2001:20:: 2001:1ff:ffff::1`)
}

// An address that carries another is as public as the less public of the two.
func TestClassify_AddressesThatCarryAnother(t *testing.T) {
	is := func(address string, want Class) {
		t.Helper()
		must.Equal(t, Classify(netip.MustParseAddr(address)), want, address)
	}
	is("::ffff:127.0.0.1", Loopback)
	is("::ffff:169.254.169.254", Metadata)
	is("::ffff:8.8.8.8", Public)
	is("::ffff:0:10.0.0.1", Private) // RFC 2765
	is("::10.0.0.1", Private)        // RFC 4291 2.5.5.1
	is("::8.8.8.8", Reserved)        // not routed
	is("64:ff9b::8.8.8.8", Public)   // RFC 6052
	is("64:ff9b::10.0.0.1", Private) //
	is("64:ff9b::169.254.169.254", Metadata)
	is("64:ff9b::1:127.0.0.1", Reserved) // just outside
	is("64:ff9b:1::8.8.8.8", Private)    // RFC 8215
	is("64:ff9b:1::127.0.0.1", Loopback)
	is("64:ff9b:2::127.0.0.1", Reserved) // just outside
	is("2002:808:808::1", Public)        // RFC 3056: 8.8.8.8
	is("2002:7f00:1::1", Loopback)       // 127.0.0.1
	is("2002:a9fe:a9fe::", Metadata)
	is("2003:7f00:1::1", Public) // just outside
	// RFC 5214, with both values of the universal bit.
	is("2606:4700::5efe:10.0.0.1", Private)
	is("2606:4700::200:5efe:169.254.169.254", Metadata)
	is("2606:4700::200:5efe:8.8.8.8", Public)
	is("fd00::5efe:8.8.8.8", UniqueLocal)
	is("2606:4700::300:5efe:10.0.0.1", Public) // just outside
	// RFC 4380: server 8.8.8.8, client 8.8.4.4, then either of them private.
	is("2001:0:808:808:0:0:f7f7:fbfb", Public)
	is("2001:0:808:808:0:0:f5ff:fffe", Private)
	is("2001:0:a00:1:0:0:f7f7:fbfb", Private)
	is("2001:0:808:808:0:0:80ff:fffe", Loopback)
}

func TestClassify_AnInvalidAddressHasTheLowestClass(t *testing.T) {
	must.Equal(t, Classify(netip.Addr{}), Invalid, "no address")
	for c := Invalid; c < Public; c++ {
		must.True(t, c.String() != (c+1).String() && c < Public, "%d and %d are both %s", c, c+1, c)
	}
	must.True(t, Public.String() == "public" && Class(99).String() == "invalid", "%s, %s", Public, Class(99))
}

// One organisation's addresses are equals: a redirect may lead from one form to
// another.
func TestClass_PrivateAddressesAreEqualInEveryForm(t *testing.T) {
	for _, a := range []Class{Private, UniqueLocal, SiteLocal} {
		for _, b := range []Class{Private, UniqueLocal, SiteLocal} {
			must.True(t, !a.LessPublic(b), "%s is less public than %s", a, b)
		}
		must.True(t, a.LessPublic(CGNAT) && Loopback.LessPublic(a) && Metadata.LessPublic(a), "%s is out of order", a)
	}
}
