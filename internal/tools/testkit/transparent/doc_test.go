// Package transparent holds the transparency suite: what a client gets through
// a running heed is what it would have got without one.
//
// Each shape is one kind of request with its answer. It is asked twice of the
// same site, once directly with the Via that heed adds and once through the
// real heed, by each of the five ways. Status, reason phrase, interim answers,
// fields, body, trailers and the manner of the end must be the same; so must
// be what the site saw of the request. What a proxy has to change (RFC 9110
// §7.6) is taken off the direct side by one function, mustChange, and nowhere
// else; the few shapes where net/http differs say so themselves.
//
// Three sites answer: nginx, a net/http server with HTTP/2, and a script that
// speaks in octets what no decent server says.
package transparent
