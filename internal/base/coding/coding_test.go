package coding_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"heed/internal/base/coding"
	"heed/internal/tools/testkit/must"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const text = "<html><head><title>A page</title></head>"

// forms returns text in each coding, by its name; "bare" is a deflate stream without
// the zlib form.
func forms(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{"": []byte(text), "identity": []byte(text)}
	with := func(name string, open func(io.Writer) io.WriteCloser) {
		var b bytes.Buffer
		w := open(&b)
		must.Get(io.WriteString(w, text))(t)
		must.OK(t, w.Close())
		all[name] = b.Bytes()
	}
	with("gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	with("deflate", func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	with("bare", func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 5); return f })
	with("br", func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) })
	with("zstd", func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z })
	all["x-gzip"] = all["gzip"]
	return all
}

func TestEveryOfferedCodingIsDecoded(t *testing.T) {
	t.Parallel()
	all := forms(t)
	for name := range strings.SplitSeq(coding.Accepted, ", ") {
		must.True(t, all[name] != nil, "%s is offered and not tested", name)
	}
	for name, sent := range all {
		if name == "bare" {
			name = "deflate"
		}
		r, err := coding.NewReader(name, bytes.NewReader(sent))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := io.ReadAll(r)
		must.True(t, err == nil && string(got) == text, "%s: %q, %v", name, got, err)
	}
}

// A reader that was freed, in the middle of a body or after a broken one, reads the next
// body as a new one does.
func TestFreedReadersAreAsGoodAsNew(t *testing.T) {
	t.Parallel()
	all := forms(t)
	for name := range strings.SplitSeq(coding.Accepted, ", ") {
		sent := all[name]
		for i := range 20 {
			if r, err := coding.NewReader(name, bytes.NewReader(sent[:len(sent)-i%9])); err == nil {
				_, _ = io.CopyN(io.Discard, r, int64(i))
				coding.Free(r)
			}
			r, err := coding.NewReader(name, bytes.NewReader(sent))
			must.OK(t, err, name)
			got, err := io.ReadAll(r)
			must.True(t, err == nil && string(got) == text, "%s, the %dth time: %q, %v", name, i, got, err)
			coding.Free(r)
		}
	}
}

func TestUnknownCodings(t *testing.T) {
	t.Parallel()
	for _, lines := range [][]string{{"compress"}, {"gzip, gzip"}, {"gzip", "br"}, {"aes128gcm"}, {"bzip2"}, {"utf-8, compress"}, {"x-compress"}, {"sdch, gzip"}, {"brotli"}} {
		name := coding.Name(lines)
		_, err := coding.NewReader(name, strings.NewReader("x"))
		must.True(t, errors.Is(err, coding.ErrUnknown) && !coding.Known(name), "%q: %v", lines, err)
	}
	for _, lines := range [][]string{nil, {""}, {"Identity"}} {
		must.Equal(t, coding.Name(lines), "", "%q", lines)
	}
}

// A name that is that of no coding changes nothing, and text is read as it is; what is no
// text has a coding that cannot be known. Slips around a real name lose nothing either.
func TestHeed_NamesOfNoCoding(t *testing.T) {
	t.Parallel()
	all := forms(t)
	for _, value := range []string{
		"utf-8", "UTF8", "iso-8859-1", "windows-1252", "none", "binary", "8bit", "7bit", "text", "foo", "null", "undefined",
		"text/html", "plain", "utf-8, none", "charset=utf-8", "*", "quoted-printable", "chunked", "en-US",
	} {
		name := coding.Name([]string{value})
		if !coding.Known(name) || !coding.Mislabelled(name) {
			t.Errorf("%q is %q, which cannot be read", value, name)
			continue
		}
		for _, body := range []string{text, "User-agent: *\nDisallow: /caf\xE9\n", "\xFF\xFEa\x00", "\x1b$B<\x22\x1b(B"} {
			r, err := coding.NewReader(name, strings.NewReader(body))
			must.OK(t, err, "%q", value)
			got, err := io.ReadAll(r)
			must.True(t, err == nil && string(got) == body, "%q: %q, %v", value, got, err)
		}
		for _, form := range []string{"gzip", "zstd", "deflate"} {
			r, _ := coding.NewReader(name, bytes.NewReader(all[form]))
			got, err := io.ReadAll(r)
			must.True(t, err != nil, "%q of %s: %q", value, form, got)
		}
	}
	for value, want := range map[string]string{
		"gzip,": "gzip", ", gzip": "gzip", "gzip;q=1.0": "gzip", `"gzip"`: "gzip", "'br'": "br", "identity, gzip": "gzip",
		"gzip, utf-8": "gzip", "none, deflate": "deflate", "GZIP ": "gzip", "identity;q=1": "", "identity, identity": "", ",": "",
		"compress, utf-8": "compress", "gzip, gzip": "gzip,gzip", "brotli": "brotli", "bzip2": "bzip2", "xz, none": "xz",
	} {
		name := coding.Name([]string{value})
		must.True(t, name == want && !coding.Mislabelled(name), "%q is %q, want %q", value, name, want)
	}
}

