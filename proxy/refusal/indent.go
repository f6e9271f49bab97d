package refusal

// indent returns compact, which is valid JSON without white space between its tokens,
// as json.Indent does with an indentation of two spaces. It passes over the strings,
// which are most of a refusal, and so takes a fifth of its time.
func indent(compact []byte) []byte {
	b := make([]byte, 0, 2*len(compact))
	margin := []byte("\n")
	for i := 0; i < len(compact); i++ {
		switch c := compact[i]; c {
		case '"':
			start := i
			for i++; compact[i] != '"'; i++ {
				if compact[i] == '\\' {
					i++
				}
			}
			b = append(b, compact[start:i+1]...)
		case '{', '[':
			b = append(b, c)
			if compact[i+1] == c+2 { // its end
				i++
				b = append(b, c+2)
				continue
			}
			margin = append(margin, "  "...)
			b = append(b, margin...)
		case '}', ']':
			margin = margin[:len(margin)-2]
			b = append(append(b, margin...), c)
		case ',':
			b = append(append(b, c), margin...)
		case ':':
			b = append(b, ": "...)
		default:
			b = append(b, c)
		}
	}
	return b
}
