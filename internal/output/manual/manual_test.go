package manual

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestTopics_EveryFileIsListedOnce(t *testing.T) {
	t.Parallel()
	names := must.Get(fs.Glob(files, "*.md"))(t)
	var listed []string
	for _, topic := range Topics() {
		listed = append(listed, topic.Name+".md")
	}
	slices.Sort(listed)
	must.True(t, slices.Equal(listed, names), "listed are %v\nthere are %v", listed, names)
}

func TestTopics_AreFitForATerminal(t *testing.T) {
	t.Parallel()
	for _, topic := range Topics() {
		must.True(t, topic.Title != "" && len(topic.Title) <= 64 && strings.HasPrefix(topic.Text, "# "),
			"%s: the first line is not a title of up to 64 characters", topic.Name)
		if strings.Contains(topic.Text, "\t") || !strings.HasSuffix(topic.Text, "\n") || strings.HasSuffix(topic.Text, "\n\n") {
			t.Errorf("%s: it contains a tab, or does not end with one newline", topic.Name)
		}
		for line := range strings.Lines(topic.Text) {
			must.True(t, len(line) <= 84 || strings.HasPrefix(line, "    "),
				"%s: a line of text has %d characters: %s", topic.Name, len(line), line)
		}
	}
}

// reference is a topic named in a text.
var reference = regexp.MustCompile("`heed help ([a-z]+)`")

func TestTopics_ReferencesLeadToTopics(t *testing.T) {
	t.Parallel()
	for _, topic := range Topics() {
		for _, m := range reference.FindAllStringSubmatch(topic.Text, -1) {
			if _, ok := Lookup(m[1]); !ok {
				t.Errorf("%s names the topic %s, which does not exist", topic.Name, m[1])
			}
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	if topic, ok := Lookup("pacing"); !ok || topic.Name != "pacing" || topic.Section == "" || !strings.HasPrefix(topic.Text, "# "+topic.Title+"\n") {
		t.Errorf("Lookup(pacing) = %+v, %v", topic, ok)
	}
	for _, name := range []string{"", "Pacing", "manual", "pacing.md", "../manual"} {
		topic, ok := Lookup(name)
		must.True(t, !ok && topic == (Topic{}), "Lookup(%q) found %s", name, topic.Name)
	}
}

func TestMentioning_TitlesComeFirst(t *testing.T) {
	t.Parallel()
	found := Mentioning("WGET")
	must.True(t, len(found) >= 2 && found[0].Name == "downloads", "WGET is found in %d topics", len(found))
	for _, word := range []string{"", "no such word"} {
		must.Same(t, Mentioning(word), nil, "%q is found in topics", word)
	}
}
