package http1

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Fault is a message that breaks a rule of HTTP/1. Errors of the connection, such as a
// timeout or io.EOF before the first octet of a head, are not Faults.
type Fault struct {
	Kind   Kind
	Answer bool   // the message is an answer; false: a request
	Status int    // of the answer to the client: 4xx or 5xx for a request, 502 for a site's answer
	Type   string // RFC 9209 §2.3
	Field  string // name of the field as it came, at most maxShown octets; empty: no field
}

// Kind is what is wrong with a message.
type Kind uint8

// The kinds of Fault. The comments name what is wrong.
const (
	BadRequestLine     Kind = iota + 1 // not method, target and version
	BadMethod                          // not a token
	BadTarget                          // contains a blank or a control character
	NoURL                              // a target that net/url cannot parse
	BadVersion                         // not HTTP/ and two digits
	UnknownVersion                     // a version that is not HTTP/1
	Preface                            // HTTP/2 begins
	NotHTTP                            // an answer begins without a status line
	BadStatus                          // not a number from 100 to 999
	NoHost                             // HTTP/1.1 without Host
	ManyHosts                          // more than one Host
	BadHost                            // no host name
	BadExpect                          // not 100-continue
	NoColon                            // a line that is no field
	NoName                             // a field without a name
	BadName                            // a name that is not a token
	BadValue                           // a control character
	BlankBeforeColon                   // between name and colon
	Fold                               // a value over several lines
	FoldFirst                          // a blank before the first field
	BadLength                          // Content-Length is no number
	ManyLengths                        // several Content-Length
	LengthTooLarge                     // more than 63 bits
	LengthBesideCoding                 // Content-Length beside Transfer-Encoding
	OldCoding                          // Transfer-Encoding in HTTP/1.0
	UnknownCoding                      // a Transfer-Encoding other than chunked
	BadTrailerName                     // Trailer names a field of the framing
	HeadTooLarge                       // more octets than Limit.Head
	ManyFields                         // more lines than maxFields
	HeadTruncated                      // the connection ended within the head
	BodyTruncated                      // the connection ended within the body
	BadChunkSize                       // not a hexadecimal number
	BadChunkLine                       // a bare line feed or carriage return
	BadChunkEnd                        // no line end after a chunk
	ChunkTooWordy                      // extensions that are too long
	BadTrailer                         // a trailer that is no field
	TrailerTooLarge                    // a trailer section that is too long
	kinds
)

// RFC 9209 error types of Faults.
const (
	typeRequest    = "http_request_error"
	typeProtocol   = "http_protocol_error"
	typeCoding     = "http_response_transfer_coding"
	typeIncomplete = "http_response_incomplete"
	typeSection    = "http_response_header_section_size"
	typeTrailer    = "http_response_trailer_section_size"
)

// faults has for each Kind the status of a request with it, the error type of an answer
// with it (empty: typeProtocol), and what is said of either: a clause that follows "the
// request" or "the answer". A "%" is replaced by the field's name.
var faults = [kinds]struct {
	status       int
	answer, text string
}{
	BadRequestLine:     {text: " does not begin with a method, a target and a version"},
	BadMethod:          {text: " does not begin with a method: it contains an octet that no method has"},
	BadTarget:          {text: " target contains a blank or a control character"},
	NoURL:              {text: " target is neither a URL nor a path"},
	BadVersion:         {text: " line does not end with a version such as HTTP/1.1"},
	UnknownVersion:     {status: http.StatusHTTPVersionNotSupported, text: "the HTTP version is not known"},
	Preface:            {text: "HTTP/2 is spoken inside TLS only"},
	NotHTTP:            {text: " does not begin with an HTTP status line"},
	BadStatus:          {text: " has a status that is not a number from 100 to 999"},
	NoHost:             {text: " has no Host field"},
	ManyHosts:          {text: " has more than one Host field"},
	BadHost:            {text: " has a Host field that names no host"},
	BadExpect:          {status: http.StatusExpectationFailed, text: "the expectation cannot be met"},
	NoColon:            {text: " has a line without a colon among its fields"},
	NoName:             {text: " has a field without a name"},
	BadName:            {text: " has a field name with an octet that no name has: %"},
	BadValue:           {text: " has a control character in the field %"},
	BlankBeforeColon:   {text: " has a blank before the colon of the field %"},
	Fold:               {text: " has the field % over several lines"},
	FoldFirst:          {text: " has a blank before its first field"},
	BadLength:          {text: " has a Content-Length that is not a number of digits"},
	ManyLengths:        {text: " has several Content-Length fields"},
	LengthTooLarge:     {status: http.StatusRequestEntityTooLarge, text: " has a Content-Length that is too large"},
	LengthBesideCoding: {text: " has both Content-Length and Transfer-Encoding"},
	OldCoding:          {answer: typeCoding, text: " has a Transfer-Encoding in HTTP/1.0"},
	UnknownCoding:      {status: http.StatusNotImplemented, answer: typeCoding, text: "the transfer coding is not known"},
	BadTrailerName:     {text: " announces a trailer that may not be one"},
	HeadTooLarge:       {status: http.StatusRequestHeaderFieldsTooLarge, answer: typeSection, text: " head is too large"},
	ManyFields:         {status: http.StatusRequestHeaderFieldsTooLarge, answer: typeSection, text: " has too many fields"},
	HeadTruncated:      {answer: typeIncomplete, text: " ended within its head"},
	BodyTruncated:      {answer: typeIncomplete, text: " ended within its body"},
	BadChunkSize:       {answer: typeCoding, text: " has a chunk without a valid size"},
	BadChunkLine:       {answer: typeCoding, text: " has a chunk line that does not end with CR LF"},
	BadChunkEnd:        {answer: typeCoding, text: " has a chunk that is longer than its size"},
	ChunkTooWordy:      {answer: typeCoding, text: " has chunk extensions that are too long"},
	BadTrailer:         {text: " has a trailer that is not a valid field"},
	TrailerTooLarge:    {status: http.StatusRequestHeaderFieldsTooLarge, answer: typeTrailer, text: " has a trailer section that is too large"},
}

// maxShown bounds the octets of a field's name in a Fault.
const maxShown = 64

// newFault returns a Fault of a request or an answer. field may be empty.
func newFault(kind Kind, answer bool, field string) *Fault {
	f := &Fault{Kind: kind, Answer: answer, Status: faults[kind].status, Type: typeRequest}
	if field != "" {
		f.Field = strings.Clone(field[:min(len(field), maxShown)])
	}
	switch {
	case answer:
		f.Status, f.Type = http.StatusBadGateway, cmp.Or(faults[kind].answer, typeProtocol)
	case f.Status == 0:
		f.Status = http.StatusBadRequest
	}
	return f
}

// Error implements error. It returns a sentence without a full stop for a client. It
// contains nothing of the message but the name of a field, with escapes.
func (f *Fault) Error() string {
	if f.Kind == 0 || f.Kind >= kinds {
		return "the message cannot be read"
	}
	text := faults[f.Kind].text
	if text[len(text)-1] == '%' || f.Kind == Fold {
		text = strings.Replace(text, "%", strconv.QuoteToASCII(f.Field), 1)
	}
	switch {
	case text[0] != ' ':
		return text
	case f.Answer:
		return "the answer" + text
	}
	return "the request" + text
}

// Unwrap returns io.ErrUnexpectedEOF for a message that the connection's end cut off.
func (f *Fault) Unwrap() error {
	if f.Kind == HeadTruncated || f.Kind == BodyTruncated {
		return io.ErrUnexpectedEOF
	}
	return nil
}
