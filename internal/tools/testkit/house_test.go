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
)

// arrows are the only imports between our folders, outside tests. An arrow
// that is not here turns the house around.
var arrows = map[string][]string{
	"heed":                                 {"heed/internal/command", "heed/internal/sealed"},
	"heed/internal/console":                {"heed/internal/reason", "heed/internal/safetext", "heed/rules"},
	"heed/internal/state":                  {"heed/internal/ownfile", "heed/internal/safetext"},
	"heed/internal/control":                {"heed/internal/acl", "heed/internal/counts", "heed/internal/fleet", "heed/internal/ownfile", "heed/internal/pace", "heed/internal/policyfile", "heed/internal/sealed", "heed/internal/signal", "heed/proxy/limit", "heed/rules"},
	"heed/internal/config":                 {"heed/internal/access", "heed/internal/acl", "heed/internal/audit", "heed/internal/audit/store", "heed/internal/fleet", "heed/internal/ownfile", "heed/internal/pace", "heed/internal/passport", "heed/internal/signal", "heed/proxy/limit", "heed/proxy/upstream", "heed/rules"},
	"heed/internal/route":                  {"heed/cache", "heed/internal/acl", "heed/internal/audit/replay", "heed/internal/ca", "heed/internal/fleet", "heed/internal/ownfile", "heed/internal/pace", "heed/internal/passport", "heed/internal/policyfile", "heed/internal/signal/fetch", "heed/proxy/upstream", "heed/rules"},
	"heed/internal/check":                  {"heed/cache", "heed/internal/acl", "heed/internal/judge", "heed/internal/memo", "heed/internal/pace", "heed/internal/safetext", "heed/internal/signal", "heed/internal/signal/page", "heed/proxy/refusal", "heed/proxy/usage", "heed/rules", "heed/rules/lint"},
	"heed/internal/judge":                  {"heed/internal/acl", "heed/internal/signal", "heed/rules"},
	"heed/internal/admin/dashboard":        {"heed/internal/audit/replay", "heed/internal/audit/store", "heed/internal/config", "heed/internal/console", "heed/internal/control", "heed/internal/counts", "heed/internal/figures", "heed/internal/manual", "heed/internal/memo", "heed/internal/pace", "heed/internal/reason", "heed/internal/safetext", "heed/internal/table", "heed/internal/why", "heed/rules"},
	"heed/internal/figures":                {"heed/internal/reason"},
	"heed/internal/why":                    {"heed/internal/audit", "heed/internal/audit/replay", "heed/internal/audit/store", "heed/internal/reason", "heed/internal/signal", "heed/proxy/refusal", "heed/rules"},
	"heed/internal/clientenv":              {"heed/internal/ca", "heed/internal/memo", "heed/internal/safetext"},
	"heed/internal/daemon":                 {"heed/cache", "heed/internal/acl", "heed/internal/admin", "heed/internal/admin/dashboard", "heed/internal/audit", "heed/internal/audit/store", "heed/internal/ca", "heed/internal/counts", "heed/internal/fleet", "heed/internal/logs", "heed/internal/memo", "heed/internal/memory", "heed/internal/ownfile", "heed/internal/pace", "heed/internal/passport", "heed/internal/process", "heed/internal/redirect", "heed/internal/retryafter", "heed/internal/sealed", "heed/internal/signal", "heed/internal/systemd", "heed/proxy", "heed/proxy/limit", "heed/proxy/upstream", "heed/proxy/usage", "heed/rules"},
	"heed/internal/auditcmd":               {"heed/internal/audit", "heed/internal/audit/compare", "heed/internal/audit/replay", "heed/internal/audit/report", "heed/internal/audit/store", "heed/internal/ownfile", "heed/internal/safetext", "heed/internal/signal", "heed/internal/table", "heed/internal/why", "heed/rules"},
	"heed/internal/studycmd":               {"heed/internal/accesslog", "heed/internal/audit", "heed/internal/ownfile", "heed/internal/safetext", "heed/internal/study"},
	"heed/internal/plancmd":                {"heed/internal/accesslog", "heed/internal/acl", "heed/internal/figures", "heed/internal/plan", "heed/internal/reason", "heed/internal/signal", "heed/internal/table", "heed/proxy/upstream", "heed/rules"},
	"heed/internal/plan":                   {"heed/internal/coding", "heed/internal/control", "heed/internal/reason", "heed/internal/safetext", "heed/internal/sqlite", "heed/rules"},
	"heed/internal/study":                  {"heed/internal/accesslog", "heed/internal/audit", "heed/internal/audit/store", "heed/internal/figures", "heed/internal/memo", "heed/internal/safetext", "heed/internal/table", "heed/rules"},
	"heed/internal/accesslog":              {"heed/internal/audit", "heed/internal/audit/store", "heed/internal/coding", "heed/internal/memo", "heed/internal/sqlite", "heed/rules"},
	"heed/internal/table":                  {"heed/internal/figures", "heed/internal/safetext"},
	"heed/internal/ownfile":                {"heed/internal/safetext"},
	"heed/internal/run":                    {"heed/internal/acl", "heed/internal/audit", "heed/internal/audit/replay", "heed/internal/ca", "heed/internal/counts", "heed/internal/logs", "heed/internal/memo", "heed/internal/ownfile", "heed/internal/process", "heed/internal/reason", "heed/internal/sealed", "heed/internal/signal", "heed/rules"},
	"heed/internal/doctor":                 {"heed/internal/ca", "heed/internal/sealed"},
	"heed/internal/identity":               {"heed/cache", "heed/internal/ownfile", "heed/internal/passport", "heed/rules"},
	"heed/internal/command":                {"heed/internal/access", "heed/internal/acl", "heed/internal/ca", "heed/internal/counts", "heed/internal/figures", "heed/internal/fleet", "heed/internal/judge", "heed/internal/manual", "heed/internal/pace", "heed/internal/passport", "heed/internal/reason", "heed/proxy/limit", "heed/rules"},
	"heed/proxy":                           {"heed/internal/acl", "heed/internal/audit", "heed/internal/judge", "heed/internal/memo", "heed/internal/memory", "heed/internal/pace", "heed/internal/passport", "heed/internal/redirect", "heed/internal/safetext", "heed/internal/signal", "heed/proxy/balancer", "heed/proxy/catrust", "heed/proxy/clientpage", "heed/proxy/h2head", "heed/proxy/http1", "heed/proxy/icap", "heed/proxy/limit", "heed/proxy/refusal", "heed/proxy/server", "heed/proxy/upstream", "heed/proxy/usage", "heed/rules"},
	"heed/proxy/refusal":                   {"heed/internal/acl", "heed/internal/audit", "heed/internal/pace", "heed/internal/reason", "heed/internal/safetext", "heed/internal/signal", "heed/proxy/limit", "heed/proxy/upstream", "heed/rules"},
	"heed/proxy/upstream":                  {"heed/internal/acl", "heed/internal/memo", "heed/internal/memory", "heed/internal/passport", "heed/proxy/http1", "heed/rules"},
	"heed/proxy/usage":                     {"heed/internal/coding", "heed/internal/memo", "heed/internal/signal", "heed/internal/signal/page", "heed/proxy/upstream", "heed/rules"},
	"heed/internal/signal/fetch":           {"heed/internal/memo", "heed/internal/safetext", "heed/internal/signal", "heed/internal/signal/licence", "heed/rules"},
	"heed/proxy/http1":                     {"heed/internal/structured", "heed/rules"},
	"heed/proxy/server":                    {"heed/internal/memory", "heed/proxy/http1", "heed/rules"},
	"heed/proxy/balancer":                  {},
	"heed/proxy/icap":                      {"heed/proxy/http1"},
	"heed/proxy/h2head":                    {"heed/internal/safetext", "heed/proxy/limit", "heed/rules"},
	"heed/proxy/limit":                     {"heed/internal/memo"},
	"heed/proxy/catrust":                   {"heed/internal/memo"},
	"heed/proxy/clientpage":                {},
	"heed/internal/sqlite":                 {"heed/internal/ownfile"},
	"heed/internal/policyfile":             {"heed/cache", "heed/internal/ownfile", "heed/internal/sqlite"},
	"heed/cache":                           {"heed/internal/coding", "heed/internal/memo", "heed/internal/retryafter", "heed/internal/safetext", "heed/internal/signal/wall", "heed/rules"},
	"heed/internal/counts":                 {"heed/internal/acl", "heed/internal/audit", "heed/internal/memo", "heed/internal/reason", "heed/rules"},
	"heed/internal/audit":                  {"heed/internal/memo", "heed/internal/reason", "heed/internal/safetext", "heed/rules"},
	"heed/internal/audit/compare":          {"heed/internal/audit", "heed/internal/audit/store", "heed/internal/memo", "heed/internal/safetext", "heed/rules"},
	"heed/internal/audit/replay":           {"heed/internal/acl", "heed/internal/audit", "heed/internal/audit/store", "heed/internal/audit/uses", "heed/internal/judge", "heed/internal/memo", "heed/internal/reason", "heed/internal/safetext", "heed/internal/signal", "heed/rules"},
	"heed/internal/audit/report":           {"heed/internal/audit", "heed/internal/audit/store", "heed/internal/audit/uses", "heed/internal/figures", "heed/internal/memo", "heed/internal/reason", "heed/internal/safetext", "heed/internal/signal", "heed/internal/table", "heed/rules"},
	"heed/internal/audit/store":            {"heed/internal/acl", "heed/internal/audit", "heed/internal/audit/store/wal", "heed/internal/memo", "heed/internal/ownfile", "heed/internal/reason", "heed/internal/sqlite", "heed/rules"},
	"heed/internal/audit/store/wal":        {"heed/internal/ownfile"},
	"heed/internal/audit/uses":             {"heed/internal/memo", "heed/internal/signal", "heed/internal/signal/page", "heed/rules"},
	"heed/internal/coding":                 {},
	"heed/internal/structured":             {},
	"heed/internal/passport":               {"heed/internal/memo"},
	"heed/internal/signal":                 {"heed/internal/safetext", "heed/internal/signal/licence", "heed/internal/signal/page", "heed/internal/signal/wall", "heed/internal/structured", "heed/rules", "heed/rules/clock"},
	"heed/internal/signal/licence":         {"heed/internal/safetext", "heed/rules"},
	"heed/internal/signal/wall":            {"heed/internal/memo"},
	"heed/internal/signal/page":            {"heed/internal/coding", "heed/internal/memo", "heed/internal/safetext", "heed/internal/structured"},
	"heed/internal/logs":                   {"heed/internal/safetext"},
	"heed/internal/systemd":                {},
	"heed/internal/memo":                   {},
	"heed/internal/tools/walk/covered":     {"heed/internal/command"},
	"heed/internal/tools/dist":             {"heed/internal/command", "heed/internal/manual"},
	"heed/internal/memory":                 {},
	"heed/internal/process":                {},
	"heed/internal/retryafter":             {"heed/rules/clock"},
	"heed/internal/admin":                  {"heed/proxy/http1"},
	"heed/internal/access":                 {"heed/internal/memo", "heed/internal/ownfile", "heed/proxy/limit"},
	"heed/internal/reason":                 {"heed/rules"},
	"heed/internal/ca":                     {"heed/internal/memo", "heed/internal/ownfile", "heed/internal/safetext"},
	"heed/internal/fleet":                  {"heed/internal/fleet/resp", "heed/internal/memo", "heed/internal/pace"},
	"heed/internal/fleet/resp":             {},
	"heed/internal/manual":                 {},
	"heed/internal/pace":                   {"heed/internal/retryafter", "heed/rules"},
	"heed/internal/redirect":               {"heed/rules"},
	"heed/internal/safetext":               {},
	"heed/internal/sealed":                 {"heed/internal/ownfile"},
	"heed/internal/acl":                    {"heed/internal/memo", "heed/internal/passport", "heed/internal/signal", "heed/rules"},
	"heed/rules":                           {"heed/internal/memo", "heed/rules/clock"},
	"heed/rules/clock":                     {"heed/internal/memo"},
	"heed/rules/lint":                      {"heed/internal/memo", "heed/rules"},
	"heed/internal/tools/testkit":          {},
	"heed/internal/tools/testkit/progress": {},
	"heed/internal/tools/audittest":        {"heed/internal/audit", "heed/internal/audit/store", "heed/rules"},
	"heed/internal/tools/bench":            {"heed/internal/ca"},
	"heed/internal/tools/bench/profiled":   {"heed/internal/command"},
	"heed/internal/tools/testkit/fixture":  {"heed/internal/ca", "heed/internal/config", "heed/internal/tools/testkit"},
}

