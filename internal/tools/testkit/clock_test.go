package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
)

// No test's verdict depends on how long something took: a busy machine makes
// anything slow. This test finds, by type, what could compare a measured time:
//
//   - <, <=, > and >= with an operand of type time.Duration, or with a number
//     computed from one;
//   - Before, After and Compare of a time.Time;
//   - calls that measure the CPU time of a thread or a process, and testing.Benchmark;
//   - timers and limits of contexts, dialers and clients that are not a constant of
//     at least a minute. A shorter one is no patience.
//
// What a function literal does that synctest.Test runs is done on a fake clock, and
// is not reported. Everything else must be in timeCompared, with a reason.
func TestHouse_NoVerdictDependsOnElapsedTime(t *testing.T) {
	found := map[string][]string{}
	for _, c := range clockUses(t) {
		found[c.key] = append(found[c.key], c.what)
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		must.True(t, timeCompared[key] != "",
			"%s compares times, and is not in timeCompared:\n\t%s", key, strings.Join(found[key], "\n\t"))
	}
	for key := range timeCompared {
		must.True(t, found[key] != nil, "%s is in timeCompared, but compares no times", key)
	}
}

// A clockUse is one place that compares times: key is "path/of/file_test.go function",
// what the line and the expression.
type clockUse struct{ key, what string }

// testedPkg is what go list prints of one package.
type testedPkg struct {
	ImportPath, Dir, Export                            string
	GoFiles, TestGoFiles, XTestGoFiles                 []string
	Imports, TestImports, XTestImports, IgnoredGoFiles []string
}

// clockUses type-checks all packages with their tests. Packages of other modules, and
// ours that a test imports, are read from the export data of the build cache.
func clockUses(t *testing.T) (all []clockUse) {
	t.Helper()
	ours := goList(t, "./...")
	wanted := map[string]bool{}
	for _, p := range ours {
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			wanted[i] = i != "C" && i != "unsafe"
		}
	}
	delete(wanted, "C")
	delete(wanted, "unsafe")
	exports := map[string]string{}
	for _, p := range goList(t, append([]string{"-export", "-deps"}, slices.Sorted(maps.Keys(wanted))...)...) {
		exports[p.ImportPath] = p.Export
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range ours {
		c := clockCheck{t: t, set: set, imports: imports, root: Root(t)}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		tested := c.files(p.ImportPath, p.Dir, slices.Concat(p.GoFiles, p.TestGoFiles))
		if len(p.XTestGoFiles) > 0 {
			c.imports = replaced{imports, tested}
			c.files(p.ImportPath+"_test", p.Dir, p.XTestGoFiles)
		}
		all = append(all, c.found...)
	}
	return all
}

func goList(t *testing.T, args ...string) (all []testedPkg) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"}, args...)...)
	cmd.Dir = Root(t)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	must.Need(t, err == nil, "go list: %v\n%s", err, failed.String())
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p testedPkg
		must.OK(t, d.Decode(&p))
		all = append(all, p)
	}
	return all
}

// replaced is an importer for the external tests of one package: they import that
// package with its own test files.
type replaced struct {
	types.Importer
	with *types.Package
}

func (r replaced) Import(path string) (*types.Package, error) {
	if path == r.with.Path() {
		return r.with, nil
	}
	return r.Importer.Import(path)
}

// A clockCheck finds comparisons of times in the tests of one package.
type clockCheck struct {
	t        *testing.T
	set      *token.FileSet
	imports  types.Importer
	root     string
	info     *types.Info
	computed map[types.Object]bool // numbers that were computed from a duration
	found    []clockUse
}

// files type-checks one package, and looks at its test files.
func (c *clockCheck) files(path, dir string, names []string) *types.Package {
	var parsed []*ast.File
	for _, name := range names {
		f := must.Get(parser.ParseFile(c.set, filepath.Join(dir, name), nil, parser.SkipObjectResolution))(c.t)
		parsed = append(parsed, f)
	}
	c.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	c.computed = map[types.Object]bool{}
	// A package and the tests' packages that import it can disagree on its types, because
	// one is checked with its tests and one is not: such errors change nothing here.
	conf := types.Config{Importer: c.imports, Error: func(error) {}}
	p, _ := conf.Check(path, c.set, parsed, c.info)
	for _, f := range parsed {
		name := c.set.Position(f.Pos()).Filename
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		name, _ = filepath.Rel(c.root, name)
		for _, d := range f.Decls {
			in := ""
			if fn, ok := d.(*ast.FuncDecl); ok {
				in = " " + fn.Name.Name
				if fn.Recv != nil {
					in = " " + receiverType(fn.Recv.List[0].Type) + "." + fn.Name.Name
				}
			}
			c.numbers(d)
			c.comparisons(filepath.ToSlash(name)+in, d)
		}
	}
	return p
}

