// Package http1 reads and writes the messages of HTTP/1 (RFC 9112), for both sides of the
// proxy. What decides where a message ends is here once, so that the two sides cannot
// disagree.
//
// The package is pure: it opens no connection and starts no goroutine. A Reader reads
// heads and bodies from an io.Reader, a Writer writes them to an io.Writer. A Head has its
// fields as they came; a Message is written in their order and with their names, with the
// values of an http.Header. A message that breaks a rule is a *Fault, which has the status
// of the answer, the field, an RFC 9209 error type and a sentence.
//
// The rules for requests are strict, those for answers mend what can be mended safely:
// see Head.Mended.
//
// reader.go reads heads, head.go parses them, framing.go decides what follows, and body.go
// reads it. message.go writes heads and makes requests and responses of net/http, writer.go
// writes bodies, fault.go lists what can be wrong, and fields.go edits the fields of messages
// that pass through the proxy.
package http1
