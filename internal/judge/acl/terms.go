package acl

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"heed/internal/judge/signal"
)

// Terms are the settings that a [[client]] and the flags of a command have alike. A field is
// declared here and nowhere else: its key in proxy.toml, its flag with the text of its help,
// its name in requests to the running heed and in the record, and what heed check --explain
// says where it is set ("-": nothing). Its type may be a term. From there it reaches Effective.
type Terms struct {
	AlsoObey Names    `toml:"also_obey" json:"also_obey,omitempty" sep:"none" placeholder:"NAME" help:"Also obey the groups for NAME, such as CCBot (see heed help purpose)." says:"-"`
	Purpose  Purposes `toml:"purpose" json:"purposes,omitempty" placeholder:"LIST" help:"Obey what sites say of these uses: search, agent, training, archive, tdm." says:"purpose %v: what the site does not allow for it is refused; see --purpose"`
}

// term is the type of a field of Terms that not every value fits, or to whose values of a
// client those of the flags are added. Of other types those of the flags have precedence.
type term interface {
	check(wrong func(i int, err error)) // i is the element of a list; -1: the value
	over(client any) any
}

// Names are product tokens whose groups a client obeys besides those for its own names.
type Names []string

// Purposes are what a client wants pages for: all must be allowed. Without one, no signal
// refuses.
type Purposes []signal.Purpose

func (n Names) check(wrong func(int, error)) {
	if err := CheckAlsoObey(n); err != nil {
		wrong(-1, err)
	}
}

func (n Names) over(client any) any { return append(slices.Clip(client.(Names)), n...) }

func (p Purposes) check(wrong func(int, error)) {
	for i, name := range p {
		switch {
		case !slices.Contains(signal.Purposes(), name):
			wrong(i, fmt.Errorf("%q is not a purpose; write one or more of %s", name, Purposes(signal.Purposes())))
		case slices.Contains(p[:i], name):
			wrong(i, fmt.Errorf("%q is listed twice; remove one of them", name))
		}
	}
}

func (p Purposes) over(any) any { return p }

// String returns the names, with commas.
func (p Purposes) String() string { return strings.Join(signal.PurposeNames(p), ", ") }

// each calls do with every field that is set.
func (t *Terms) each(do func(f reflect.StructField, v reflect.Value)) {
	of := reflect.ValueOf(t).Elem()
	for i := range of.NumField() {
		if v := of.Field(i); !v.IsZero() {
			do(of.Type().Field(i), v)
		}
	}
}

// Keys returns the keys of proxy.toml of what is set.
func (t *Terms) Keys() (keys []string) {
	t.each(func(f reflect.StructField, _ reflect.Value) { keys = append(keys, f.Tag.Get("toml")) })
	return keys
}

// Check calls wrong with the key of each value that does not fit, and with the number of the
// element of a list that does not; -1: the value as a whole.
func (t *Terms) Check(wrong func(key string, i int, err error)) {
	t.each(func(f reflect.StructField, v reflect.Value) {
		if kind, ok := v.Interface().(term); ok {
			kind.check(func(i int, err error) { wrong(f.Tag.Get("toml"), i, err) })
		}
	})
}

// Words says what is set, a sentence each.
func (t *Terms) Words() (all []string) {
	if t == nil {
		return nil
	}
	t.each(func(f reflect.StructField, v reflect.Value) {
		if says, what, more := strings.Cut(f.Tag.Get("says"), "%v"); more {
			all = append(all, says+fmt.Sprint(v.Interface())+what)
		} else if says != "-" {
			all = append(all, says)
		}
	})
	return all
}

// over returns the terms of flags together with those of a client.
func (t *Terms) over(client *Terms) *Terms {
	both := *client
	t.each(func(f reflect.StructField, v reflect.Value) {
		into := reflect.ValueOf(&both).Elem().FieldByIndex(f.Index)
		if kind, ok := v.Interface().(term); ok {
			v = reflect.ValueOf(kind.over(into.Interface()))
		}
		into.Set(v)
	})
	return &both
}

// Flags returns the flags of a command with these terms.
func (t *Terms) Flags() (f Flags, err error) {
	f.Terms = *t
	if f.Purpose, err = signal.ParsePurposes(strings.Join(signal.PurposeNames(t.Purpose), ",")); err != nil {
		return f, fmt.Errorf("--purpose: %w", err)
	}
	return f, f.Validate()
}

// Purposes returns Purpose; t may be nil.
func (t *Terms) Purposes() []signal.Purpose {
	if t == nil {
		return nil
	}
	return t.Purpose
}

// For returns t for other purposes; t may be nil.
func (t *Terms) For(purposes []signal.Purpose) *Terms {
	var other Terms
	if t != nil {
		other = *t
	}
	other.Purpose = purposes
	return &other
}

// terms returns what holds for an entry, or for clients without one.
func (r *Rules) terms(c *Client) *Terms {
	switch {
	case c == nil:
		return &r.Flags.Terms
	case !r.prepared().flagged:
		return &c.Terms
	}
	t, _ := r.merged.Load(c, maxObeyed, func() (*Terms, error) { return r.Flags.Terms.over(&c.Terms), nil }) // there is no error
	return t
}
