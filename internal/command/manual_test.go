package command

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"heed/internal/config"
	"heed/internal/judge/reason"
	"heed/internal/output/console"
	"heed/internal/output/manual"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
	"heed/proxy/limit"
	"heed/proxy/refusal"
)

// The lists of the manual are held against the code that they describe.

// topic returns the text of a topic.
func topic(t *testing.T, name string) string {
	t.Helper()
	found, ok := manual.Lookup(name)
	must.Need(t, ok, "the manual has no topic %s", name)
	return found.Text
}

// chapter returns what follows a heading of the manual, up to the next one.
func chapter(text, heading string) (string, bool) {
	_, after, found := strings.Cut(text, "\n## "+heading)
	if !found {
		return "", false
	}
	_, after, _ = strings.Cut(after, "\n")
	after, _, _ = strings.Cut(after, "\n## ")
	return after, true
}

// model is the command line as the parser knows it.
func model(t *testing.T) *kong.Application {
	t.Helper()
	return must.Get(Model())(t)
}

// Each part of help.txt is that of a command, and each command without others below it has one.
func TestHelpText_IsThatOfItsCommands(t *testing.T) {
	t.Parallel()
	parts := 0
	var count func(node *kong.Node)
	count = func(node *kong.Node) {
		if node.Detail != "" && node.Type == kong.CommandNode {
			parts++
		} else if len(node.Children) == 0 {
			t.Errorf("%s has no part in help.txt", node.Path())
		}
		for _, below := range node.Children {
			count(below)
		}
	}
	count(model(t).Node)
	written := strings.Count(helpText, "\n## ")
	must.True(t, parts == written, "%d commands have a part of help.txt, which has %d", parts, written)
}

// Each verb is parsed by a grammar of this verb only, with all of its commands and
// flags. Without a verb, and for the command help, the grammar is whole.
func TestGrammarFor_HoldsTheVerbThatIsNamed(t *testing.T) {
	t.Parallel()
	nodes := func(g any) map[string]string {
		parser := must.Get(kong.New(g, kong.Name("heed"), kong.Vars{"version": "0"}))(t)
		all := map[string]string{}
		for _, verb := range parser.Model.Children {
			for _, leaf := range verb.Leaves(false) {
				all[verb.Name] += leaf.Summary() + "\n"
				for _, flag := range leaf.Flags {
					all[verb.Name] += flag.Summary() + "\n"
				}
			}
			all[verb.Name] += verb.Help
		}
		return all
	}
	whole := nodes(new(grammar))
	for verb, text := range whole {
		want := map[string]string{verb: text}
		if verb == "help" {
			want = whole
		}
		must.Same(t, nodes(grammarFor([]string{verb, "--help"})), want, "%s: the grammar", verb)
	}
	for _, args := range [][]string{nil, {""}, {"--help"}, {"audi"}, {"Audit"}, {"version"}} {
		got := nodes(grammarFor(args))
		must.True(t, maps.Equal(got, whole), "%q: the grammar holds %d verbs, want %d", args, len(got), len(whole))
	}
}

func TestManual_ListsEveryCommandAndFlag(t *testing.T) {
	t.Parallel()
	commands, option := topic(t, "commands"), regexp.MustCompile(`--[a-z-]+`)
	for _, verb := range model(t).Leaves(true) {
		path := "heed " + strings.TrimPrefix(verb.Path(), "heed ")
		text, ok := chapter(commands, path+"\n")
		if !ok {
			t.Errorf("the topic commands has no heading %q", path)
			continue
		}
		must.Contain(t, text, verb.Help, "%s: the topic commands does not contain %q", path, verb.Help)
		var flags []string
		for _, flag := range verb.Flags {
			if !flag.Hidden {
				flags = append(flags, "--"+flag.Name)
			}
		}
		synopsis := strings.Join(regexp.MustCompile(`(?m)^    .*`).FindAllString(text, -1), "\n")
		written := option.FindAllString(synopsis, -1)
		if slices.Sort(flags); !slices.Equal(flags, slices.Sorted(slices.Values(written))) {
			t.Errorf("%s: the topic commands lists the flags %v, the command has %v", path, written, flags)
		}
	}
}

