package fleet

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Changes that arrive while an earlier one is handled are reported once for each tag, or once for
// all when there are too many: a heed whose store is distant would otherwise fall ever further
// behind.
func TestPolicies_ChangesThatWaitAreReportedOnce(t *testing.T) {
	t.Parallel()
	many := []string{}
	for i := range maxPending + 1 {
		many = append(many, fmt.Sprintf("https://site%d.test", i))
	}
	for name, c := range map[string]struct{ waiting, want []string }{
		"of two tags": {slices.Repeat([]string{"b", "c"}, 100), []string{"a", "b", "c"}},
		"too many":    {many, []string{"", "a"}},
		"of all":      {[]string{"b", "", "c"}, []string{"", "a"}},
	} {
		store := &Store{}
		store.ctx, store.end = context.WithCancel(t.Context())
		p := store.Policies("space")
		told, proceed := make(chan string, 2*maxPending), make(chan bool)
		changed := func(tag string, _ bool) {
			told <- tag
			<-proceed
		}
		p.changed.Store(&changed)
		p.hear("a", false)
		got := []string{<-told}
		for _, tag := range c.waiting {
			p.hear(tag, false)
		}
		close(proceed)
		store.tasks.Wait()
		for close(told); len(told) > 0; {
			got = append(got, <-told)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: heard of %.100q (%d), want %q", name, got, len(got), c.want)
		}
		store.end()
	}
}