// rooms are the packages of the verbs. Each may import those before it, in addition
// to its arrows.
var rooms = []string{
	"heed/internal/console", "heed/internal/state", "heed/internal/control", "heed/internal/config", "heed/internal/route", "heed/internal/why", "heed/internal/check",
	"heed/internal/clientenv", "heed/internal/daemon", "heed/internal/auditcmd", "heed/internal/studycmd", "heed/internal/plancmd", "heed/internal/run", "heed/internal/doctor", "heed/internal/identity", "heed/internal/command",
}

// homes are the folders that outside packages live in, one each.
var homes = map[string]string{
	"github.com/elazarl/goproxy":         "heed/proxy",
	"github.com/coreos/go-systemd":       "heed/internal/systemd",
	"github.com/dunglas/httpsfv":         "heed/internal/structured",
	"github.com/patrickmn/go-cache":      "heed/cache",
	"github.com/andybalholm/brotli":      "heed/internal/coding",
	"github.com/klauspost/compress":      "heed/internal/coding",
	"github.com/pires/go-proxyproto":     "heed/proxy/balancer",
	"github.com/redis/go-redis":          "heed/internal/fleet",
	"github.com/alecthomas/kong":         "heed/internal/command",
	"github.com/pelletier/go-toml":       "heed/internal/config",
	"modernc.org/sqlite":                 "heed/internal/sqlite",
	"github.com/google/uuid":             "heed/internal/audit",
	"github.com/yuin/goldmark":           "heed/internal/admin/dashboard",
	"software.sslmate.com/src/go-pkcs12": "heed/internal/ca",
	"github.com/google/nftables":         "heed/internal/sealed",
	"github.com/rogpeppe/go-internal":    "heed/internal/audit/report",
}