// The flags that bound a window of time have the same two pairs of names everywhere.
func TestFlags_AWindowOfTimeHasOneSetOfNames(t *testing.T) {
	t.Parallel()
	found := 0
	for _, verb := range model(t).Leaves(true) {
		for _, flag := range verb.Flags {
			names := append([]string{flag.Name}, flag.Aliases...)
			for _, pair := range [][]string{{"since", "from"}, {"until", "to"}} {
				if slices.Contains(names, pair[0]) || slices.Contains(names, pair[1]) {
					found++
					must.Same(t, names, pair, "%s: a flag is named", verb.Path())
				}
			}
		}
	}
	must.True(t, found >= 6, "%d flags bound a window of time", found)
}

// Either pair, or one of each, selects the same window.
func TestFlags_EitherPairOfNamesSelectsAWindow(t *testing.T) {
	t.Parallel()
	for _, verb := range [][]string{{"list"}, {"report"}, {"export", "--jsonl"}} {
		for _, pair := range [][2]string{{"--since", "--until"}, {"--from", "--to"}, {"--from", "--until"}, {"--since", "--to"}} {
			args := append([]string{"audit"}, append(verb, pair[0], "2026-05-04", pair[1]+"=2026-05-03")...)
			heed(t, "", args...).is(t, console.ExitUsage, "", "heed: --since is not before --until: the window is empty\nExchange them\n")
		}
	}
}

func TestManual_ATopicWithTheNameOfACommandDescribesIt(t *testing.T) {
	t.Parallel()
	for _, verb := range model(t).Children {
		topic, ok := manual.Lookup(verb.Name)
		if !ok {
			continue
		}
		// It is printed in place of the command's help, and has to do for it.
		for _, leaf := range verb.Leaves(true) {
			if name := "heed " + strings.TrimPrefix(leaf.Path(), "heed "); leaf == verb || !strings.Contains(topic.Text, name) {
				t.Errorf("`heed help %s` means a command and a topic, which does not have %q", verb.Name, name)
			}
		}
	}
}

func TestHelp_EveryLineBeginsWithAVerbAndIsShort(t *testing.T) {
	t.Parallel()
	check := func(where, help string, most int) {
		if help == "" || help[0] < 'A' || help[0] > 'Z' || !strings.HasSuffix(help, ".") || len(help) > most || strings.Contains(help, ". ") && most < 70 {
			t.Errorf("%s: %q is not one sentence of up to %d characters", where, help, most)
		}
	}
	for _, verb := range model(t).Leaves(true) {
		check(verb.Path(), verb.Help, 62) // a line of `heed --help`
		for _, flag := range verb.Flags {
			if flag.Hidden {
				continue
			}
			check(verb.Path()+" --"+flag.Name, flag.Help, 76)
		}
	}
}

// keys returns the names of the settings in t, grouped by table as the manual
// writes them: "[audit]", "[[client]]", or "" for those above the first table.
func keys(t reflect.Type, table string, found map[string][]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, inner := f.Tag.Get("toml"), f.Type
		brackets := "[%s]"
		if inner.Kind() == reflect.Slice {
			inner, brackets = inner.Elem(), "[[%s]]"
		}
		switch {
		case f.Anonymous:
			keys(f.Type, table, found)
		case key == "" || key == "-":
		case inner.Kind() == reflect.Struct && inner != reflect.TypeFor[config.Date]():
			keys(inner, fmt.Sprintf(brackets, key), found)
		default:
			found[table] = append(found[table], key)
		}
	}
}

