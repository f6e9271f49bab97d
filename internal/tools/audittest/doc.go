// Package audittest makes up records of crawls, for tests of what writes and
// reads them.
package audittest
