package report

import "heed/rules"

// delays looks up which time between requests a site asked of an agent.
type delays struct {
	record Record
	names  *names
	known  map[asking]int64
	bodies map[int64]int64 // the robots.txt, by the snapshot
}

// asking is an agent under a file.
type asking struct {
	body   int64
	tokens string
}

// of returns the delay, in microseconds, that e was to keep; 0: none. It is what
// the decision notes, else what the robots.txt that was in force says.
func (d *delays) of(e *entry, a *asker, g ground) (int64, error) {
	if e.asked.Valid {
		return e.asked.Int64, nil
	}
	p := d.names.policies[g.policy]
	if p == nil || p.snapshot == 0 {
		return 0, nil
	}
	if d.bodies == nil {
		if err := d.snapshots(); err != nil {
			return 0, err
		}
	}
	k := asking{d.bodies[p.snapshot], a.tokens}
	delay, ok := d.known[k]
	if ok || k.body == 0 {
		return delay, nil
	}
	delay, err := d.read(k.body, a)
	d.known[k] = delay
	return delay, err
}

func (d *delays) snapshots() error {
	d.bodies, d.known = map[int64]int64{}, map[asking]int64{}
	return each(d.record, "SELECT id, coalesce(body, 0) FROM snapshot", func(scan scanner) error {
		var id, body int64
		err := scan(&id, &body)
		d.bodies[id] = body
		return err
	})
}

// read takes the delay from the file.
func (d *delays) read(body int64, a *asker) (int64, error) {
	text, err := bodyOf(d.record, body)
	if err != nil {
		return 0, err
	}
	var most int64
	file := rules.New(rules.Source{State: rules.Available}, text)
	for _, field := range file.FieldsFor(rules.Declare(a.agent.Tokens...), rules.CrawlDelay) {
		if delay, ok := field.Delay(); ok {
			most = max(most, delay.Microseconds())
		}
	}
	return most, nil
}
