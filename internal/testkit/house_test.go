package testkit

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// arrows are the only imports between our folders, outside tests. An arrow
// that is not here turns the house around.
var arrows = map[string][]string{
	"heed":                          {"heed/internal/command"},
	"heed/internal/command":         {"heed/cache", "heed/internal/access", "heed/internal/audit", "heed/internal/audit/store", "heed/internal/audit/replay", "heed/internal/audit/report", "heed/internal/ca", "heed/internal/fleet", "heed/internal/pace", "heed/internal/terms", "heed/proxy", "heed/rules"},
	"heed/proxy":                    {"heed/internal/audit", "heed/internal/terms", "heed/rules"},
	"heed/cache":                    {"heed/rules"},
	"heed/internal/audit":           {"heed/rules"},
	"heed/internal/audit/store":     {"heed/internal/audit", "heed/rules"},
	"heed/internal/audit/replay":    {"heed/internal/audit/store", "heed/internal/terms", "heed/rules"},
	"heed/internal/audit/audittest": {"heed/internal/audit", "heed/internal/audit/store", "heed/rules"},
	"heed/internal/audit/report":    {"heed/internal/audit/store", "heed/rules"},
	"heed/internal/access":          {},
	"heed/internal/ca":              {},
	"heed/internal/fleet":           {},
	"heed/internal/pace":            {"heed/rules"},
	"heed/internal/terms":           {"heed/rules"},
	"heed/rules":                    {},
	"heed/internal/testkit":         {},
}

// homes are the folders that outside packages live in, one each.
var homes = map[string]string{
	"github.com/elazarl/goproxy":         "heed/proxy",
	"github.com/dunglas/httpsfv":         "heed/proxy",
	"github.com/patrickmn/go-cache":      "heed/cache",
	"github.com/andybalholm/brotli":      "heed/cache",
	"github.com/klauspost/compress":      "heed/cache",
	"go.etcd.io/bbolt":                   "heed/cache",
	"github.com/redis/go-redis":          "heed/internal/fleet",
	"github.com/alecthomas/kong":         "heed/internal/command",
	"github.com/pelletier/go-toml":       "heed/internal/command",
	"modernc.org/sqlite":                 "heed/internal/audit/store",
	"github.com/google/uuid":             "heed/internal/audit",
	"software.sslmate.com/src/go-pkcs12": "heed/internal/ca",
	"github.com/rogpeppe/go-internal":    "heed/internal/audit/report",
}

type pkg struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", "./...")
	cmd.Dir = Root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 && !strings.Contains(p.ImportPath, "/testdata/") {
			all = append(all, p)
		}
	}
	return all
}

func TestHouse_ArrowsRunOneWay(t *testing.T) {
	for _, p := range packages(t) {
		allowed, known := arrows[p.ImportPath]
		if !known {
			t.Errorf("folder %s is not in the list of arrows", p.ImportPath)
		}
		for _, i := range p.Imports {
			if (i == "heed" || strings.HasPrefix(i, "heed/")) && !slices.Contains(allowed, i) {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

func TestHouse_EachOutsidePackageHasOneHome(t *testing.T) {
	for _, p := range packages(t) {
		comment := packageComment(t, p)
		for _, i := range p.Imports {
			first, _, _ := strings.Cut(i, "/")
			if !strings.Contains(first, ".") || strings.HasPrefix(i, "golang.org/x/") {
				continue
			}
			home, module := "", i
			for prefix, h := range homes {
				if i == prefix || strings.HasPrefix(i, prefix+"/") {
					home, module = h, prefix
				}
			}
			switch {
			case home == "" && p.ImportPath != "heed/internal/testkit":
				t.Errorf("%s imports %s, which has no home", p.ImportPath, i)
			case home != "" && home != p.ImportPath:
				t.Errorf("%s imports %s, whose home is %s", p.ImportPath, i, home)
			case !strings.Contains(comment, module):
				t.Errorf("the package comment of %s does not name %s", p.ImportPath, module)
			}
		}
	}
}

func TestHouse_GoproxyAndGoCacheAreImportedInOneFile(t *testing.T) {
	for _, p := range packages(t) {
		for _, module := range []string{"github.com/elazarl/goproxy", "github.com/patrickmn/go-cache"} {
			var files []string
			for _, name := range p.GoFiles {
				f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return strings.Contains(i.Path.Value, module) }) {
					files = append(files, name)
				}
			}
			if len(files) > 1 {
				t.Errorf("%s is imported by %v: one file is enough", module, files)
			}
		}
	}
}

func TestHouse_EveryExportedNameIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if packageComment(t, p) == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
		for _, name := range p.GoFiles {
			for _, missing := range undocumented(t, filepath.Join(p.Dir, name)) {
				t.Errorf("%s/%s: %s has no doc comment", p.ImportPath, name, missing)
			}
		}
	}
}

func packageComment(t *testing.T, p pkg) string {
	t.Helper()
	comment := ""
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		comment += f.Doc.Text()
	}
	return comment
}

// undocumented returns the exported names of a file without a comment, and
// init functions, of which there are none.
func undocumented(t *testing.T, path string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == "init" && d.Recv == nil || d.Name.IsExported() && d.Doc == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				names = append(names, undocumentedSpec(d, s)...)
			}
		}
	}
	return names
}

func undocumentedSpec(d *ast.GenDecl, s ast.Spec) (names []string) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
			names = append(names, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				names = append(names, n.Name)
			}
		}
	}
	return names
}
