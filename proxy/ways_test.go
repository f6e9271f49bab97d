package proxy

import "net/http"

// only is the one way that all requests take.
func only(t *http.Transport) func(*http.Request) *http.Transport {
	return func(*http.Request) *http.Transport { return t }
}