// What follows the last member of a gzip body and begins none is ignored; a further member
// is read, and one that is cut off is an error.
func TestHeed_OctetsAfterGzipAreIgnored(t *testing.T) {
	t.Parallel()
	sent := forms(t)["gzip"]
	for after, want := range map[string]string{
		"": text, "\n": text, "\r\n0\r\n\r\n": text, "<!-- 0.1 s -->": text, "\x00\x00\x00\x00": text, "\x1f": text,
		string(sent): text + text, string(sent) + "\n": text + text, "\x1f\x8b": "", string(sent[:len(sent)-1]): "",
	} {
		r := must.Get(coding.NewReader("gzip", strings.NewReader(string(sent)+after)))(t)
		got, err := io.ReadAll(r)
		must.True(t, (err != nil) == (want == "") && (want == "" || string(got) == want), "%q: %q, %v", after, got, err)
		coding.Free(r)
	}
}

func FuzzNewReader(f *testing.F) {
	for _, name := range []string{"gzip", "deflate", "br", "zstd"} {
		f.Add(name, []byte(text))
		f.Add(name, []byte("\x1f\x8b\x08"))
	}
	f.Fuzz(func(_ *testing.T, name string, sent []byte) {
		if r, err := coding.NewReader(name, bytes.NewReader(sent)); err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(r, 1<<20))
		}
	})
}

// A body that is cut off between two members is not complete: what is missing may have the
// rules of a robots.txt.
func TestHeed_GzipThatIsCutOffBetweenMembersIsAnError(t *testing.T) {
	t.Parallel()
	whole := forms(t)["gzip"]
	for name, sent := range map[string]io.Reader{
		"after a member":       bytes.NewReader(whole),
		"after a member's ID1": io.MultiReader(bytes.NewReader(whole), strings.NewReader("\x1f")),
	} {
		r := must.Get(coding.NewReader("gzip", io.MultiReader(sent, iotest.ErrReader(io.ErrUnexpectedEOF))))(t)
		got, err := io.ReadAll(r)
		must.True(t, string(got) == text && errors.Is(err, io.ErrUnexpectedEOF), "%s: %q, %v", name, got, err)
	}
}

// What heed cannot undo is not offered; the rest is as it came, with its weights.
func TestOffer(t *testing.T) {
	t.Parallel()
	for offered, want := range map[string]string{
		"gzip, deflate, br, zstd":      "",
		"GZIP;q=0.5, x-gzip, identity": "",
		"identity;q=0, gzip":           "",
		"identity;q=0":                 "",
		"gzip;q=0":                     "",
		"*;q=0, br":                    "",
		"":                             "",
		" , ":                          "",
		"gzip, zstd, dcz":              "gzip, zstd",
		"gzip, br, zstd, dcb, dcz":     "gzip, br, zstd",
		"DCZ, Gzip;q=0.8":              "Gzip;q=0.8",
		"compress, gzip":               "gzip",
		"dcz":                          "identity",
		"dcb, dcz;q=0.5":               "identity",
		"dcz, identity;q=0":            "identity",
		"dcz, Identity;q=0.000, *;q=0": "identity",
		"dcz, gzip;q=0":                "gzip;q=0, identity",
		"dcz, identity;q=0.5":          "identity;q=0.5",
		"*":                            "gzip, deflate, br, zstd",
		"*;q=0.1, gzip":                "gzip, deflate;q=0.1, br;q=0.1, zstd;q=0.1",
		"gzip;q=0, *":                  "gzip;q=0, deflate, br, zstd",
		"identity;q=0, *":              "identity;q=0, gzip, deflate, br, zstd",
		"dcz, *;q=0":                   "identity",
		"gzip dcz":                     "identity",
	} {
		got, changed := coding.Offer([]string{offered})
		must.True(t, got == want && changed == (want != ""), "%q: %q, %v; want %q", offered, got, changed, want)
	}
	got, _ := coding.Offer([]string{"gzip", "dcz, br"})
	must.True(t, got == "gzip, br", "of two lines %q", got)
}