// The topic settings ends with proxy.toml, which package config holds against the keys. The
// keys that most people change are at its top, with where they are.
func TestManual_SettingsHasProxyTOML(t *testing.T) {
	t.Parallel()
	shown, found := strings.ReplaceAll(heed(t, "", "help", "settings").out, "\n    ", "\n"), map[string][]string{}
	file := string(testkit.BuiltIn(t))
	must.Contain(t, shown, strings.TrimSpace(file), "the topic settings does not end with proxy.toml")
	keys(reflect.TypeFor[config.Config](), "", found)
	_, top, _ := strings.Cut(file, "most people change")
	top, _, _ = strings.Cut(top, "\n\n")
	first := regexp.MustCompile(`(?m)^#   ([a-z_]+) +(?:in (\[\[?[a-z]+\]\]?) +)?`).FindAllStringSubmatch(top, -1)
	for _, m := range first {
		must.True(t, slices.Contains(found[m[2]], m[1]), "proxy.toml begins with %s in %q, which is no key", m[1], m[2])
	}
	must.True(t, len(first) == 5, "proxy.toml begins with %d keys, want 5", len(first))
}

func TestManual_ListsEveryReasonWithItsStatusInTheWordsOfReports(t *testing.T) {
	t.Parallel()
	oneLine := func(text string) string { return strings.Join(strings.Fields(text), " ") + " " }
	answers := topic(t, "answers")
	refusing, _ := chapter(answers, "Reasons that refuse")
	others, _ := chapter(answers, "Reasons that allow")
	for _, info := range reason.All() {
		words := fmt.Sprintf(": %s. %s ", info.Words, info.Sentence)
		withStatus := fmt.Sprintf("- `%s`, %d%s", info.Reason, info.Status, words)
		if !strings.Contains(oneLine(refusing), withStatus) && !strings.Contains(oneLine(others), fmt.Sprintf("- `%s`%s", info.Reason, words)) {
			t.Errorf("the topic answers does not have\n%s", withStatus)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^- `([a-z-]+)`").FindAllStringSubmatch(refusing+others, -1) {
		must.True(t, slices.ContainsFunc(reason.All(), func(i reason.Info) bool { return string(i.Reason) == m[1] }),
			"the topic answers explains %s, which is no reason", m[1])
	}
	for _, c := range reason.Classes() {
		must.Contain(t, answers, "\n    "+c.String()+" ", "the topic answers does not explain the class %q", c)
	}
}

func TestManual_ListsTheStatusOfEveryLimit(t *testing.T) {
	t.Parallel()
	_, row, _ := strings.Cut(topic(t, "answers"), "\n- `limit`, ")
	row, _, _ = strings.Cut(row, "\n- ")
	for kind := limit.Connections; kind <= limit.OpenFiles; kind++ {
		must.Contain(t, row, strconv.Itoa(kind.Status()), "the topic answers does not list %d, the status of %s", kind.Status(), kind)
	}
}

// members returns the names of the JSON members of t and of those within them.
func members(t reflect.Type) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(append(names, name), members(t.Field(i).Type)...)
	}
	return names
}

func TestManual_ListsEveryMemberOfARefusal(t *testing.T) {
	t.Parallel()
	list, _, _ := strings.Cut(topic(t, "answers"), "\n## ")
	for _, name := range members(reflect.TypeFor[refusal.Problem]()) {
		must.True(t, regexp.MustCompile(`(?m)^    .*\b`+name+`\b`).MatchString(list),
			"the topic answers does not explain %s", name)
	}
}

