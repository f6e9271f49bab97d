package h2head

import (
	"slices"
	"sync"
)

// streams are the streams that net/http counts: a request above its limit is reset, and
// no handler gets it. The zero value is ready.
type streams struct {
	mu   sync.Mutex
	open []stream
	back int // those that the client has taken back before their answers, less those answered

	// What the server writes is read by one goroutine at a time.
	header [frameHeader]byte // of the next frame
	known  int               // octets of it that have come
	rest   int               // octets of a payload that are to come
}

// stream is a stream that is open, or half closed.
type stream struct {
	id    uint32
	ended side
}

// side is who has ended a stream.
type side uint8

const (
	clientEnded side = 1 << iota
	serverEnded
	answered  // the server has begun an answer
	bothEnded = clientEnded | serverEnded
)

// sideOf returns what the flags of HEADERS from the client end.
func sideOf(flags byte) side {
	if flags&flagEndStream != 0 {
		return clientEnded
	}
	return 0
}

// ends returns what f ends of its stream when it comes from one side.
func (f frame) ends(from side) (by side) {
	if f.kind == kindHeaders && from == serverEnded {
		by = answered
	}
	switch {
	case f.kind == kindReset:
		return bothEnded
	case (f.kind == kindData || f.kind == kindHeaders) && f.flags&flagEndStream != 0:
		return by | from
	}
	return by
}

// begin notes a stream that the client opens, and returns how many are open then.
func (s *streams) begin(id uint32, ended side) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, stream{id, ended})
	return len(s.open)
}

// end notes that one side has ended a stream, or both have, or that its answer begins. The zero
// side is none.
func (s *streams) end(id uint32, by side) {
	if by == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.open {
		if s.open[i].id != id {
			continue
		}
		if by&answered&^s.open[i].ended != 0 {
			s.back = max(0, s.back-1)
		}
		if s.open[i].ended |= by; s.open[i].ended&bothEnded == bothEnded {
			last := len(s.open) - 1
			s.open[i] = s.open[last]
			s.open = s.open[:last]
		}
		return
	}
}

// takeBack notes that the client resets a stream, and returns how many it has taken back before
// their answers, less those answered.
func (s *streams) takeBack(id uint32) int {
	s.mu.Lock()
	if slices.ContainsFunc(s.open, func(o stream) bool { return o.id == id && o.ended&answered == 0 }) {
		s.back++
	}
	back := s.back
	s.mu.Unlock()
	s.end(id, bothEnded)
	return back
}

// wrote notes what ends with the frames that the server writes. They come in pieces of any
// size.
func (s *streams) wrote(p []byte) {
	for len(p) > 0 {
		if n := min(s.rest, len(p)); n > 0 {
			s.rest -= n
			p = p[n:]
			continue
		}
		n := copy(s.header[s.known:], p)
		p = p[n:]
		if s.known += n; s.known == frameHeader {
			f := parseFrame(s.header[:])
			s.known, s.rest = 0, f.length
			s.end(f.stream, f.ends(serverEnded))
		}
	}
}
