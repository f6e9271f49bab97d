package proxy

import (
	"net/http"
	"net/url"
)

// parts are the destinations of requests that a browser makes to show a page
// (Fetch §2.2.6, as Sec-Fetch-Dest names them): not pages in frames, which are
// pages of their own, and not what a script asks for by itself.
var parts = map[string]bool{
	"audio": true, "audioworklet": true, "font": true, "image": true, "json": true, "manifest": true,
	"paintworklet": true, "script": true, "serviceworker": true, "sharedworker": true, "style": true,
	"track": true, "video": true, "worker": true, "xslt": true,
}

// partOf returns as what a page asks for a request, and the page's address as
// far as the browser tells it; empty when the request is no part of a page.
func partOf(h http.Header) (part, page string) {
	v := h["Sec-Fetch-Dest"]
	if len(v) != 1 || !parts[v[0]] {
		return "", ""
	}
	u, err := url.Parse(h.Get("Referer"))
	if err != nil || u.Host == "" {
		return v[0], ""
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return v[0], u.String()
}
