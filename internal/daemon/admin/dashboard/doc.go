// Package dashboard is the pages that an operator looks at in a browser: what heed did in
// the last minute, hour and day, its decisions with their full explanation, the sites and
// clients, a URL tried out, the settings and the manual.
//
// The pages are made on the server and work without JavaScript; with it, two of them are
// kept up to date by server-sent events (live.go), which are made once for all viewers.
// All decisions are read from the record as it is kept, with its hashes in place of hidden
// values, through the readers of packages store and replay. What is shown about the last 24
// hours is read within a fixed time, and says how far it looked (record.go).
//
// A Dashboard has methods in the file of each page: what the page shows is beside what it
// reads.
//
// Texts of clients and sites reach a page through html/template only, after
// safetext.Visible.
//
// Outside package: github.com/yuin/goldmark renders the manual, in manual.go.
package dashboard
