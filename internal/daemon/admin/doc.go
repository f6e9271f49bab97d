// Package admin is the listener for operators: metrics, health, profiles and the
// dashboard, over plain HTTP/1.1.
//
// A request passes these checks in this order (handle): it did not come through heed
// itself, it names a host of the listener (DNS rebinding), it has the credentials that the
// settings require, and no page of another site has sent it. Only the end points of health
// need no credentials; without them they give no reasons.
//
// Every answer has a write deadline and a connection counts against a limit, so that slow
// readers hold little for a short time. A handler that streams extends the deadline as it
// sends, with http.ResponseController.
package admin
