package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"syscall"
	"time"

	"heed/internal/judge/acl"
	"heed/proxy/http1"
)

// ErrUpgrade is the failure of a site that switches to a protocol the client did
// not ask for.
var ErrUpgrade = errors.New("the answer switches to a protocol that the client did not ask for")

// ErrStatus is the failure of a site whose answer has a status that no site may
// give: one below 100, or 407, which belongs to proxies (RFC 9110 §15.5.8).
var ErrStatus = errors.New("the answer has a status that no site may give")

// upstreamRefused is the error of a tunnel that another proxy would not open, or of a
// plain request that it would not pass on without other credentials.
type upstreamRefused struct{ status int }

// Error implements error.
func (e *upstreamRefused) Error() string {
	return fmt.Sprintf("it answered status %d", e.status)
}

// ProxyError is the failure of the proxy that heed reaches sites through.
type ProxyError struct {
	Proxy string // host:port
	Err   error
}

// Error implements error.
func (e *ProxyError) Error() string { return "the upstream proxy " + e.Proxy + ": " + e.Err.Error() }

// Unwrap returns what failed.
func (e *ProxyError) Unwrap() error { return e.Err }

// overProxyError is the failure of a plain request on a connection to an HTTP proxy, which was
// reached: whether the proxy or the site has failed is not known.
type overProxyError struct {
	proxy string // host:port
	error
}

// Unwrap returns what failed.
func (e *overProxyError) Unwrap() error { return e.error }

// NotReached reports that no site was reached, although the proxy may have been.
func (e *ProxyError) NotReached() bool { return true }

// Stage is how far a request came that was not answered.
type Stage uint8

// The stages.
const (
	NotReached Stage = iota // no connection was made, or none in time
	NoTLS                   // connected, but no TLS connection came about
	NoHTTP                  // what came is not an answer of HTTP
	NoAnswer                // the connection ended before the answer
	TooLate                 // nothing came in time
	Ended                   // heed has ended the connection for what came in TLS
)

// Error is why a request to a site was not answered.
type Error struct {
	Stage Stage
	Err   error
}

// errNoAnswer is the cause of TooLate.
var errNoAnswer = errors.New("no answer has begun in time")

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NotReached reports that no connection to the site was made on which it could answer.
func (e *Error) NotReached() bool { return e.Stage <= NoTLS }

// usable returns the part of err that makes the proxy useless for any site: that it
// cannot be reached or refuses heed's credentials; nil when err is about one site.
func (e *ProxyError) usable() error {
	if refused, ok := errors.AsType[*upstreamRefused](e.Err); ok && refused.status != http.StatusProxyAuthRequired {
		return nil
	}
	return e.Err
}

// Failure is what a client may learn of a failure to reach a site. The error's
// text may hold resolver and network details and is for the record only.
type Failure struct {
	Status  int    // of the answer: 502 or 504
	Type    string // Proxy-Status error type (RFC 9209 §2.3)
	ByProxy bool   // the proxy that heed goes through has failed, and not the site

	Proxy       string // host:port of the proxy that has failed; empty where it is not known
	Over        string // host:port of the HTTP proxy that the answer was to come over; empty: none, or it has failed
	Refused     int    // status of its answer; 0 when it gave none
	Certificate string // what is wrong with a certificate, as words that follow "it"; empty: nothing

	Stage   Stage  // how far the request came; NotReached where that is not known
	Cause   string // why TLS or the answer failed, in words for a client; empty: the Type says all
	Lasting bool   // the same request will fail again
	Again   bool   // the site asks for a renegotiation of TLS
	Offer   bool   // the site may have only TLS that heed does not offer
	Scarce  bool   // heed has as many files open as it may
}

// FailureOf classifies an error of a Transport or of a tunnel's dialler. Any error
// that it does not recognise, nil included, is status 502 and
// "destination_unavailable".
func FailureOf(err error) Failure {
	var f Failure
	if failed, ok := errors.AsType[*ProxyError](err); ok {
		f.ByProxy, f.Proxy = true, failed.Proxy
	}
	if refused, ok := errors.AsType[*upstreamRefused](err); ok {
		f.Refused = refused.status
	}
	if over, ok := errors.AsType[*overProxyError](err); ok {
		f.Over = over.proxy
	}
	if f.Status, f.Type = proxyFailure(err); f.Type != "" {
		f.ByProxy = f.ByProxy || f.Type != "connection_refused" && f.Type != "destination_ip_unroutable" // these are of the site: a SOCKS proxy reports them
		return f
	}
	f.Status, f.Type = siteFailure(err)
	if f.Type == "tls_certificate_error" {
		f.Certificate, f.Lasting = certificateFault(err), true
	}
	f.describe(err)
	return f
}

