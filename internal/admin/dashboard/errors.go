package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// shownError is an error with the status of its answer.
type shownError struct {
	status int
	text   string
}

func (e *shownError) Error() string { return e.text }

var (
	errNotFound = &shownError{http.StatusNotFound, "There is no such page.\nThe pages are listed above."}
	errNoRecord = &shownError{http.StatusNotFound, "This heed does not record decisions.\nSet enabled = true under [audit] in proxy.toml, and restart heed."}
	errReadOnly = &shownError{http.StatusForbidden, "The dashboard changes nothing.\nSet actions = true under [admin] in proxy.toml, which needs a token, or use the commands of heed."}
	errBusy     = &shownError{http.StatusServiceUnavailable, "Too many pages read the record at the moment.\nLoad the page again."}
)

// failure is the page that shows an error. Its first line is what was wrong, the others what
// to do.
func failure(err error) *view {
	v := &view{Page: "error", Title: "Not possible", Status: http.StatusInternalServerError}
	var shown *shownError
	if errors.As(err, &shown) {
		v.Status = shown.status
	}
	if errors.Is(err, context.DeadlineExceeded) {
		v.Status, err = http.StatusServiceUnavailable, errors.New("It took too long.\nAsk for less, such as a shorter time.")
	}
	if v.Status == http.StatusNotFound {
		v.Title = "Not found"
	}
	v.Data = strings.Split(err.Error(), "\n")
	return v
}

func retryAfter(d time.Duration) string {
	return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second)))
}
