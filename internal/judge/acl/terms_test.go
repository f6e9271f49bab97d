package acl

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// Each setting that clients and flags have alike has its names and texts in one place, and is
// in force where a client, a run or both have it.
func TestHeed_EachTermIsDeclaredOnce(t *testing.T) {
	at := origin(t, "http://site.test")
	setEach(t, func(field reflect.StructField, with *Terms) {
		for _, tag := range []string{"toml", "json", "help", "says"} {
			must.True(t, field.Tag.Get(tag) != "", "%s has no %s", field.Name, tag)
		}
		must.True(t, strings.HasSuffix(field.Tag.Get("json"), ",omitempty"),
			"%s is in requests and records of those who do not set it", field.Name)
		if says := field.Tag.Get("says"); len(with.Words()) != 1 && says != "-" || len(with.Words()) > 0 && says == "-" {
			t.Errorf("%s is explained as %q", field.Name, with.Words())
		}
		of := func(e Effective) string {
			return fmt.Sprint(reflect.ValueOf(e.Terms).Elem().FieldByIndex(field.Index).Interface())
		}
		want := of(Effective{Terms: with})
		settings := &Rules{Clients: []Client{{Name: "has", UserAgent: NewGlob("a*"), Terms: *with}, {Name: "none", UserAgent: NewGlob("b*")}}}
		for agent, r := range map[string]*Rules{"a": settings, "b": settings.ForRun(Flags{Terms: *with}), "c": settings.ForRun(Flags{Terms: *with})} {
			got := of(r.For(r.ClientOf(ClientInfo{UserAgent: agent}), at, noon))
			must.True(t, got == want, "%s of %s in force: %s, not %s", field.Name, agent, got, want)
		}
		if r := settings; len(r.For(r.ClientOf(ClientInfo{UserAgent: "b"}), at, noon).Keys()) > 0 {
			t.Errorf("%s is in force for another client", field.Name)
		}
	})
}
