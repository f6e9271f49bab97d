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

// Error returns the text for the operator.
func (e *shownError) Error() string { return e.text }

var (
	errNotFound = &shownError{http.StatusNotFound, "There is no such page.\nThe pages are listed above."}
	errNoRecord = &shownError{http.StatusNotFound, "This heed does not record decisions.\nSet enabled = true under [audit] in proxy.toml, and restart heed."}
	errReadOnly = &shownError{http.StatusForbidden, "This page may not change anything.\nSet actions = true and a token under [admin] in proxy.toml, and use the token here; or use the commands of heed."}
	errTime     = &shownError{http.StatusServiceUnavailable, "It took too long.\nAsk for less, such as a shorter time."}
	errBusy     = &shownError{http.StatusServiceUnavailable, "Too many pages read the record at the moment.\nLoad the page again."}
)

// failure is the page that shows an error. Its first line is what was wrong, the others what
// to do.
func failure(err error) *view {
	var shown *shownError
	switch {
	case errors.As(err, &shown):
	case errors.Is(err, context.DeadlineExceeded):
		shown = errTime
	default:
		shown = &shownError{http.StatusInternalServerError, err.Error()}
	}
	v := &view{Page: "error", Title: "Not possible", Status: shown.status, Data: strings.Split(shown.text, "\n")}
	if v.Status == http.StatusNotFound {
		v.Title = "Not found"
	}
	return v
}

func retryAfter(d time.Duration) string {
	return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second)))
}
