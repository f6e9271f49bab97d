// Package ca is the local certificate authority: the root that clients trust,
// the certificates made for the sites they visit, and the places a root has to
// be put for a client to trust it.
//
// A root made here is an ECDSA P-256 key in a file only its owner can read. It
// may sign end certificates but no further authorities. Leaves get keys of
// their own from crypto/rand and carry exactly one name, so that a client never
// reuses a connection to one site for another (RFC 9113 §9.1.1).
//
// Outside packages: software.sslmate.com/src/go-pkcs12, for the trust store
// Java reads.
package ca
