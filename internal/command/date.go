package command

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Date is a moment that a setting names: a day, which lasts until its end in
// UTC, or a day and a time. The zero Date is none.
type Date struct{ time.Time }

// MarshalJSON gives null for no date, so that hashes do not depend on zones.
func (d Date) MarshalJSON() ([]byte, error) {
	if d.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(d.UTC().Format(time.RFC3339))
}

// dateOf reads what TOML holds for a date.
func dateOf(value any) (Date, error) {
	switch v := value.(type) {
	case toml.LocalDate:
		return Date{v.AsTime(time.UTC).AddDate(0, 0, 1)}, nil
	case toml.LocalDateTime:
		return Date{v.AsTime(time.UTC)}, nil
	case time.Time:
		return Date{v.UTC()}, nil
	}
	return Date{}, fmt.Errorf("must be a day without quotes, such as 2027-01-31, or with a time, such as 2027-01-31T18:00:00Z, not %s", kindName(value))
}
