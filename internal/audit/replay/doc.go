// Package replay judges recorded decisions again, by the robots.txt and the
// settings in the record, and explains single decisions.
//
// The target is judged again, under the names of the agent, by the octets of the
// robots.txt, its profile and the settings in force. What cannot be determined
// later is taken from the record: the client, which parts of the request were
// seen, the network error of an unreachable site, the page that a browser had
// loaded before it requested a subresource, and what sites stated about the use of
// their pages. By these statements, requests can be judged for other purposes than
// their clients had.
package replay
