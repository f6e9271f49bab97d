package accesslog

import (
	"testing"

	"heed/internal/tools/testkit/must"
)

const stampedEnd = ` [25/Nov/2026:14:05:59 +0000] "GET /a HTTP/1.1" 200 30 "-" "XBot/1.0"`

// A list of addresses in place of the client is no virtual host, however a server writes it,
// and a virtual host is one beside a list too.
func TestCombined_AListOfAddressesIsTheClient(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		"203.0.113.7 - -":                               "|203.0.113.7",
		"203.0.113.7:50221 - -":                         "|203.0.113.7",
		"203.0.113.7, 10.0.0.1 - -":                     "|203.0.113.7",
		"203.0.113.7, 198.51.100.9, 10.0.0.1 - ann lee": "|203.0.113.7",
		"203.0.113.7,10.0.0.1 - -":                      "|203.0.113.7",
		"203.0.113.7 , 10.0.0.1 - -":                    "|203.0.113.7",
		"203.0.113.7 ,10.0.0.1 - -":                     "|203.0.113.7",
		`"203.0.113.7, 10.0.0.1" - -`:                   "|203.0.113.7",
		`"203.0.113.7" - -`:                             "|203.0.113.7",
		"203.0.113.7 10.0.0.1 - -":                      "|203.0.113.7",
		"10.0.0.1 203.0.113.7 - -":                      "|203.0.113.7",
		"10.0.0.1 203.0.113.7, 10.0.0.9 - -":            "|203.0.113.7",
		"10.0.0.1 - -":                                  "|10.0.0.1",
		"10.0.0.1, 192.168.3.4 - -":                     "|10.0.0.1",
		"unknown, 203.0.113.7 - -":                      "|203.0.113.7",
		"-, 10.0.0.1 - -":                               "|10.0.0.1",
		"- 10.0.0.1 - -":                                "|10.0.0.1",
		"unknown 10.0.0.1 - -":                          "|10.0.0.1",
		"2001:db8::7, fd00::1 - -":                      "|2001:db8::7",
		"[2001:db8::7]:50221, 10.0.0.1:80 - -":          "|2001:db8::7",
		"[2001:db8::7]:50221 10.0.0.1 - -":              "|2001:db8::7",
		"::ffff:10.0.0.1, ::ffff:203.0.113.7 - -":       "|::ffff:203.0.113.7",
		"203.0.113.xxx, 10.0.0.1 - -":                   "|203.0.113.xxx",
		"for=203.0.113.7;proto=https, for=10.0.0.1 - -": "|203.0.113.7",
		"by=10.0.0.1;for=203.0.113.7 10.0.0.1 - -":      "|203.0.113.7",
		"_hidden, 203.0.113.7 - -":                      "|203.0.113.7",
		"www.example.org 203.0.113.7 - -":               "www.example.org|203.0.113.7",
		"www.example.org 203.0.113.7, 10.0.0.1 - -":     "www.example.org|203.0.113.7",
		`www.example.org "203.0.113.7, 10.0.0.1" - -`:   "www.example.org|203.0.113.7",
		"www.example.org:443 client.example - -":        "www.example.org:443|client.example",
		"_default_:443 203.0.113.7 - -":                 "_default_:443|203.0.113.7",
		"192.0.2.1:80 203.0.113.7 - -":                  "192.0.2.1:80|203.0.113.7",
		"[2001:db8::1]:8443 203.0.113.7 - -":            "[2001:db8::1]:8443|203.0.113.7",
		"203.0.113.7 ann -":                             "|203.0.113.7",
		"client.example - ann, bob":                     "|client.example",
	} {
		var q Request
		if reason := (&combined{}).parse(head+stampedEnd, &q); reason != "" || q.Host+"|"+q.Client != want || q.UserAgent != "XBot/1.0" {
			t.Errorf("%s: %q, %q, want %s", head, reason, q.Host+"|"+q.Client, want)
		}
	}
}

// In a log with virtual hosts, one that is an address is one too.
func TestDetect_VirtualHostsThatAreAddresses(t *testing.T) {
	t.Parallel()
	byAddress := "192.0.2.1 203.0.113.7 - -" + stampedEnd + "\n"
	for head, want := range map[string]string{byAddress + "www.example.org 203.0.113.8 - -" + stampedEnd + "\n": "192.0.2.1|203.0.113.7", byAddress: "|192.0.2.1"} {
		var q Request
		reason := reading().detectLines(head).parse(byAddress[:len(byAddress)-1], &q)
		must.True(t, reason == "" && q.Host+"|"+q.Client == want, "%s%q, %q, want %s", head, reason, q.Host+"|"+q.Client, want)
	}
}

