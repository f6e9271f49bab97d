package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"heed/internal/base/safetext"
	"heed/internal/judge/reason"
	"heed/internal/output/figures"
	"heed/internal/output/table"
)

//go:embed pages assets
var files embed.FS

// pages returns the templates: each file in the folder pages, with those of layout.html.
// They are parsed once a page is requested: most commands show none.
var pages = sync.OnceValue(parsePages)

func parsePages() map[string]*template.Template {
	layout := template.Must(template.New("").Funcs(functions).ParseFS(files, "pages/layout.html"))
	names, _ := files.ReadDir("pages") // it is embedded
	all := map[string]*template.Template{}
	for _, n := range names {
		if name, _ := strings.CutSuffix(n.Name(), ".html"); name != "layout" {
			all[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "pages/"+n.Name()))
		}
	}
	return all
}

// functions are what templates use beside their data. Text of clients, sites and errors goes
// through text.
var functions = template.FuncMap{
	"patterns": table.Patterns,
	"text":     safetext.Visible,
	"stamp":    stamp,
	"clock":    clock,
	"style":    figures.Style,
	"commas":   func(n any) string { return figures.Commas(integer(n)) },
	"number":   func(n any, one string) string { return figures.Number(integer(n), one) },
	"percent": func(n, all any) string {
		return figures.Percent(integer(n), integer(all))
	},
	"bar":     func(c reason.Counts, most int64) []figures.Piece { return figures.Pieces(&c, most) },
	"words":   func(c reason.Counts) string { return c.OnlyWords(figures.Commas) },
	"classes": reason.Classes,
	"asset":   func(name string) string { return "/assets/" + name },
	"span":    func(d time.Duration) string { return d.Round(time.Second).String() },
	"size":    func(n uint64) string { return figures.Size(int64(n)) },
}

// integer returns a number of any integer type.
func integer(n any) int64 {
	if v := reflect.ValueOf(n); v.CanUint() {
		return int64(v.Uint())
	}
	return reflect.ValueOf(n).Int()
}

// stamp writes a time to the second, in UTC; "-" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// clock writes a day and a time of it, in UTC.
func clock(t time.Time) string { return t.UTC().Format(clockForm) }

const clockForm = "2 Jan 15:04"

// types are the files of the folder assets, with their media types.
var types = map[string]string{
	"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
}

// serveAsset sends a file. Browsers keep it, and ask each time whether it is the same.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, err := files.ReadFile("assets/" + name)
	if types[name] == "" || err != nil {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(text)
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	h.Set("Content-Type", types[name])
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
}
