package accesslog

import (
	"encoding/csv"
	"strings"
)

// csvLines reads CSV whose first line has the names of the columns: those of JSON members.
type csvLines struct {
	names   names
	refused bool // requests that heed answered itself count too
	clock   clock
	values  values
	columns []ranked // by column; empty: before the first line
}

func (p *csvLines) fresh() parser { return &csvLines{names: p.names, refused: p.refused} }

// parse reads a line. A record of several lines is none.
func (p *csvLines) parse(line string, q *Request) (reason string) {
	in := csv.NewReader(strings.NewReader(line))
	in.FieldsPerRecord, in.LazyQuotes, in.ReuseRecord = -1, false, true
	cells, err := in.Read()
	if err != nil {
		return "not a line of CSV"
	}
	if p.columns == nil {
		return p.head(cells)
	}
	if len(cells) != len(p.columns) {
		return "not as many values as the first line has columns"
	}
	p.values = values{}
	ranks := [fields]int{}
	for i, column := range p.columns {
		f := column.field
		if value := strings.TrimPrefix(cells[i], "'"); f != fieldNone && value != "" && (ranks[f] == 0 || column.rank < ranks[f]) {
			ranks[f], p.values[f] = column.rank, value
		}
	}
	return p.values.complete(q, &p.clock, p.refused, "the line of CSV")
}

// head reads the names of the columns, which include a time and a request.
func (p *csvLines) head(cells []string) (reason string) {
	var columns []ranked
	has := [fields]bool{}
	for _, name := range cells {
		column := p.names[string(appendName(nil, name))]
		columns = append(columns, column)
		has[column.field] = true
	}
	if !has[fieldTime] || !has[fieldTarget] && !has[fieldPath] && !has[fieldRequest] {
		return "no line with the names of columns, among them a time and a request, before it"
	}
	p.columns = columns
	return aside
}
