package terms

import "fmt"

// Mode says what a verdict does. The zero value enforces.
type Mode uint8

// The modes.
const (
	Enforce Mode = iota // what is refused does not leave
	Observe             // everything is judged and recorded, nothing is held back
	Exempt              // people, not robots: not judged, counted
)

// ParseMode returns the mode of a name as String gives it.
func ParseMode(name string) (Mode, error) {
	for m := Enforce; m <= Exempt; m++ {
		if name == m.String() {
			return m, nil
		}
	}
	return Enforce, fmt.Errorf("%q is no mode: the modes are enforce, observe and exempt", name)
}

// String returns the stable name: enforce, observe or exempt.
func (m Mode) String() string {
	switch m {
	case Observe:
		return "observe"
	case Exempt:
		return "exempt"
	default:
		return "enforce"
	}
}
