package usage

import (
	"net/http"
	"slices"
	"strings"

	"heed/internal/base/coding"
)

// dictionaryFields name a dictionary that the client has (RFC 9842 §2.2, §2.3): a site uses it
// for codings that heed does not undo.
var dictionaryFields = [...]string{"Available-Dictionary", "Dictionary-Id"}

// OfferReadable changes the header of a request whose answer is read, so that the site is
// offered only codings that can be undone. A field that a signature of the request covers is
// left as it is; an answer in another coding counts as unread.
func OfferReadable(h http.Header) {
	const accept = "Accept-Encoding"
	if value, changed := coding.Offer(h[accept]); changed && !covered(h, accept) {
		h[accept] = []string{value}
	}
	for _, name := range dictionaryFields {
		if len(h[name]) > 0 && !covered(h, name) {
			delete(h, name)
		}
	}
}

// covered reports whether a signature of the request names a field: that of RFC 9421 or of its
// drafts, or one in Authorization that lists the fields that it signs.
func covered(h http.Header, field string) bool {
	field = strings.ToLower(field)
	for _, name := range [...]string{"Signature-Input", "Signature", "Authorization"} {
		if slices.ContainsFunc(h[name], func(line string) bool { return strings.Contains(strings.ToLower(line), field) }) {
			return true
		}
	}
	return false
}
