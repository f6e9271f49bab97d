// Package head reads the requests of a client's HTTP/1 connection before net/http
// does. It finds out where each head begins and ends, and passes the octets on.
//
// A Reader does three things that net/http leaves no place for. A head reaches
// net/http only when it is complete, so that the octets of unfinished heads can be
// bounded. A target that net/http's parser rejects for a "%" that begins no escape
// is replaced by its escaped spelling, and the handler gets the octets. And of a
// request that net/http refuses without calling the handler, Seen returns what could
// be read.
//
// net/http remains the only judge of a request and of its framing. A Reader follows
// the framing of a body only to find the next head. When it is in doubt it passes the
// rest of the connection on unchanged: a request there is served as usual, and
// refused by net/http when its target is one of those above.
//
// reader.go reads heads, body.go what follows them, seen.go what a request contains that
// net/http refuses.
package head
