package parquetfile

import (
	"bytes"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
)

func TestHeed_ATableIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := NewWriter(&out, []Column{{"zebra", Text}, {"n", Int}, {"share", Float}, {"robots", Flag}, {"time", Time}})
	at := time.Date(2025, 3, 2, 10, 0, 0, 250_000_000, time.UTC)
	rows := [][]any{{"/a\xff", int64(1), 0.5, int64(1), at.UnixMicro()}, {nil, nil, nil, nil, nil}, {"", int64(0), int64(2), false, at.Format(time.RFC3339Nano)}}
	for _, row := range rows {
		if err := w.Row(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Row([]any{"a", "no number", nil, nil, nil}); err == nil {
		t.Error("a text in a column of numbers is no error")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Zebra  *string  `parquet:"zebra,optional"`
		N      *int64   `parquet:"n,optional"`
		Share  *float64 `parquet:"share,optional"`
		Robots *bool    `parquet:"robots,optional"`
		Time   *int64   `parquet:"time,optional,timestamp(microsecond)"`
	}
	got, err := parquet.Read[row](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(got) != 3 {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	if *got[0].Zebra != "/a\uFFFD" || *got[0].N != 1 || *got[0].Share != 0.5 || !*got[0].Robots || *got[0].Time != at.UnixMicro() {
		t.Errorf("the first row is %+v", got[0])
	}
	if got[1].Zebra != nil || got[1].N != nil || got[1].Share != nil || got[1].Robots != nil || got[1].Time != nil {
		t.Errorf("a row without values is %+v", got[1])
	}
	if *got[2].Zebra != "" || *got[2].Share != 2 || *got[2].Time != at.UnixMicro() {
		t.Errorf("the last row is %+v", got[2])
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || f.Schema().Columns()[0][0] != "zebra" {
		t.Errorf("the columns are %v, %v", f.Schema().Columns(), err)
	}
}
