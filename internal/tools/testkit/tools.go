package testkit

import (
	"path/filepath"
	"sync"
	"testing"
)

// H2Spec is the path of h2spec, a conformance test of HTTP/2 servers, built
// from testdata/tools, a module of its own.
func H2Spec(t testing.TB) string {
	t.Helper()
	path, err := h2spec()
	if err != nil {
		t.Fatalf("building h2spec: %v", err)
	}
	return path
}

var h2spec = sync.OnceValues(func() (string, error) {
	top, err := root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(top, buildFolder, "h2spec")
	return path, goBuild(filepath.Join(top, "internal/tools/testkit/testdata/tools"), path, "github.com/summerwind/h2spec/cmd/h2spec")
})
