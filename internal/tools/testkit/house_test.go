package testkit

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// floors are the rooms of the house from the ground up, each of which may import those
// before it and nothing else of heed, outside tests. A room is a folder of internal/, or
// one of the four at the top, with all that is in it.
var floors = []string{
	"internal/base", "rules", "internal/sealed", "internal/trust", "internal/judge", "internal/pace", "cache", "internal/output",
	"internal/audit", "proxy", "internal/control", "internal/analysis", "internal/config", "internal/check",
	"internal/daemon", "internal/command", "main.go", "internal/tools",
}

// roomOf returns the room of a package.
func roomOf(path string) string {
	path, inside := strings.CutPrefix(path, "heed/")
	if !inside {
		return "main.go"
	}
	parts := strings.SplitN(path, "/", 3)
	if parts[0] == "internal" && len(parts) > 1 {
		return "internal/" + parts[1]
	}
	return parts[0]
}

// homes are the folders that outside packages live in, one each.
var homes = map[string]string{
	"github.com/elazarl/goproxy":         "heed/proxy",
	"github.com/coreos/go-systemd":       "heed/internal/daemon/systemd",
	"github.com/dunglas/httpsfv":         "heed/internal/base/structured",
	"github.com/patrickmn/go-cache":      "heed/cache",
	"github.com/andybalholm/brotli":      "heed/internal/base/coding",
	"github.com/klauspost/compress":      "heed/internal/base/coding",
	"github.com/pires/go-proxyproto":     "heed/proxy/balancer",
	"github.com/redis/go-redis":          "heed/internal/pace/fleet",
	"github.com/alecthomas/kong":         "heed/internal/command",
	"github.com/pelletier/go-toml":       "heed/internal/config",
	"modernc.org/sqlite":                 "heed/internal/base/sqlite",
	"github.com/google/uuid":             "heed/internal/audit",
	"github.com/yuin/goldmark":           "heed/internal/daemon/admin/dashboard",
	"software.sslmate.com/src/go-pkcs12": "heed/internal/trust/ca",
	"github.com/google/nftables":         "heed/internal/sealed",
	"github.com/rogpeppe/go-internal":    "heed/internal/audit/report",
}

// ofTools are the outside packages that a tool has too: what the benchmark compares heed with, and
// the grammar that the documents are made from.
var ofTools = map[string]string{"heed/internal/tools/bench": "github.com/elazarl/goproxy", "heed/internal/tools/dist": "github.com/alecthomas/kong"}

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
	must.OK(t, err, "go list")
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p pkg
		must.OK(t, d.Decode(&p))
		if len(p.GoFiles) > 0 && !strings.Contains(p.ImportPath, "/testdata/") {
			all = append(all, p)
		}
	}
	return all
}

func TestHouse_ArrowsRunOneWay(t *testing.T) {
	empty := slices.Clone(floors)
	for _, p := range packages(t) {
		room := roomOf(p.ImportPath)
		floor := slices.Index(floors, room)
		must.True(t, floor >= 0, "%s is in no room of the list of floors", p.ImportPath)
		empty = slices.DeleteFunc(empty, func(other string) bool { return other == room })
		for _, i := range p.Imports {
			must.True(t, i != "heed" && !strings.HasPrefix(i, "heed/") || slices.Index(floors, roomOf(i)) <= floor,
				"%s imports %s, which is above it", p.ImportPath, i)
		}
	}
	must.True(t, len(empty) == 0, "nothing is in %q", empty)
}

func TestHouse_OnlyTheStoreOfTheRecordReadsItWithSQL(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != "heed/internal/base/sqlite" && p.ImportPath != "heed/internal/audit/store" && slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, "database/sql") }) {
			t.Errorf("%s uses SQL: the reader of heed/internal/audit/store is for that", p.ImportPath)
		}
	}
}

