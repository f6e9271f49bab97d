package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heed/internal/output/manual"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func outline(t *testing.T) *verb {
	t.Helper()
	return must.Get(readOutline())(t)
}

// printed runs a program with stdin and returns what it prints.
func printed(t *testing.T, stdin, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testkit.Program(t, name), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "%s: %v\n%s", name, err, out)
	return string(out)
}

// The page is one that man accepts, and it has every command, flag and topic.
func TestManPage(t *testing.T) {
	top := outline(t)
	page := manPage(top, "v1.2.3", time.Date(2026, 5, 1, 23, 0, 0, 0, time.UTC))
	path := testkit.Write(t, filepath.Join(t.TempDir(), "heed.1"), string(page))
	must.Equal(t, printed(t, "", "mandoc", "-T", "lint", "-W", "warning", path), "", "mandoc")
	text := printed(t, "", "mandoc", "-T", "ascii", "-O", "width=500", path)
	for bold := regexpBold(); ; {
		clean := bold.ReplaceAllString(text, "$1")
		if clean == text {
			break
		}
		text = clean
	}
	words := strings.Join(strings.Fields(text), " ")
	has := func(part string) {
		t.Helper()
		must.Contain(t, words, strings.Join(strings.Fields(part), " "), "the page lacks %q", part)
	}
	has("heed v1.2.3")
	has("2026-05-01")
	each(top, func(v *verb) {
		if len(v.Verbs) > 0 {
			return
		}
		has("heed " + strings.Join(v.Path, " ") + " " + strings.Join(v.Args, " "))
		has(v.Help)
		has(v.Detail)
		for _, f := range v.Flags {
			if f.Name != "help" {
				has("--" + f.Name + " " + f.Value)
				has(f.Help)
			}
			for _, name := range f.Env {
				has(name)
			}
		}
	})
	for _, topic := range manual.Topics() {
		has(topic.Name + " " + topic.Title)
	}
}

func TestRoff_TextIsNoRequest(t *testing.T) {
	for text, want := range map[string]string{
		`.TH x`: `\&.TH x`, `'br`: `\&'br`, `a\b`: `a\eb`, `a--b`: `a\-\-b`, `\.`: `\e.`,
	} {
		must.Equal(t, roff(text), want, "roff(%q) =", text)
	}
	must.Equal(t, roffWords("--no-config", `C:\x`), `\-\-no\-config C:\ex`, "roffWords =")
}

// bash completes the words of a command line; the last one is incomplete.
func TestBashCompletion(t *testing.T) {
	top := outline(t)
	script := string(bashCompletion(top))
	var lines bytes.Buffer
	var want []string
	ask := func(expect []string, words ...string) {
		lines.WriteString("COMP_WORDS=(heed")
		for _, w := range words {
			lines.WriteString(" '" + w + "'")
		}
		lines.WriteString("); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _heed; echo \"${COMPREPLY[*]}\"\n")
		want = append(want, strings.Join(expect, " "))
	}
	eachWithTop(top, func(v *verb) {
		ask(append(verbWords(v), flagWords(v)...), append(slices.Clone(v.Path), "")...)
		for _, f := range v.Flags {
			if f.Choices != nil {
				ask(f.Choices, append(slices.Clone(v.Path), "--"+f.Name, "")...)
			} else if f.Value != "" {
				ask(nil, append(slices.Clone(v.Path), "--"+f.Name, "x")...)
			}
		}
	})
	ask([]string{"replay", "recheck", "report"}, "audit", "re")
	ask([]string{"--by"}, "audit", "report", "--b")
	ask([]string{"pacing"}, "help", "paci")
	ask(nil, "run", "--", "python3", "x")
	got := strings.Split(strings.TrimSuffix(printed(t, script+lines.String(), "bash"), "\n"), "\n")
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("%s\ncompletes %q, want %q", strings.Split(lines.String(), "\n")[i], got[min(i, len(got)-1)], want[i])
		}
	}
	programs := printed(t, script+`COMP_WORDS=(heed run -- mando); COMP_CWORD=3; _heed; echo "${COMPREPLY[*]}"`, "bash")
	must.True(t, slices.Contains(strings.Fields(programs), "mandoc"), "after --: %q", programs)
}

// zsh gets the same from the functions that it offers to completions, which are replaced
// by functions that print their arguments.
func TestZshCompletion(t *testing.T) {
	top := outline(t)
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "_heed"), zshCompletion(top), 0o644))
	ask := func(words ...string) string {
		script := `_arguments() { print -rl -- "$@" } ; _describe() { print -rl -- $choices } ; _normal() { print -r -- normal $words $CURRENT }
words=(heed ` + strings.Join(words, " ") + `); CURRENT=$#words; PREFIX=; source ` + filepath.Join(dir, "_heed")
		return printed(t, script, "zsh", "-f")
	}
	eachWithTop(top, func(v *verb) {
		got := ask(append(slices.Clone(v.Path), "''")...)
		if len(verbWords(v)) > 0 {
			for _, word := range verbWords(v) {
				must.True(t, strings.Contains(got, "\n"+word+":") || strings.HasPrefix(got, word+":"),
					"heed %q: %q is missing in %q", v.Path, word, got)
			}
			return
		}
		for _, f := range v.Flags {
			must.Contain(t, got, "\n*--"+f.Name+"[", "heed %q: --%s is missing in", v.Path, f.Name)
		}
	})
	must.Contain(t, ask("env", "--shell", "''"), ":(sh fish powershell)\n", "--shell")
	must.Equal(t, ask("run", "--observe", "--", "python3", "''"), "normal python3 2\n", "after --")
}
