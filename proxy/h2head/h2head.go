// Package h2head reads the requests of a client's HTTP/2 connection before net/http's
// server does.
//
// net/http resets a stream, or answers it with a text of its own, when its parser
// rejects the request: for a ":path" with a "%" that begins no escape, for a field that
// HTTP/2 forbids, for a head that is too large. No handler is called, so that nothing
// can be recorded. It also keeps unfinished heads as long as the connection lasts, beyond
// all of its limits (TestNetHTTP_KeepsAnUnfinishedHead).
//
// A Reader sits between the connection and net/http. It passes every frame on
// unchanged, except header blocks. These it decodes, checks, and encodes again: HPACK
// has a state, and only a block that was encoded here is read by net/http as it was
// read here. A request that net/http would reject becomes one that it hands to the
// handler, with a Note that contains what was received and what is wrong with it; where
// RFC 9113 §8.1.1 requires it, and for a stream above the limit (RFC 9113 §5.1.2),
// net/http resets the stream instead, and the request is reported; maxLost of these end the
// connection, and so do maxBack times Limit.Streams requests that the client takes back. A
// header block that cannot be decoded is never passed on. In its place goes a frame that
// makes net/http end the connection with the error that RFC 9113 requires.
//
// reader.go reads frames, block.go header blocks, request.go checks a request and
// makes its Note, and streams.go counts streams.
package h2head
