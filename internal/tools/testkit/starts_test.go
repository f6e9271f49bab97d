package testkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// Work that the octets of a client, a site or a store start has a limit: each statement
// that starts a goroutine or a timer in these packages is in the list started, with what
// bounds it.
func TestHouse_EveryGoroutineAndTimerHasALimit(t *testing.T) {
	found := map[string]int{}
	for _, dir := range []string{"proxy", "cache", "internal/pace", "internal/judge/signal/fetch"} {
		must.OK(t, filepath.WalkDir(filepath.Join(Root(t), dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(Root(t), path)
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					startsOf(f, func(what string) { found[filepath.ToSlash(name)+" "+funcName(f)+" "+what]++ })
				}
			}
			return nil
		}))
	}
	must.Need(t, len(found) > 0, "no goroutine and no timer was found")
	for _, key := range slices.Sorted(maps.Keys(found)) {
		must.True(t, started[key] != "", "%s is not in the list started: what bounds how many there are at a time?", key)
		must.True(t, found[key] <= 1,
			"%s is there %d times; give each a function, so that each has its limit", key, found[key])
	}
	for key := range started {
		must.True(t, found[key] != 0, "%s is in the list started, and not in the source", key)
	}
}

// startsOf calls report for each goroutine, timer and wait that the body of f starts.
func startsOf(f *ast.FuncDecl, report func(what string)) {
	if f.Body == nil {
		return
	}
	timers := map[string]bool{"time.AfterFunc": true, "time.After": true, "time.Tick": true, "time.NewTimer": true, "time.NewTicker": true, "context.AfterFunc": true, "time.Sleep": true}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report("go")
		case *ast.CallExpr:
			if called := types.ExprString(n.Fun); timers[called] || strings.HasSuffix(called, ".Go") {
				report(called)
			}
		}
		return true
	})
}

// funcName returns the name of f, with the type of its receiver.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return strings.TrimLeft(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
}
