package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// errSelf is returned by the dialler for an address that heed listens on.
var errSelf = errors.New("the address is heed's own")

// errUpgrade stands for a switch to a protocol that the client did not ask for.
var errUpgrade = errors.New("the site switched protocols unasked")

// errStatus stands for a status that no site may give: one that is none, or
// 407, which belongs to proxies.
var errStatus = errors.New("the site's status is not a site's to give")

// upstreamRefused is the error of a tunnel that another proxy would not open.
type upstreamRefused struct{ status int }

// Error implements error.
func (e *upstreamRefused) Error() string {
	return fmt.Sprintf("the upstream proxy answered status %d to CONNECT", e.status)
}

// classifyUpstream is classify for what the proxy behind heed has said; an empty
// type for all else.
func classifyUpstream(err error) (status int, errorType string) {
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
			return http.StatusBadGateway, "connection_refused"
		case strings.Contains(text, "unreachable"):
			return http.StatusBadGateway, "destination_ip_unroutable"
		}
	}
	return 0, ""
}

// byUpstream reports whether the proxy behind heed has failed, and not the site.
func byUpstream(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		return true
	}
	_, errorType := classifyUpstream(err)
	return errorType != ""
}

// classify says how a failure to reach a site is told to the client: status
// and Proxy-Status error type (RFC 9209 §2.3). The error's text stays inside:
// it may hold resolver and network details.
func classify(err error) (status int, errorType string) {
	if status, errorType := classifyUpstream(err); errorType != "" {
		return status, errorType
	}
	var dns *net.DNSError
	var netErr net.Error
	var op *net.OpError
	var record tls.RecordHeaderError
	timeout := errors.As(err, &netErr) && netErr.Timeout() || errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.Is(err, ErrDestination):
		return http.StatusBadGateway, "destination_ip_prohibited"
	case errors.Is(err, errSelf):
		return http.StatusBadGateway, "proxy_loop_detected"
	case errors.Is(err, errUpgrade):
		return http.StatusBadGateway, "http_upgrade_failed"
	case errors.Is(err, errStatus):
		return http.StatusBadGateway, "http_protocol_error"
	case errors.As(err, &dns) && dns.IsTimeout:
		return http.StatusGatewayTimeout, "dns_timeout"
	case errors.As(err, &dns):
		return http.StatusBadGateway, "dns_error"
	case isCertificateError(err):
		return http.StatusBadGateway, "tls_certificate_error"
	case errors.As(err, &op) && op.Op == "remote error": // crypto/tls on an alert
		return http.StatusBadGateway, "tls_alert_received"
	case errors.As(err, &record), errors.As(err, &op) && op.Op == "local error":
		return http.StatusBadGateway, "tls_protocol_error"
	case errors.Is(err, syscall.ECONNREFUSED):
		return http.StatusBadGateway, "connection_refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return http.StatusBadGateway, "destination_ip_unroutable"
	case timeout && strings.Contains(err.Error(), "awaiting response headers"):
		return http.StatusGatewayTimeout, "http_response_timeout"
	case timeout:
		return http.StatusGatewayTimeout, "connection_timeout"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		err != nil && strings.Contains(err.Error(), "stream error"): // HTTP/2's reset
		return http.StatusBadGateway, "connection_terminated"
	case err != nil && strings.Contains(err.Error(), "response headers exceeded"):
		return http.StatusBadGateway, "http_response_header_section_size"
	case err != nil && (strings.Contains(err.Error(), "malformed HTTP") || strings.Contains(err.Error(), "malformed MIME header")):
		return http.StatusBadGateway, "http_protocol_error"
	default:
		return http.StatusBadGateway, "destination_unavailable"
	}
}

func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	return errors.Is(err, errPinned) || errors.As(err, &verification) || errors.As(err, &host) || errors.As(err, &authority) || errors.As(err, &invalid)
}

// errorText is err for the record: bounded and printable.
func errorText(err error) string { return printable(err.Error(), 300) }
