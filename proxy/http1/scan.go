package http1

import "bytes"

// scanner finds the end of a head whose octets come in pieces, and the faults that make
// it useless to wait for more.
type scanner struct {
	skipped  int  // octets of line ends before the head
	searched int  // octets in which no end of the head was found, nor of the first line
	word     int  // octets that the first word of the first line has so far
	lineSeen bool // the first line is complete, and may be one
}

// next returns how many octets the head has; 0: it is not complete.
func (s *scanner) next(head []byte, answer bool) (n int, fault *Fault) {
	if !s.lineSeen {
		if fault := s.firstLine(head, answer); fault != nil {
			return 0, fault
		}
	}
	for i := max(0, s.searched-2); ; i++ {
		next := bytes.IndexByte(head[i:], '\n')
		if next < 0 {
			s.searched = len(head)
			return 0, nil
		}
		i += next
		switch rest := head[i+1:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return i + 2, nil
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return i + 3, nil
		}
	}
}

// firstLine looks at the beginning of a head, which may be another protocol.
func (s *scanner) firstLine(head []byte, answer bool) *Fault {
	end := bytes.IndexByte(head[s.searched:], '\n')
	if end >= 0 {
		end += s.searched
	}
	if answer {
		if n := min(len(head), len(protocol)); string(head[:n]) != protocol[:n] {
			return newFault(NotHTTP, true, "")
		}
		s.lineSeen = end >= 0
		return nil
	}
	for ; s.word < len(head); s.word++ {
		switch i, c := s.word, head[s.word]; {
		case tokens[c]:
			continue
		case c == '\n', c == '\r' && i+1 == end: // a line of one word
			return newFault(BadRequestLine, false, "")
		case c == '\r' && i+1 == len(head):
			return nil
		case c != ' ' || i == 0:
			return newFault(BadMethod, false, "")
		}
		break
	}
	if end < 0 {
		return nil
	}
	s.lineSeen = true
	if !bytes.Contains(head[:end], blankProtocol) {
		line, _, _ := nextLine(string(head[:end+1]))
		return (&Head{}).parseRequestLine(line)
	}
	return nil
}

var blankProtocol = []byte(" " + protocol)
