//go:build !unix

package logs

import "os"

// fileID returns nothing: other systems have no journal.
func fileID(*os.File) (is id, known bool) { return id{}, false }
