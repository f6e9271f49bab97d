package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
)

// errTargetReset is the failure of a site that resets every HTTP/2 stream with a target.
var errTargetReset = errors.New("stream error: the site resets a request for this target; over HTTP/1 it may answer it")

// maxStreams is how often a request with a target that net/http does not write itself
// is sent over HTTP/2.
const maxStreams = 2

// sendOdd sends a request whose target is in URL.Opaque. Some HTTP/2 servers reset a
// stream with a target that no URL contains, for which net/http repeats a request for
// more than a minute.
func sendOdd(t http.RoundTripper, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	streams := 0
	resp, err := t.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			if IsHTTP2(i.Conn) {
				if streams++; streams > maxStreams {
					cancel(errTargetReset)
				}
			}
		},
	})))
	if err == nil {
		return resp, nil // ctx ends with the request's
	}
	if cause := context.Cause(ctx); errors.Is(cause, errTargetReset) {
		err = cause
	}
	cancel(nil)
	return nil, err
}
