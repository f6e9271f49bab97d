// Package pace has requests take turns: who may start when, at which site.
//
// The way of a request: Turns.Take (turns.go) finds the lanes that it has to
// wait in (ask.go) and its place in the queue of the site (queue.go, plan.go),
// and returns when its turn has come (site.go), or at once when it would wait too
// long (booking.go). Requests for robots.txt go first (robots.go). What the site
// answers may hold everybody back (hold.go). What several heeds share goes
// through Shared (shared.go), and what outlives the process through Marks
// (marks.go).
package pace