// logFields returns the names of the attributes that the package audit logs:
// the constant first arguments of slog.String and the like, and of appendText.
func logFields(t *testing.T) []string {
	t.Helper()
	paths := must.Get(filepath.Glob("../audit/*.go"))(t)
	var found []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			at := -1
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				if x, ok := f.X.(*ast.Ident); ok && x.Name == "slog" && f.Sel.Name != "NewRecord" {
					at = 0
				}
			case *ast.Ident:
				if f.Name == "appendText" {
					at = 1
				}
			}
			if at >= 0 && at < len(call.Args) {
				if key, ok := call.Args[at].(*ast.BasicLit); ok && key.Kind == token.STRING {
					name, _ := strconv.Unquote(key.Value)
					found = append(found, name)
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestManual_ListsEveryFieldOfTheLog(t *testing.T) {
	t.Parallel()
	fields := logFields(t)
	must.Need(t, len(fields) >= 50, "the code has %d fields: %v", len(fields), fields)
	var written []string
	for line := range strings.Lines(topic(t, "log")) {
		if !strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "     ") {
			continue
		}
		names, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		for name := range strings.SplitSeq(names, ",") {
			written = append(written, strings.TrimSpace(name))
		}
	}
	for _, field := range fields {
		must.True(t, slices.Contains(written, field), "the topic log does not explain the field %s", field)
	}
	for _, field := range written {
		// slog writes the time
		must.True(t, field == "time" || slices.Contains(fields, field), "the topic log explains %s, which is not logged", field)
	}
}

func TestManual_TestsThatItNamesExist(t *testing.T) {
	t.Parallel()
	folder, pattern := regexp.MustCompile(` \./(\S+)`), regexp.MustCompile(`-(?:run|fuzz|bench) '?([\w|]+)`)
	found := 0
	for _, topic := range manual.Topics() {
		for line := range strings.Lines(topic.Text) {
			if !strings.Contains(line, "go test ") {
				continue
			}
			tests := ""
			for _, m := range folder.FindAllStringSubmatch(line, -1) {
				paths, _ := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(m[1]), "*_test.go"))
				must.True(t, len(paths) > 0 || m[1] == "...", "%s: there are no tests in %s", topic.Name, m[1])
				for _, path := range paths {
					text := must.Get(os.ReadFile(path))(t)
					tests += string(text)
				}
			}
			for _, m := range pattern.FindAllStringSubmatch(line, -1) {
				for name := range strings.SplitSeq(m[1], "|") {
					if found++; name != "xxx" && !regexp.MustCompile(`\nfunc \w*`+name).MatchString(tests) {
						t.Errorf("%s: no test is called %s: %s", topic.Name, name, line)
					}
				}
			}
		}
	}
	must.True(t, found >= 10, "the manual names %d tests", found)
}

