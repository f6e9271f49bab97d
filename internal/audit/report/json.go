package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes the report as one JSON object. What cannot be seen in texts
// of clients and sites is for w to escape.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