// Closing a descriptor of a database releases the locks that SQLite holds in this process:
// where databases are used, heed/internal/base/ownfile opens them outside SQLite.
func TestHouse_DatabasesAreOpenedInOneRoom(t *testing.T) {
	opens := regexp.MustCompile(`\bos\.(Open|OpenFile|ReadFile|Create)\(`)
	allowed := []string{
		"heed/internal/base/sqlite/sqlite.go",                                                    // the new file of a copy
		"heed/internal/analysis/accesslog/source.go", "heed/internal/analysis/accesslog/warc.go", // logs, which are no databases
	}
	for _, p := range packages(t) {
		if p.ImportPath != "heed/internal/base/sqlite" && !slices.Contains(p.Imports, "heed/internal/base/sqlite") {
			continue
		}
		for _, name := range p.GoFiles {
			text := must.Get(os.ReadFile(filepath.Join(p.Dir, name)))(t)
			if found := opens.Find(text); found != nil && !slices.Contains(allowed, p.ImportPath+"/"+name) {
				t.Errorf("%s/%s: %s: a database is opened with ownfile.Claim, Head or OpenBeside", p.ImportPath, name, found)
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
			case home == "" && p.ImportPath != "heed/internal/tools/testkit":
				t.Errorf("%s imports %s, which has no home", p.ImportPath, i)
			case home != "" && home != p.ImportPath && ofTools[p.ImportPath] != module:
				t.Errorf("%s imports %s, whose home is %s", p.ImportPath, i, home)
			case !strings.Contains(comment, module):
				t.Errorf("the package comment of %s does not name %s", p.ImportPath, module)
			}
		}
	}
}

// The two libraries that every request passes through have one door each: without it they
// would be in go.mod only. What the benchmark compares heed with does not count.
func TestHouse_GoproxyAndGoCacheAreImportedInExactlyOneFile(t *testing.T) {
	files := map[string][]string{"github.com/elazarl/goproxy": nil, "github.com/patrickmn/go-cache": nil}
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			f := must.Get(parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly))(t)
			for module := range files {
				if ofTools[p.ImportPath] != module && slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return strings.Contains(i.Path.Value, module) }) {
					files[module] = append(files[module], p.ImportPath+"/"+name)
				}
			}
		}
	}
	for module, want := range map[string]string{"github.com/elazarl/goproxy": "heed/proxy/hook.go", "github.com/patrickmn/go-cache": "heed/cache/memory.go"} {
		must.True(t, slices.Equal(files[module], []string{want}),
			"%s is imported by %q, want %s and nothing else", module, files[module], want)
	}
}

func TestHouse_EveryExportedNameIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		must.True(t, packageComment(t, p) != "", "%s has no package comment", p.ImportPath)
		for _, name := range p.GoFiles {
			for _, missing := range undocumented(t, filepath.Join(p.Dir, name)) {
				t.Errorf("%s/%s: %s has no doc comment", p.ImportPath, name, missing)
			}
		}
	}
}

// The methods of a type are at most 30, in at most five files, unless the package
// comment says why its methods are more.
func TestHouse_MethodsOfATypeAreTogether(t *testing.T) {
	for _, p := range packages(t) {
		count, files := map[string]int{}, map[string]map[string]bool{}
		for _, name := range p.GoFiles {
			f := must.Get(parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution))(t)
			for _, d := range f.Decls {
				m, ok := d.(*ast.FuncDecl)
				if !ok || m.Recv == nil {
					continue
				}
				of := receiverType(m.Recv.List[0].Type)
				count[of]++
				if files[of] == nil {
					files[of] = map[string]bool{}
				}
				files[of][name] = true
			}
		}
		comment := strings.Join(strings.Fields(packageComment(t, p)), " ")
		for of, n := range count {
			reason := regexp.MustCompile(`\b` + of + `\b[^.]*\bmethods\b`)
			must.True(t, n <= 30 && len(files[of]) <= 5 || reason.MatchString(comment),
				"%s.%s has %d methods in %d files, and the package comment does not say why", p.ImportPath, of, n, len(files[of]))
		}
	}
}

// receiverType returns the name of a receiver's type without pointer and parameters.
func receiverType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverType(e.X)
	case *ast.IndexExpr:
		return receiverType(e.X)
	case *ast.IndexListExpr:
		return receiverType(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func packageComment(t *testing.T, p pkg) string {
	t.Helper()
	comment := ""
	for _, name := range p.GoFiles {
		f := must.Get(parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments))(t)
		comment += f.Doc.Text()
	}
	return comment
}

// undocumented returns the exported names of a file without a comment, and
// init functions, of which there are none.
func undocumented(t *testing.T, path string) (names []string) {
	t.Helper()
	f := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments))(t)
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