// The same lists in the fields of other formats, and those that a server before this one saw.
func TestParse_ListsOfAddressesOfOtherFormats(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ format, line, want string }{
		{`$remote_addr [$time_local] "$request" $status "$http_x_forwarded_for"`, `10.0.0.1 [25/Nov/2026:14:05:59 +0000] "GET / HTTP/1.1" 200 "203.0.113.7, 10.0.0.9"`, "203.0.113.7"},
		{`$remote_addr [$time_local] "$request" $status "$http_x_forwarded_for"`, `198.51.100.2 [25/Nov/2026:14:05:59 +0000] "GET / HTTP/1.1" 200 "203.0.113.7"`, "198.51.100.2"},
		{`$http_x_forwarded_for - $remote_user [$time_local] "$request" $status`, `203.0.113.7, 10.0.0.9 - - [25/Nov/2026:14:05:59 +0000] "GET / HTTP/1.1" 200`, "203.0.113.7"},
		{`%{X-Forwarded-For}i %h %l %u %t "%r" %>s`, `- 10.0.0.1 - - [25/Nov/2026:14:05:59 +0000] "GET / HTTP/1.1" 200`, "10.0.0.1"},
		{`"%{X-Forwarded-For}i" %l %u %t "%r" %>s`, `"unknown, 203.0.113.7" - - [25/Nov/2026:14:05:59 +0000] "GET / HTTP/1.1" 200`, "203.0.113.7"},
		{`%{Forwarded}i %t "%r"`, `for="[2001:db8::7]:4711";proto=https [25/Nov/2026:14:05:59 +0000] "GET / HTTP/1.1"`, "2001:db8::7"},
		{"json", `{"time":"2026-11-25T14:05:59Z","remote_addr":"10.0.0.1","http_x_forwarded_for":"203.0.113.7, 10.0.0.9","request":"GET / HTTP/1.1","status":200}`, "203.0.113.7"},
		{"json", `{"time":"2026-11-25T14:05:59Z","client_ip":"203.0.113.7, 10.0.0.9","request":"GET / HTTP/1.1","status":200}`, "203.0.113.7"},
		{"combined", "10.0.0.1 - -" + stampedEnd + ` "203.0.113.7, 10.0.0.9"`, "203.0.113.7"},
		{"combined", "10.0.0.1 - -" + stampedEnd + ` "-"`, "10.0.0.1"},
		{"combined", "198.51.100.2 - -" + stampedEnd + ` "203.0.113.7"`, "198.51.100.2"},
	} {
		p := must.Get(reading().compile(x.format))(t)
		var q Request
		reason := p.parse(x.line, &q)
		must.True(t, reason == "" && q.Client == x.want, "%s: %q, %q, want %s", x.line, reason, q.Client, x.want)
	}
	p := &w3c{}
	var q Request
	p.parse("#Fields: date time c-ip cs-method cs-uri-stem X-Forwarded-For sc-status", &q)
	reason := p.parse("2026-11-25 14:05:59 10.0.0.1 GET / 203.0.113.7,+10.0.0.9 200", &q)
	must.True(t, reason == "" && q.Client == "203.0.113.7", "W3C: %q, %q", reason, q.Client)
}

// A line that ends within quotes was cut off: what is missing is not known to be nothing.
func TestCombined_ALineCutOffIsUnparsed(t *testing.T) {
	t.Parallel()
	const begin = `203.0.113.7 - - [25/Nov/2026:14:05:59 +0000] "GET /a HTTP/1.1" 200 30`
	for line, want := range map[string]string{
		begin:                           "",
		begin + ` "-"`:                  "",
		begin + ` "-" "XBot/1.0"`:       "",
		begin + ` "https://www.exam`:    "cut off in its referrer",
		begin + ` "-" "Mozilla/5.0 (co`: "cut off in its User-Agent",
		begin + ` "-" "`:                "cut off in its User-Agent",
		begin + ` "-" "a \"quoted\" `:   "cut off in its User-Agent",
		begin + ` "-" "ends in \"`:      "cut off in its User-Agent",
	} {
		var q Request
		must.Equal(t, (&combined{}).parse(line, &q), want, line)
	}
	var q Request
	got := reading().detectLines(begin+` "-" "XBot/1.0"`+"\n").parse(begin+` "-"`, &q)
	must.True(t, got == "cut off before its User-Agent", "a line without the User-Agent that others have: %q", got)
}

// reading is a Reader with the names that are known.
func reading() *Reader { return &Reader{names: jsonNames()} }
