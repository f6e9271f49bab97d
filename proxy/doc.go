// Package proxy turns a request into a Decision and acts on it.
//
// A connection takes this way: listener, outer http.Server, front (the handler
// in front.go), goproxy, hook (hook.go), decide (decide.go), forward
// (forward.go), the site. A CONNECT comes back to the same front through an
// inner http.Server that speaks HTTP/1.1 and HTTP/2 inside our own TLS
// (connect.go), so that there is one decision path and not two.
//
// What the package needs from others it states as interfaces: Policies,
// Recorder, Leaves.
//
// Outside packages: github.com/elazarl/goproxy, in hook.go only;
// github.com/dunglas/httpsfv for structured fields.
package proxy
