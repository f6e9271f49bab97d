package command

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"heed/internal/output/console"
	"heed/internal/output/manual"
)

// HelpCmd is `heed help`: the manual.
type HelpCmd struct {
	Topic []string `arg:"" optional:"" help:"A topic of the manual, or a command; without it the topics are listed."`
}

// Run prints the topic or the help of a command.
func (c *HelpCmd) Run(a *console.App, k *kong.Context) error {
	if len(c.Topic) == 0 {
		return showPage(a, topicList())
	}
	verbs := childNames(k.Model.Node)
	name := strings.ToLower(strings.Join(c.Topic, " "))
	if topic, ok := manual.Lookup(name); ok {
		return showPage(a, topic.Complete(a.Defaults))
	}
	if slices.Contains(verbs, c.Topic[0]) {
		return console.Exit(dispatch(a, append(slices.Clone(c.Topic), "--help")))
	}
	return unknownTopic(name, verbs)
}

// unknownTopic returns an error that names up to four topics or commands near
// to name: of similar spelling, then those that begin with it, then those that mention it.
func unknownTopic(name string, verbs []string) error {
	var names, near []string
	for _, t := range manual.Topics() {
		if names = append(names, t.Name); strings.HasPrefix(t.Name, name) {
			near = append(near, t.Name)
		}
	}
	if similar := console.Nearest(name, append(names, verbs...)); similar != "" && !slices.Contains(near, similar) {
		near = slices.Insert(near, 0, similar)
	}
	for _, t := range manual.Mentioning(name) {
		if len(near) < 4 && !slices.Contains(near, t.Name) {
			near = append(near, t.Name)
		}
	}
	if near == nil {
		return fmt.Errorf("there is no topic %q\nSee `heed help` for the list", name)
	}
	return fmt.Errorf("there is no topic %q; the nearest are: %s\nSee `heed help` for the list", name, strings.Join(near, ", "))
}

// topicList returns the names and titles of all topics, by section.
func topicList() string {
	var b strings.Builder
	b.WriteString("The manual of heed. `heed help TOPIC` prints a topic, `heed COMMAND --help` the\nflags of a command.\n")
	section := ""
	for _, t := range manual.Topics() {
		if t.Section != section {
			section = t.Section
			fmt.Fprintf(&b, "\n%s\n", section)
		}
		fmt.Fprintf(&b, "  %-13s %s\n", t.Name, t.Title)
	}
	return b.String()
}

// showPage writes text to stdout: through the pager on a terminal, otherwise, and
// when the pager cannot be started or fails, as it is.
func showPage(a *console.App, text string) error {
	if console.IsTerminal(a.Stdout) {
		pager := []string{"less", "-FRX"}
		if command, set := console.Lookup(a.Environ, "PAGER"); set {
			pager = []string{"sh", "-c", command} // it may have arguments
		}
		if pager[len(pager)-1] != "" && runPager(a, pager, text) == nil {
			return nil
		}
	}
	_, err := io.WriteString(a.Stdout, text)
	return err
}

// runPager shows text with a program that ends when its reader does. Ctrl-C is
// the pager's meanwhile.
func runPager(a *console.App, command []string, text string) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	pager := exec.Command(command[0], command[1:]...)
	pager.Stdin, pager.Stdout, pager.Env = strings.NewReader(text), a.Stdout, a.Environ
	return pager.Run()
}