func TestReadme_IsAFrontPageThatLeadsToTheManual(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "README.md")))(t)
	readme := string(text)
	lines := strings.Count(readme, "\n")
	must.True(t, lines <= 200, "the README has %d lines", lines)
	for _, m := range regexp.MustCompile("`heed help ([a-z]+)`|internal/output/manual/([a-z]+)\\.md").FindAllStringSubmatch(readme, -1) {
		if _, ok := manual.Lookup(m[1] + m[2]); !ok {
			t.Errorf("the README names the topic %s, which does not exist", m[1]+m[2])
		}
	}
	commands, _ := chapter(readme, "Commands\n")
	for _, verb := range childNames(model(t).Node) {
		must.True(t, regexp.MustCompile(`(?m)^    heed.{0,14}\b`+verb+`\b`).MatchString(commands),
			"the README does not list heed %s", verb)
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)|`+"`((?:internal|proxy|rules|cache)/[a-z./]*)`").FindAllStringSubmatch(readme, -1) {
		_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(m[1]+m[2])))
		must.True(t, err == nil, "the README names %s: %v", m[1]+m[2], err)
	}
}

// The folders, declared names and files that the manual names as places to look exist; a
// file without a folder is in the one named before.
func TestManual_PlacesToLookExist(t *testing.T) {
	t.Parallel()
	topic, _ := manual.Lookup("development")
	_, source, _ := strings.Cut(topic.Text, "## Where everything is")
	for _, folder := range regexp.MustCompile(`\b(?:internal|proxy|rules|cache)/[a-z0-9/]*(?:\.go)?`).FindAllString(source, -1) {
		_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(folder)))
		must.True(t, err == nil, "the manual names %s: %v", folder, err)
	}
	_, places, found := strings.Cut(source, "Where to look:")
	must.Need(t, found, "the manual names no places to look")
	folder := ""
	for _, m := range regexp.MustCompile("`([a-z/]+/)`|([a-z/]+\\.go)").FindAllStringSubmatch(places, -1) {
		file := m[2]
		if m[1] != "" {
			folder = m[1]
		} else if !strings.Contains(file, "/") {
			file = folder + file
		}
		_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(file)))
		must.True(t, err == nil, "the manual names %s: %v", file, err)
	}
	code := sourceText(t)
	for _, m := range regexp.MustCompile("`(?:[A-Z]\\w*\\.)?([A-Za-z]+)`").FindAllStringSubmatch(places, -1) {
		if !regexp.MustCompile(`(?m)^((type|func|func \(.*\)|var|const) ` + m[1] + `\b|\t` + m[1] + `( +\w+)? += )`).MatchString(code) {
			t.Errorf("the manual names %s, which is not declared", m[1])
		}
	}
}

// sourceText is all Go source of heed, tests included, its rules for alerts and its services.
func sourceText(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	must.OK(t, filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".go", ".yml", ".service"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	}))
	return code.String()
}

func TestHelp_PrintsTopicsAndCommands(t *testing.T) {
	t.Parallel()
	list := heed(t, "", "help")
	for _, topic := range manual.Topics() {
		must.Contain(t, list.out, fmt.Sprintf("\n  %-13s %s\n", topic.Name, topic.Title), "`heed help` does not list %s", topic.Name)
		must.True(t, topic.Section != "" && strings.Contains(list.out, "\n"+topic.Section+"\n"),
			"`heed help` has no section %q", topic.Section)
	}
	heed(t, "", "help", "Pacing").is(t, 0, topic(t, "pacing"), "")
	heed(t, "", "help", "run").is(t, 0, heed(t, "", "run", "--help").out, "")
	heed(t, "", "help", "audit", "list").is(t, 0, heed(t, "", "audit", "list", "--help").out, "")
	heed(t, "", "help", "help").is(t, 0, heed(t, "", "help", "--help").out, "")
}

func TestHelp_AnUnknownTopicListsTheNearest(t *testing.T) {
	t.Parallel()
	heed(t, "", "help", "pacng").is(t, console.ExitUsage, "", "heed: there is no topic \"pacng\"; the nearest are: pacing\nSee `heed help` for the list\n")
	if s := heed(t, "", "help", "other"); !strings.HasPrefix(s.errors, `heed: there is no topic "other"; the nearest are: other-proxies, `) {
		t.Errorf("other: stderr %q", s.errors)
	}
	heed(t, "", "help", "xyzzy").is(t, console.ExitUsage, "", "heed: there is no topic \"xyzzy\"\nSee `heed help` for the list\n")
	if s := heed(t, "", "help", "wget"); s.status != console.ExitUsage || !strings.HasPrefix(s.errors, `heed: there is no topic "wget"; the nearest are: downloads, `) {
		t.Errorf("wget: status %d, stderr %q", s.status, s.errors)
	}
}

// Wherever the source names a topic, it names one that exists.
func TestHelp_TheSourceNamesTopicsThatExist(t *testing.T) {
	t.Parallel()
	verbs, found := childNames(model(t).Node), 0
	for _, m := range regexp.MustCompile(`heed help ([a-z]+(?:-[a-z]+)*)`).FindAllStringSubmatch(sourceText(t), -1) {
		found++
		if _, ok := manual.Lookup(m[1]); !ok && !slices.Contains(verbs, m[1]) {
			t.Errorf("the source names the topic %s, which does not exist", m[1])
		}
	}
	must.True(t, found >= 20, "the source names %d topics", found)
}
