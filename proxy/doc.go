// Package proxy decides on requests and acts on the decision.
//
// The way of a request, in the order in which to read it: a listener (proxy.go,
// conn.go) has its head read (package server, which rests on package http1; h2.go and package
// h2head for HTTP/2) and passed to handle (handler.go), which
// makes an exchange of it, checks that the client may use the proxy, and locates the
// target (request.go; target.go has the targets inside tunnels and those of requests
// that are refused before).
// goproxy then calls the hook (hook.go), which decides (decide.go): identify sets the
// settings and the names, judge answers what package judge needs for its verdict (the policy
// of the site, and what that states of the use of the page), and adopt makes it the decision. For a refusal reply (refuse.go) prepares
// the answer; any other request waits for its turn (pace.go), which may end in a
// refusal as well. The decision is recorded (record.go) before the request is sent to
// the site (forward.go, which has the way to the site and back in its order) and before a refusal
// is sent to the client. Recording may turn it into another refusal: when it fails, or when the
// client has had too many. At the end, finish (handler.go) closes the record.
//
// A CONNECT (connect.go) is intercepted (intercept.go): the requests inside come back
// to handle from a connection of their own, so that there is one way to decide. Or its
// host is judged, and the tunnel is passed on unread (tunnel.go, hello.go).
//
// A connection that the kernel has redirected (transparent.go) joins this way after its
// first octets: TLS as a CONNECT to the name in its hello would, and HTTP as what is inside
// an intercepted tunnel, where each request names its site.
//
// A proxy that asks whether a request of its client may pass (asked.go, over ICAP icap.go and package
// icap) has it handled as one of that client; what is allowed it sends itself.
//
// A Recorder stores decisions, and may refuse them. heed has two, which internal/daemon
// chooses (record.go): the log (internal/audit/log.go) and the record audit.db
// (internal/audit/store/writer.go). What is counted of them (internal/audit/counts) sees them at
// their end.
//
// The rest is one subject a file: body.go the bodies on their way, writer.go the
// answer to the client, unread.go requests that cannot be read, and other protocols,
// credentials.go users and their passwords, and the tunnels of clients that are not
// admitted any more, observe.go verdicts that follow their request, h2.go what net/http
// leaves undone of HTTP/2, subresource.go what a page needs to be shown, ownservice.go
// local services of the client's own run, page.go what the proxy answers for itself, use.go
// what a site states about the use of its pages (package usage asks it), shutdown.go its
// end.
//
// An exchange has three parts, of which each contains the one before and uses nothing of the
// one after: the request, which is what was asked (request.go); the decision on it, with the
// record (decide.go, pace.go, record.go, refuse.go); and the delivery of what was decided, to
// the site and to the client (forward.go, body.go, writer.go). Package judge keeps nothing:
// decision gives it what is known, and takes its verdict. The way leads back at one point:
// goproxy calls the hook, and that what sends the request (forward), with the request alone,
// whose context is the exchange. A decision and a delivery have methods in the file of each
// step, since each step writes the record or the answer, of which there is one. A denial is a
// refusal without a rule. Proxy has methods in the file of each step that begins without an
// exchange, or outlives it: connections, refusals that no handler sees, tunnels whose settings
// change, the end.
//
// What the package needs from others it states as interfaces: Policies, Recorder,
// Leaves, Pacer. The packages below it do not depend on an exchange: upstream reaches
// sites, refusal makes answers, clientpage the pages for clients, limit counts what clients hold,
// catrust remembers which clients accept the CA.
//
// Outside package: github.com/elazarl/goproxy, in hook.go only: it calls the hook that
// decides on each request, and hands CONNECT over.
package proxy
