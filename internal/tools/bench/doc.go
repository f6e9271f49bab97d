// Command bench measures what a request costs in heed and in other proxies, side
// by side on this machine.
//
//	go run ./internal/tools/bench                                    # everything
//	go run ./internal/tools/bench --cases plain-1k,tls-new --rounds 20
//	go run ./internal/tools/bench --json out.json --svg out.svg
//
// It starts nginx as the site, one load generator in a process of its own, and the
// contenders: heed, built from this checkout; heed-bare, the same without record
// and log; heed-purpose, heed for clients with a purpose; Squid with ssl-bump;
// goproxy (github.com/elazarl/goproxy) as it is shipped and with the settings that its documentation recommends; and
// httputil.ReverseProxy as the least that a forward proxy in Go can be; and a relay, which only
// copies octets between a client and the site: the floor of them all. In the cases with
// pages, which request every URL once, as a crawler does, two more do heed's job: Squid
// with an external ACL helper, and mitmproxy with an addon, both of which judge by
// robots.txt with python3-protego and write an access log. For each
// case all contenders run at the same time, and each in turn gets a short slice of
// load while the others are idle; the order changes with every round. A cost is the
// CPU time of the contender's process and its children, from /proc, until the work
// of the slice is done, divided by the number of requests. A ratio is the median
// over the rounds of heed's cost by the other's cost in the same round, so that a
// machine that changes its speed changes both.
//
// Every answer is compared with the octets that the site serves; a wrong one is
// counted, and makes the command exit with status 1.
//
// Needed are nginx and a Squid with OpenSSL. Debian's package squid lacks it, and
// squid-openssl cannot be installed beside it, but unpacked:
//
//	(cd .build && apt-get download squid-openssl && dpkg -x squid-openssl_*.deb squid)
//
// squid-robots and mitmproxy-robots are Debian's packages squid, mitmproxy and
// python3-protego.
//
// # Two commits
//
//	git worktree add ../base COMMIT
//	(cd ../base && go build -o ../heed-base .)
//	go run ./internal/tools/bench --against ../heed-base --contenders heed,against
//
// The ratio is heed's cost by that of the older binary. Twelve rounds of 1.5 s find a
// difference of about three per cent on an idle machine; the columns of the quartiles
// show what a run could find. A binary is built with a profile if it was built with
// -pgo; heed and the contenders in Go are built with internal/tools/bench/cpu.pgo (--pgo off:
// they are not). The binary of --against is measured as it is.
//
// # The profile for builds
//
//	go run ./internal/tools/bench --profile internal/tools/bench/cpu.pgo
//
// makes a CPU profile of heed under the loads of the cases plain-1k, tls-h1 and
// tls-new, 30 s each. heed itself has no port or flag for that: the profiled program
// is internal/tools/bench/profiled, which is heed's command with a profile around it.
package main
