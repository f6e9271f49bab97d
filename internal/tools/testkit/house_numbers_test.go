package testkit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// maxFunctionLines bounds what a reader has to hold in mind at once.
const maxFunctionLines = 60

// What else has a number is counted and not capped: a cap is filled to its brim. The numbers
// of house.txt are rounded up, so that a commit changes them only when it adds or removes
// something worth a look; it does so on purpose, with -update.
const (
	numbersFile = "house.txt"
	manyMethods = 20  // of a type that is named
	codeStep    = 100 // of the lines of code of a package
	longestStep = 50  // of the lines of its longest file
)

const numbersHead = `# What a reader of heed has before him, by package: lines of code (without blanks and
# comments) to the next 100, files, lines of the longest file to the next 50, and the
# types with more than 20 methods, with the number of these and of their files. A commit
# that changes a number does so on purpose:
#
#	go test ./internal/tools/testkit -run House -update
#
# What one request runs of it is in internal/tools/walk/walk.txt.
`

// numbers are those of a package.
type numbers struct {
	code, files, longest int
	methods              map[string]int             // by type
	in                   map[string]map[string]bool // files, by type
}

func TestHouse_NumbersAreThoseOfTheTable(t *testing.T) {
	var table strings.Builder
	table.WriteString(numbersHead)
	row := func(name string, code, files, longest any, types string) {
		table.WriteString(strings.TrimRight(fmt.Sprintf("%-32s %6v %6v %8v  %s", name, code, files, longest, types), " ") + "\n")
	}
	row("package", "code", "files", "longest", "types with many methods")
	all, total := packages(t), 0
	for _, p := range all {
		n := count(t, p)
		total += n.code
		row(strings.TrimPrefix(p.ImportPath, "heed/"), next(n.code, codeStep), n.files, next(n.longest, longestStep), n.types())
	}
	fmt.Fprintf(&table, "\n%d packages, %d,000 lines of code to the next thousand\n", len(all), next(total, 1000)/1000)
	if *Update {
		Write(t, numbersFile, table.String())
	}
	want := strings.Split(Read(t, numbersFile), "\n")
	for line := range strings.SplitSeq(table.String(), "\n") {
		must.True(t, slices.Contains(want, line),
			"%s does not have this line, or another number; if it is meant, write it with -update:\n%s", numbersFile, line)
	}
	must.Equal(t, strings.Count(table.String(), "\n"), len(want)-1, "%s has %d lines, want", numbersFile, len(want)-1)
}

// next returns n rounded up to a multiple of step.
func next(n, step int) int { return (n + step - 1) / step * step }

// types names the types with many methods.
func (n *numbers) types() string {
	var all []string
	for _, of := range slices.Sorted(maps.Keys(n.methods)) {
		if n.methods[of] > manyMethods {
			all = append(all, fmt.Sprintf("%s %d/%d", of, n.methods[of], len(n.in[of])))
		}
	}
	return strings.Join(all, ", ")
}

// count counts the files of a package, those of other systems included, and complains about
// functions that are too long.
func count(t *testing.T, p pkg) *numbers {
	t.Helper()
	paths := must.Get(filepath.Glob(filepath.Join(p.Dir, "*.go")))(t)
	n := &numbers{methods: map[string]int{}, in: map[string]map[string]bool{}}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		n.files++
		text := Read(t, path)
		n.longest = max(n.longest, strings.Count(text, "\n"))
		for line := range strings.SplitSeq(text, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				n.code++
			}
		}
		n.functions(t, p.ImportPath, path)
	}
	return n
}

// functions counts the methods of a file.
func (n *numbers) functions(t *testing.T, of, path string) {
	t.Helper()
	set := token.NewFileSet()
	f := must.Get(parser.ParseFile(set, path, nil, parser.SkipObjectResolution))(t)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		must.True(t, set.Position(fn.End()).Line-set.Position(fn.Pos()).Line < maxFunctionLines,
			"%s/%s: %s has more than %d lines", of, filepath.Base(path), fn.Name.Name, maxFunctionLines)
		if fn.Recv == nil {
			continue
		}
		name := receiverType(fn.Recv.List[0].Type)
		n.methods[name]++
		if n.in[name] == nil {
			n.in[name] = map[string]bool{}
		}
		n.in[name][filepath.Base(path)] = true
	}
}