// describe sets what an error contains of the site's answer, or of how far the request came.
func (f *Failure) describe(err error) {
	var failed *Error
	var fault *http1.Fault
	var lasting interface{ Lasting() bool } // of rules that are not asked for again
	f.Lasting = f.Lasting || errors.As(err, &lasting) && lasting.Lasting()
	for _, odd := range [...]error{ErrUpgrade, ErrStatus} {
		if errors.Is(err, odd) {
			f.Stage, f.Cause, f.Lasting = NoHTTP, odd.Error(), true
			return
		}
	}
	if IsShortOfFiles(err) {
		f.Cause, f.Scarce = "no file descriptor is free", true
		return
	}
	if !errors.As(err, &failed) {
		return
	}
	f.Stage = failed.Stage
	switch {
	case errors.As(err, &fault) && fault.Answer:
		f.Cause, f.Lasting = fault.Error(), fault.Kind != http1.HeadTruncated && fault.Kind != http1.BodyTruncated
	case is[malformed](err):
		f.Cause, f.Lasting = "the answer breaks a rule of HTTP/2", true
	case f.Stage == Ended:
		f.Cause, f.Lasting = tlsCause(failed.Err), true
		if op, ok := errors.AsType[*net.OpError](err); ok && alertCode(op.Err) == alertNoRenegotiation {
			f.Cause, f.Again = "the site asks for a renegotiation of TLS", true
		}
	case f.Stage == NoTLS && f.Certificate == "" && strings.HasPrefix(f.Type, "tls_"):
		f.Cause, f.Lasting, f.Offer = tlsCause(failed.Err), true, !is[tls.RecordHeaderError](err)
		if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" {
			code := alertCode(alert.Err)
			f.Lasting = code != alertInternal && code != alertCanceled
			f.Offer = code == alertHandshake || code == alertVersion || code == alertSecurity
		}
	}
}

// Alerts of TLS (RFC 8446 §6).
const (
	alertHandshake = 40
	alertVersion   = 70
	alertSecurity  = 71
	alertInternal  = 80
	alertCanceled  = 90

	alertNoRenegotiation = 100
)

// alertCode returns the number of an alert, whose type crypto/tls does not export.
func alertCode(err error) uint64 {
	if v := reflect.ValueOf(err); v.Kind() == reflect.Uint8 {
		return v.Uint()
	}
	return 0
}

// tlsCause returns the text of crypto/tls without its name, and without what net adds.
func tlsCause(err error) string {
	text := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok {
		text = op.Err.Error()
		if op.Op == "remote error" {
			text = "the site has ended the handshake: " + strings.TrimPrefix(text, "tls: ")
		}
	}
	text, _, _ = strings.Cut(text, ": x509: ") // what x509 says quotes the certificate
	return strings.TrimPrefix(text, "tls: ")
}

// isLocal reports whether crypto/tls has ended a connection for what came on it.
func isLocal(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "local error"
}

// ofTLS reports whether err, of a handshake, is about TLS and not about the connection.
func ofTLS(err error) bool {
	var netErr net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &op):
		return op.Op == "remote error" || op.Op == "local error"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return !errors.As(err, &netErr) || !netErr.Timeout()
}

// Faults of a certificate that a client may learn, for Failure.Certificate.
const (
	UnknownAuthority = "is signed by an authority that heed does not trust"
	Expired          = "has expired"
	NotYetValid      = "is not valid yet"
	OtherNames       = "is for other names"
	OtherThanPinned  = "is not the one that upstream_tls names"
	Unparsable       = "cannot be parsed"
	Unverifiable     = "cannot be verified"
)

func certificateFault(err error) string {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.Is(err, errPinned):
		return OtherThanPinned
	case isUnparsable(err):
		return Unparsable
	case is[x509.UnknownAuthorityError](err):
		return UnknownAuthority
	case is[x509.HostnameError](err):
		return OtherNames
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired: // of both ends of its time
		if invalid.Cert != nil && time.Now().Before(invalid.Cert.NotBefore) {
			return NotYetValid
		}
		return Expired
	}
	return Unverifiable
}

