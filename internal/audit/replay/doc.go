// Package replay judges recorded decisions again, by the robots.txt and the
// settings that the record has of them, and looks single ones up.
//
// What is judged again: the target, under the names of the agent, by the bytes
// of the robots.txt, its profile and the settings in force. What is taken from
// the record, since no later look can find it out: which client it was, what of
// the request was seen, what the network said of a site that could not be
// reached, and what a browser had read before it asked for a part of a page.
package replay
