package control

import (
	"fmt"
	"strings"
	"time"

	"heed/internal/audit/counts"
	"heed/internal/output/console"
)

// NotReady returns why heed serves no requests, refuses all of them, or all to sites with a
// delay; empty when it serves them. `heed status` and /readyz of the admin listener report it.
func (s *Status) NotReady() []string {
	all := []string{} // in JSON a list, also when it is empty
	if s.Ending {
		all = append(all, "heed is about to end")
	}
	if s.Log != "" && s.LogIsRecord {
		all = append(all, "the log cannot be written and is the only record, so requests are refused: "+sentence(s.Log))
	}
	if s.Record != "" && !s.Continues {
		all = append(all, "decisions cannot be recorded, so requests are refused: "+sentence(s.Record))
	}
	if from := s.CA.NotBefore; time.Now().Before(from) {
		all = append(all, "the CA certificate is not valid before "+from.UTC().Format(time.RFC3339)+", so no https can be intercepted; set the clock, or make another one with `heed ca renew`")
	}
	if until := s.CA.NotAfter; !until.IsZero() && time.Now().After(until) {
		all = append(all, "the CA certificate has expired, so no https can be intercepted; make the next one with `heed ca renew`")
	}
	if s.Fleet != nil && s.Fleet.Unreached {
		why := "no answer yet"
		if s.Fleet.Why != "" {
			why = console.Quoted(s.Fleet.Why)
		}
		which := s.Fleet.Hosts
		if nodes := s.Fleet.Nodes; len(nodes) > 0 {
			which += " at " + strings.Join(nodes, ", ")
		}
		all = append(all, "the fleet's store "+which+" was never reached, so requests that a delay concerns are refused: "+why)
	}
	return all
}

// Text returns the number of healings, and what the last one was about.
func (h *Healings) Text() string {
	return fmt.Sprintf("opened again %s since the start, last at %s after %s, %s refused meanwhile", console.Plural(uint64(h.Count), "time"),
		h.Last.UTC().Format("2006-01-02 15:04:05"), console.Quoted(h.Why), console.Plural(uint64(h.Refused), "request"))
}

// Unwell returns the other reasons why heed is not healthy, although it serves requests.
func (s *Status) Unwell() []string {
	all := []string{}
	if s.Log != "" && !s.LogIsRecord {
		all = append(all, "the log cannot be written: "+sentence(s.Log))
	}
	if s.Record != "" && s.Continues {
		all = append(all, "decisions cannot be recorded: "+sentence(s.Record))
	}
	if s.RecordHeld != "" {
		all = append(all, "another program works on the record: "+sentence(s.RecordHeld))
	}
	if h := s.Healings; h != nil && time.Since(h.Last) < time.Hour {
		all = append(all, "another program removed or replaced files of the record: "+h.Text())
	}
	if r := s.NotReloaded; r != nil {
		all = append(all, "the settings were not reloaded on "+r.At.UTC().Format(time.RFC3339)+", and the previous ones stay in effect: "+sentence(r.Error))
	}
	if d := s.CA.DaysLeft; d <= console.CAWarningDays {
		all = append(all, "the CA certificate"+console.DaysLeft(d))
	}
	for i := range s.Keys {
		if trouble := s.Keys[i].Trouble(time.Now()); trouble != "" {
			all = append(all, trouble)
		}
	}
	for i := range s.Reach.Proxies {
		p := &s.Reach.Proxies[i]
		all = append(all, "the upstream proxy "+console.Quoted(p.Name)+" cannot be used: "+console.Quoted(p.Err))
	}
	if r := &s.Reach; r.ManyFail() {
		all = append(all, fmt.Sprintf("%d of the %s asked in the last %d minutes failed", r.Failed, console.Plural(uint64(r.Asked), "site"), int(counts.ReachWindow/time.Minute)))
	}
	if s.Kept != nil && s.Kept.Why != "" {
		all = append(all, "policies cannot be saved for a restart: "+console.Quoted(s.Kept.Why))
	}
	if s.Fleet != nil && s.Fleet.Away && !s.Fleet.Unreached {
		of := ""
		if nodes := s.Fleet.Nodes; len(nodes) > 0 {
			of = " at " + strings.Join(nodes, ", ")
		}
		all = append(all, "the fleet's store is away"+of+": "+console.Quoted(s.Fleet.Why))
	}
	return all
}

// keyWarning is how long before the end of a key heed warns of it.
const keyWarning = 7 * 24 * time.Hour

// Trouble returns why the key signs nothing, or soon will not; empty when neither is so.
func (k *KeyStatus) Trouble(now time.Time) string {
	whose := "client " + console.Quoted(k.Client)
	if k.Client == "" {
		whose = "heed's own requests"
	}
	switch {
	case now.Before(k.NotBefore):
		return fmt.Sprintf("the key of %s is not valid before %s: until then nothing is signed", whose, k.NotBefore.UTC().Format(time.DateOnly))
	case k.NotAfter.IsZero() || k.NotAfter.Sub(now) > keyWarning:
		return ""
	case !now.Before(k.NotAfter):
		return fmt.Sprintf("the key of %s has ended on %s, and nothing is signed; set the next one (heed help identity)", whose, k.NotAfter.UTC().Format(time.DateOnly))
	}
	return fmt.Sprintf("the key of %s ends on %s; publish the next one and set it (heed help identity)", whose, k.NotAfter.UTC().Format(time.DateOnly))
}

// maxSentence is the largest number of characters of an error that is printed: it may name two
// files, and ends with what to do.
const maxSentence = 800

// sentence returns an error on one line: the lines after the first say what to do.
func sentence(text string) string {
	return console.Truncated(strings.ReplaceAll(text, "\n", "; "), maxSentence)
}
