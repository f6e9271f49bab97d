package command

import "path/filepath"

// What heed writes for its clients lies in stateDir/clients, in a directory
// per content, so that runs at the same time with different roots do not
// disturb each other and those with the same roots share the files.
const (
	foundSuffix = "-found"    // of a directory that holds a foundName
	foundName   = "found.pem" // the CAs that were found in the environment
)

func clientsDir(stateDir string) string { return filepath.Join(stateDir, "clients") }
