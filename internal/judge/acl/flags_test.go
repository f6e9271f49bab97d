package acl

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"heed/internal/tools/testkit/must"
	"heed/internal/trust/passport"
	"heed/rules"
)

// samples are values of each type that a field of Flags, Rules or Client has.
func samples(t *testing.T) map[reflect.Type]any {
	mode, wait := Observe, time.Second
	all := map[reflect.Type]any{}
	for _, v := range []any{
		true, "a.test", []string{"NewsBot"}, []HostPattern{host(t, "site.test")}, &passport.Signer{},
		Observe, &mode, &wait, rules.Strict, Tunnel, []Client{{Name: "a"}}, []Host{{NeverAllow: true}}, []ModeOverride{{Reason: "r"}},
		[]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, NewGlob("a*"), rules.Declare("NewsBot"), Flags{Observe: true}, Terms{AlsoObey: Names{"CCBot"}}, Names{"CCBot"}, Purposes{"training"}, PurposeTokens{"training": {"CCBot"}},
	} {
		all[reflect.TypeOf(v)] = v
	}
	return all
}

// setEach calls each with every exported field of a struct, which has a value then.
func setEach[T any](t *testing.T, each func(field reflect.StructField, with *T)) {
	known := samples(t)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		with, v := new(T), known[f.Type]
		switch {
		case !f.IsExported():
			continue
		case v == nil && f.Type.Kind() != reflect.Interface:
			t.Errorf("%s: add a value of its type to samples", f.Name)
			continue
		case v != nil:
			reflect.ValueOf(with).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(v))
		}
		each(f, with)
	}
}

// A flag that heed run or heed check has reaches the running heed and the record, and has an
// effect.
func TestHeed_EachFlagTravelsAndCounts(t *testing.T) {
	at := origin(t, "http://site.test")
	inForce := func(f Flags) Effective {
		r := (&Rules{}).ForRun(f)
		return r.For(r.ClientOf(ClientInfo{}), at, noon)
	}
	setEach(t, func(field reflect.StructField, with *Flags) {
		must.True(t, !reflect.DeepEqual(inForce(*with), inForce(Flags{})),
			"%s changes nothing of what is in force", field.Name)
		if field.Tag.Get("json") == "-" {
			return // it travels as the name of a file
		}
		text, err := json.Marshal(with)
		var again Flags
		must.True(t, err == nil && json.Unmarshal(text, &again) == nil && reflect.DeepEqual(again, *with),
			"%s travels as %s, %v", field.Name, text, err)
	})
}

// Rules with what was added while heed runs have all else that the Rules had.
func TestHeed_ACopyOfTheRulesHasAllOfThem(t *testing.T) {
	setEach(t, func(field reflect.StructField, with *Rules) {
		must.Same(t, with.copy(), with, "a copy has another %s", field.Name)
	})
}
