package dashboard

import (
	"bytes"
	"html/template"
	"net/http"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"heed/internal/base/memo"
	"heed/internal/output/manual"
)

// manualSection is the topics that are listed under one heading.
type manualSection struct {
	Title  string
	Topics []manual.Topic
}

func (d *Dashboard) manualList(*http.Request) (*view, error) {
	var all []manualSection
	for _, t := range manual.Topics() {
		if len(all) == 0 || all[len(all)-1].Title != t.Section {
			all = append(all, manualSection{Title: t.Section})
		}
		last := &all[len(all)-1]
		last.Topics = append(last.Topics, t)
	}
	return &view{Page: "manual", Title: "Manual", Data: all}, nil
}

func (d *Dashboard) manualTopic(r *http.Request) (*view, error) {
	t, ok := manual.Lookup(strings.ToLower(r.PathValue("topic"))) // in any case, as on the command line
	if !ok {
		return nil, &shownError{http.StatusNotFound, "The manual has no such topic.\nIts first page lists all."}
	}
	text, err := rendered(t.Complete(d.BuiltIn))
	return &view{Page: "topic", Title: t.Title, Data: text}, err
}

// markdown renders the manual. HTML in it is left out.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table))

// reference is a topic named in a text of the manual.
var reference = memo.Expression(`<code>heed help ([a-z]+)</code>`)

// rendered returns a text of the manual as HTML, with links between topics. Blocks that
// may be wider than the page can be scrolled by keyboard.
func rendered(text string) (template.HTML, error) {
	var out bytes.Buffer
	if err := markdown.Convert([]byte(text), &out); err != nil {
		return "", err
	}
	html := reference().ReplaceAllFunc(out.Bytes(), func(found []byte) []byte {
		topic := reference().FindSubmatch(found)[1]
		if _, ok := manual.Lookup(string(topic)); !ok {
			return found
		}
		return []byte(`<a href="/manual/` + string(topic) + `">` + string(found) + `</a>`)
	})
	html = bytes.ReplaceAll(html, []byte("<pre>"), []byte(`<pre class="wide" tabindex="0">`))
	html = bytes.ReplaceAll(html, []byte("<table>"), []byte(`<div class="wide" tabindex="0"><table class="plain">`))
	html = bytes.ReplaceAll(html, []byte("</table>"), []byte(`</table></div>`))
	return template.HTML(html), nil // the manual is a part of the program
}
