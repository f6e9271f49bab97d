package refusal

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"heed/internal/tools/testkit/must"
)

// The body is what an Encoder writes, whatever a site or a client has put into its
// members, and whichever it has.
func FuzzText_WritesWhatAnEncoderWrites(f *testing.F) {
	const hostile = "<a href='\"&'>\\ \x00\x1f\x7f\t\r\n \u2028\u2029 g\u00e9 \xff \u202e {}[],:"
	f.Add("", int64(0), 0.0, false)
	f.Add("", int64(0), 0.0, true)
	f.Add("plain", int64(1), 0.5, true)
	f.Add(hostile, int64(-1), 1e-7, false)
	f.Add(hostile, int64(1)<<60, 1e21, true)
	f.Fuzz(func(t *testing.T, text string, number int64, fraction float64, pointers bool) {
		var p Problem
		fill(reflect.ValueOf(&p).Elem(), text, number, fraction, pointers)
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if e.Encode(p) != nil {
			return // fraction is infinite, or no number
		}
		got := p.text()
		must.True(t, bytes.Equal(got, want.Bytes()), "%s\nwant %s", got, want.Bytes())
	})
}

// fill sets the fields of the struct v, each to a value of its own unless that is zero.
func fill(v reflect.Value, text string, number int64, fraction float64, pointers bool) {
	for i := range v.NumField() {
		field := v.Field(i)
		if field.Kind() == reflect.Pointer {
			if !pointers {
				continue
			}
			field.Set(reflect.New(field.Type().Elem()))
			field = field.Elem()
		}
		switch field.Kind() {
		case reflect.String:
			if text != "" {
				field.SetString(text + v.Type().Field(i).Name)
			}
		case reflect.Int, reflect.Int64:
			field.SetInt(number * int64(i+1))
		case reflect.Float64:
			field.SetFloat(fraction * float64(i+1))
		default:
			fill(field, text, number, fraction, pointers)
		}
	}
}