// proxyFailure classifies what the proxy behind heed has answered; the type is
// empty for all other errors.
func proxyFailure(err error) (status int, errorType string) {
	var refused *upstreamRefused
	var op *net.OpError
	switch {
	case errors.As(err, &refused):
		switch refused.status {
		case http.StatusProxyAuthRequired:
			return http.StatusBadGateway, "proxy_configuration_error"
		case http.StatusForbidden:
			return http.StatusBadGateway, "http_request_denied"
		case http.StatusGatewayTimeout:
			return http.StatusGatewayTimeout, "connection_timeout"
		}
		return http.StatusBadGateway, "destination_unavailable"
	case errors.As(err, &op) && op.Op == "socks connect":
		switch text := op.Err.Error(); { // RFC 1928 §6, as x/net and net/http have it
		case strings.Contains(text, "authentication"):
			return http.StatusBadGateway, "proxy_configuration_error"
		case strings.Contains(text, "not allowed"):
			return http.StatusBadGateway, "http_request_denied"
		case text == "unknown error connection refused":
			return http.StatusBadGateway, ConnectionRefused
		case strings.Contains(text, "unreachable"):
			return http.StatusBadGateway, "destination_ip_unroutable"
		}
	}
	return 0, ""
}

func siteFailure(err error) (status int, errorType string) {
	var unanswered *Error
	var fault *http1.Fault
	var dns *net.DNSError
	var netErr net.Error
	var op *net.OpError
	timeout := errors.As(err, &netErr) && netErr.Timeout() || errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.Is(err, acl.ErrDestination):
		return http.StatusBadGateway, "destination_ip_prohibited"
	case errors.Is(err, acl.ErrSelf):
		return http.StatusBadGateway, "proxy_loop_detected"
	case IsShortOfFiles(err):
		return http.StatusBadGateway, "proxy_internal_error"
	case errors.Is(err, ErrUpgrade):
		return http.StatusBadGateway, "http_upgrade_failed"
	case errors.Is(err, ErrStatus):
		return http.StatusBadGateway, "http_protocol_error"
	case errors.As(err, &dns) && dns.IsTimeout:
		return http.StatusGatewayTimeout, "dns_timeout"
	case errors.As(err, &dns):
		return http.StatusBadGateway, "dns_error"
	case isCertificateError(err):
		return http.StatusBadGateway, "tls_certificate_error"
	case errors.As(err, &op) && op.Op == "remote error": // crypto/tls on an alert
		return http.StatusBadGateway, "tls_alert_received"
	case is[tls.RecordHeaderError](err), isLocal(err), errors.As(err, &unanswered) && unanswered.Stage == NoTLS && ofTLS(unanswered.Err):
		return http.StatusBadGateway, "tls_protocol_error"
	case errors.Is(err, syscall.ECONNREFUSED):
		return http.StatusBadGateway, ConnectionRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return http.StatusBadGateway, "destination_ip_unroutable"
	case errors.As(err, &fault) && fault.Answer:
		return http.StatusBadGateway, fault.Type
	case is[malformed](err):
		return http.StatusBadGateway, "http_protocol_error"
	case errors.As(err, &unanswered) && unanswered.Stage == TooLate:
		return http.StatusGatewayTimeout, "http_response_timeout"
	case timeout:
		return http.StatusGatewayTimeout, "connection_timeout"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		unanswered != nil && unanswered.Stage == NoAnswer:
		return http.StatusBadGateway, "connection_terminated"
	default:
		return http.StatusBadGateway, "destination_unavailable"
	}
}

func isCertificateError(err error) bool {
	return errors.Is(err, errPinned) || isUnparsable(err) || is[*tls.CertificateVerificationError](err) || is[x509.HostnameError](err) ||
		is[x509.UnknownAuthorityError](err) || is[x509.CertificateInvalidError](err)
}

// is reports whether err is of a type, or wraps one that is.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// IsShortOfFiles reports whether err says that no file descriptor is free.
func IsShortOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// isUnparsable reports whether err is of a certificate that crypto/x509 does not parse,
// which crypto/tls has no type for.
func isUnparsable(err error) bool {
	return err != nil && strings.Contains(err.Error(), "tls: failed to parse certificate from server")
}

// ConnectionRefused is the error type of a site at whose port nothing listens (RFC 9209
// §2.3.6).
const ConnectionRefused = "connection_refused"
