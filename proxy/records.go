package proxy

import "sync/atomic"

// maxGoodbye is how long the encrypted records of a client are at most that
// only says goodbye or changes keys (RFC 8446 §5.2, §6): longer ones hold data.
const maxGoodbye = 24

// tlsRecords counts the records in which a TLS client sends data, from the
// outside: what is inside an encrypted record only its end of the connection
// knows, but not how many there are.
type tlsRecords struct {
	data   atomic.Int64
	header [5]byte // of the record that is being read
	have   int     // octets of header
	left   int     // octets of the record still to come
}

// pass takes note of octets on their way.
func (r *tlsRecords) pass(b []byte) {
	for len(b) > 0 {
		if r.left > 0 {
			n := min(r.left, len(b))
			r.left -= n
			b = b[n:]
			continue
		}
		r.header[r.have] = b[0]
		b = b[1:]
		if r.have++; r.have < len(r.header) {
			continue
		}
		r.have = 0
		r.left = int(r.header[3])<<8 | int(r.header[4])
		if r.header[0] == 0x17 && r.left > maxGoodbye {
			r.data.Add(1)
		}
	}
}