// numbers marks the variables of a declaration to which a number is assigned that was
// computed from a duration.
func (c *clockCheck) numbers(d ast.Node) {
	for range 2 { // a number of a number
		ast.Inspect(d, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
				for i, right := range a.Rhs {
					if id, ok := a.Lhs[i].(*ast.Ident); ok && id.Name != "_" && c.ofDuration(right) {
						c.computed[c.object(id)] = true
					}
				}
			}
			return true
		})
	}
	delete(c.computed, nil)
}

func (c *clockCheck) object(id *ast.Ident) types.Object {
	if o := c.info.Defs[id]; o != nil {
		return o
	}
	return c.info.Uses[id]
}

// comparisons records the comparisons of times inside n.
func (c *clockCheck) comparisons(key string, n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LSS, token.LEQ, token.GTR, token.GEQ:
				if c.ofDuration(n.X) || c.ofDuration(n.Y) {
					c.record(key, n)
				}
			}
		case *ast.CallExpr:
			f := c.called(n)
			if f == "testing/synctest.Test" {
				return false
			}
			if slices.Contains(clockCalls, f) {
				c.record(key, n)
			}
			if at, limits := clockLimits[f]; limits && c.isShort(n.Args[at]) {
				c.record(key, n)
			}
			if strings.HasSuffix(f, "Deadline") && len(n.Args) == 1 && c.isSoon(n.Args[0]) {
				c.record(key, n)
			}
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok && clockFields[id.Name] && c.isShort(n.Value) {
				c.record(key, n.Value)
			}
		}
		return true
	})
}

// clockCalls are the functions that compare times, or measure CPU time.
var clockCalls = []string{
	"(time.Time).Before", "(time.Time).After", "(time.Time).Compare",
	"syscall.Getrusage", "golang.org/x/sys/unix.Getrusage", "golang.org/x/sys/unix.ClockGettime",
	"(*os.ProcessState).UserTime", "(*os.ProcessState).SystemTime", "(*os.ProcessState).SysUsage",
	"testing.Benchmark",
}

// clockLimits are the functions that end a wait, with the index of the argument that
// says when; clockFields are the names of fields that do.
var (
	clockLimits = map[string]int{
		"time.After": 0, "time.NewTimer": 0, "time.AfterFunc": 0,
		"context.WithTimeout": 1, "context.WithTimeoutCause": 1, "net.DialTimeout": 2,
	}
	clockFields = map[string]bool{"Timeout": true}
)

// isShort reports whether a duration is not a constant of at least a minute.
func (c *clockCheck) isShort(e ast.Expr) bool {
	tv := c.info.Types[e]
	if tv.Value == nil {
		return tv.Type != nil && tv.Type.String() == "time.Duration"
	}
	d, _ := constant.Int64Val(constant.ToInt(tv.Value))
	return tv.Type.String() == "time.Duration" && d != 0 && time.Duration(d).Abs() < time.Minute
}

// isSoon reports whether a time is computed by adding a short duration.
func (c *clockCheck) isSoon(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	return ok && c.called(call) == "(time.Time).Add" && c.isShort(call.Args[0])
}

// called returns the full name of the function that a call calls, if it is known.
func (c *clockCheck) called(n *ast.CallExpr) string {
	id, ok := n.Fun.(*ast.Ident)
	if s, is := n.Fun.(*ast.SelectorExpr); is {
		id, ok = s.Sel, true
	}
	if !ok {
		return ""
	}
	if f, ok := c.info.Uses[id].(*types.Func); ok {
		return f.FullName()
	}
	return ""
}

func (c *clockCheck) record(key string, n ast.Expr) {
	c.found = append(c.found, clockUse{key, fmt.Sprintf("line %d: %s", c.set.Position(n.Pos()).Line, types.ExprString(n))})
}

// ofDuration reports whether e is a duration, or a number computed from one.
// A constant is none.
func (c *clockCheck) ofDuration(e ast.Expr) (is bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || is {
			return false
		}
		tv := c.info.Types[e]
		if tv.Value != nil {
			return false
		}
		if id, ok := e.(*ast.Ident); ok && c.computed[c.object(id)] {
			is = true
		}
		if tv.IsValue() && tv.Type != nil && tv.Type.String() == "time.Duration" {
			is = true
		}
		if call, ok := e.(*ast.CallExpr); ok && !c.info.Types[call.Fun].IsType() && !c.passes(call) {
			return false // a duration that a function was given is not its result
		}
		return true
	})
	return is
}

// passes reports whether a call's result is computed from its operands alone: a method of
// a duration, or a function of a number.
func (c *clockCheck) passes(call *ast.CallExpr) bool {
	f := c.called(call)
	if c.info.Types[call.Fun].IsBuiltin() || strings.HasPrefix(f, "(time.Duration).") {
		return !c.isLen(call)
	}
	return strings.HasPrefix(f, "math.") || strings.HasPrefix(f, "slices.M")
}

func (c *clockCheck) isLen(call *ast.CallExpr) bool {
	id, ok := call.Fun.(*ast.Ident)
	return ok && (id.Name == "len" || id.Name == "cap")
}