// measured are the outside packages that the benchmark compares heed with.
var measured = map[string]string{"heed/internal/tools/bench": "github.com/elazarl/goproxy"}

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
		if at := slices.Index(rooms, p.ImportPath); at >= 0 {
			allowed = slices.Concat(allowed, rooms[:at])
		}
		for _, i := range p.Imports {
			if (i == "heed" || strings.HasPrefix(i, "heed/")) && !slices.Contains(allowed, i) {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
}

func TestHouse_OnlyTheStoreOfTheRecordReadsItWithSQL(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != "heed/internal/sqlite" && p.ImportPath != "heed/internal/audit/store" && slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, "database/sql") }) {
			t.Errorf("%s uses SQL: the reader of heed/internal/audit/store is for that", p.ImportPath)
		}
	}
}

// Closing a descriptor of a database releases the locks that SQLite holds in this process:
// where databases are used, heed/internal/ownfile opens them outside SQLite.
func TestHouse_DatabasesAreOpenedInOneRoom(t *testing.T) {
	opens := regexp.MustCompile(`\bos\.(Open|OpenFile|ReadFile|Create)\(`)
	allowed := []string{
		"heed/internal/sqlite/sqlite.go",                                       // the new file of a copy
		"heed/internal/accesslog/source.go", "heed/internal/accesslog/warc.go", // logs, which are no databases
	}
	for _, p := range packages(t) {
		if p.ImportPath != "heed/internal/sqlite" && !slices.Contains(p.Imports, "heed/internal/sqlite") {
			continue
		}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
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
			case home != "" && home != p.ImportPath && measured[p.ImportPath] != module:
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
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for module := range files {
				if measured[p.ImportPath] != module && slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return strings.Contains(i.Path.Value, module) }) {
					files[module] = append(files[module], p.ImportPath+"/"+name)
				}
			}
		}
	}
	for module, want := range map[string]string{"github.com/elazarl/goproxy": "heed/proxy/hook.go", "github.com/patrickmn/go-cache": "heed/cache/memory.go"} {
		if !slices.Equal(files[module], []string{want}) {
			t.Errorf("%s is imported by %q, want %s and nothing else", module, files[module], want)
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

// The methods of a type are at most 30, in at most five files, unless the package
// comment says why its methods are more.
func TestHouse_MethodsOfATypeAreTogether(t *testing.T) {
	for _, p := range packages(t) {
		count, files := map[string]int{}, map[string]map[string]bool{}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
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
			if (n > 30 || len(files[of]) > 5) && !reason.MatchString(comment) {
				t.Errorf("%s.%s has %d methods in %d files, and the package comment does not say why", p.ImportPath, of, n, len(files[of]))
			}
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
