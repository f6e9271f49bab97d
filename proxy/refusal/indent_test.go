package refusal

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func FuzzIndent(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `""`, `-1.5e-7`, `null`, `{"a":{},"b":[],"c":[[{}]]}`,
		`{"a":"{\"b\":[1,2]}","\\":"\\\\","\\\"":[true,{"c":"}\\"}],"d":" : "}`, "{\"\u2028\":\"\xff\"}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var compact, want bytes.Buffer
		if json.Compact(&compact, text) != nil || json.Indent(&want, compact.Bytes(), "", "  ") != nil {
			return
		}
		if got := indent(compact.Bytes()); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%q\nwant %q", got, want.Bytes())
		}
	})
}

// The body is what an Encoder writes, whatever a site or a client has put into its
// members.
func FuzzProblem_IsWrittenAsByAnEncoder(f *testing.F) {
	f.Add("", int64(0), 0.0)
	f.Add("<a href='\"&'>\\ \x00\x1f\x7f\t\r\n \u2028\u2029 g\u00e9 \xff \u202e {}[],:", int64(-1), 1e-7)
	f.Fuzz(func(t *testing.T, text string, number int64, fraction float64) {
		var p Problem
		fill(reflect.ValueOf(&p).Elem(), text, number, fraction)
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(true)
		e.SetIndent("", "  ")
		if e.Encode(p) != nil {
			return // fraction is infinite, or no number
		}
		if got := p.text(); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s\nwant %s", got, want.Bytes())
		}
	})
}

// fill sets all that v holds.
func fill(v reflect.Value, text string, number int64, fraction float64) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		v.SetInt(number)
	case reflect.Float64:
		v.SetFloat(fraction)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, number, fraction)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text, number, fraction)
		}
	default:
		panic(v.Kind().String())
	}
}
