package auditcmd

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"heed/internal/audit/replay"
	"heed/internal/audit/store"
	"heed/internal/console"
)

const (
	idDigits    = 32 // hexadecimal, of an id
	minIDDigits = 6  // of its beginning
	maxIDs      = 20 // listed
)

// idRange returns the first and the last id that begin with the digits of text, which
// may have hyphens; ok is false for a text that is no beginning of an id.
func idRange(text string) (ids [2][]byte, digits int, ok bool) {
	beginning := strings.ReplaceAll(text, "-", "")
	digits = len(beginning)
	if digits == 0 || digits > idDigits {
		return ids, digits, false
	}
	for i, digit := range []string{"0", "f"} {
		id, err := hex.DecodeString(beginning + strings.Repeat(digit, idDigits-digits))
		if err != nil {
			return ids, digits, false
		}
		ids[i] = id
	}
	return ids, digits, true
}

// completeID replaces the beginning of an id in What by the only id that has it. When
// there are several, it lists them, and the error is the exit status.
func (c *WhyCmd) completeID(ctx context.Context, a *console.App, records []*store.Record) error {
	ids, digits, ok := idRange(c.What)
	if !ok || digits == idDigits {
		return nil
	}
	if digits < minIDDigits {
		return fmt.Errorf("%s is too short for the beginning of an id\nWrite at least %d of its digits", console.Quoted(c.What), minIDDigits)
	}
	var found []*replay.Decision
	known := map[string]bool{}
	err := replay.List(ctx, records, store.Filter{IDs: ids}, func(_ int, d *replay.Decision) error {
		if !known[d.ID] { // the record of a run may be among them
			known[d.ID] = true
			if len(found) < maxIDs {
				found = append(found, d)
			}
		}
		return nil
	})
	switch {
	case err != nil || len(known) == 0:
		return err
	case len(known) == 1:
		c.What = found[0].ID
		return nil
	}
	fmt.Fprintf(a.Stderr, "heed: %s begin with %s; write more digits of one\n", console.Plural(uint64(len(known)), "id"), console.Quoted(c.What))
	return c.printIDs(a.Stderr, console.Colours(a.Environ, a.Stderr), found, len(known))
}

// printIDs lists the decisions found, of all.
func (c *WhyCmd) printIDs(w io.Writer, paint console.Painter, found []*replay.Decision, all int) error {
	for _, d := range found {
		if err := printLine(w, paint, d); err != nil {
			return err
		}
	}
	if all > len(found) {
		fmt.Fprintf(w, "and %s\n", console.Plural(uint64(all-len(found)), "further decision"))
	}
	return console.Exit(console.ExitUsage)
}
