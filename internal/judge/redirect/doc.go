// Package redirect takes connections that the kernel has redirected to heed: clients made
// them to a site, and know nothing of a proxy.
//
// listen_linux.go opens such a listener and returns the address that a client connected
// to, its original destination. first.go finds out what a client speaks from its first
// octets. noanswer.go takes the place of an answer where no client asked for one. Package
// proxy decides on the requests.
package redirect
