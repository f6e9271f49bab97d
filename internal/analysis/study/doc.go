// Package study computes what robots did at sites from the requests of access logs: who
// asked for robots.txt, what it did not allow, delays, sessions, possible impostors.
//
// A Study takes requests in the order of time (study.go), finds for each the agent
// (robots.go), the robots.txt in force (policy.go; sources.go reads the files) and the
// verdict of the rules, and counts it for its robot (robot.go). Finish makes the tables
// (table.go, tables_*.go), each with its definition, columns and SQL. A Result is written
// as text, HTML, JSON or CSV; rows of requests go to CSV as they are read.
//
// A Study has methods in the file of each subject, since every request passes all of them.
//
// Memory grows with the number of different clients, agents and targets, not with lines,
// but for 8 octets per gap of a robot.
package study
