package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"heed/internal/command"
	"heed/internal/tools/testkit/must"
)

// The outline has each command with each flag that its --help lists.
func TestOutline_HasEveryCommandAndFlag(t *testing.T) {
	t.Parallel()
	top := outline(t)
	model := must.Get(command.Model())(t)
	find := func(path []string) *verb {
		v := top
		for i := range path {
			at := slices.IndexFunc(v.Verbs, func(c *verb) bool { return slices.Equal(c.Path, path[:i+1]) })
			if at < 0 {
				return nil
			}
			v = v.Verbs[at]
		}
		return v
	}
	for _, leaf := range model.Leaves(true) {
		path := strings.Fields(strings.TrimPrefix(leaf.Path(), "heed "))
		v := find(path)
		if v == nil {
			t.Errorf("the outline has no %q", path)
			continue
		}
		var want, got []string
		for _, f := range leaf.Flags {
			if !f.Hidden {
				want = append(want, f.Name)
			}
		}
		for _, f := range v.Flags {
			got = append(got, f.Name)
		}
		must.True(t, v.Help == leaf.Help && slices.Equal(got, want) && len(v.Args) == len(leaf.Positional),
			"%q: the outline is %+v", path, v)
	}
	if !slices.ContainsFunc(top.Flags, func(f option) bool { return f.Name == "version" && f.Value == "" }) || !strings.Contains(top.Detail, "robots.txt") {
		t.Errorf("without a command, the outline is %+v", top)
	}
}

func TestFlagOf(t *testing.T) {
	t.Parallel()
	var g struct {
		Config string `short:"c" env:"A,B" placeholder:"FILE" help:"h"`
		Shell  string `placeholder:"sh|fish" help:"h"`
		By     string `enum:"x,y," default:"" placeholder:"WAY" help:"h"`
		JSON   bool   `name:"json" help:"h"`
	}
	parser := must.Get(kong.New(&g))(t)
	all := map[string]option{}
	for _, f := range parser.Model.Flags {
		all[f.Name] = flagOf(f)
	}
	if f := all["config"]; f.Short != "c" || f.Value != "FILE" || f.Choices != nil || !slices.Equal(f.Env, []string{"A", "B"}) {
		t.Errorf("config: %+v", f)
	}
	f := all["shell"]
	must.True(t, slices.Equal(f.Choices, []string{"sh", "fish"}), "shell: %+v", f)
	f = all["by"]
	must.True(t, slices.Equal(f.Choices, []string{"x", "y"}), "by: %+v", f)
	f = all["json"]
	must.True(t, f.Value == "" && f.Choices == nil, "json: %+v", f)
}
