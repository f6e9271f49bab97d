package daemon

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heed/internal/config"
	"heed/internal/control"
	"heed/internal/output/console"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

func TestHeed_ARunOfAnotherVersionDoesNotJoin(t *testing.T) {
	d, state := startDaemon(t, func(d *daemon) { d.background = false })
	_, err := joinAs(t, d, state, func(j *control.JoinRequest) { j.Version = "v0" })
	var refused *control.Refusal
	must.True(t, errors.As(err, &refused) && strings.Contains(refused.Message, "this one is v0") && !refused.Retire, "got %+v", err)
}

func TestHeed_RunsAreBounded(t *testing.T) {
	d, state := startDaemon(t, nil)
	for i := range maxRuns {
		d.runs.enter(&runSession{id: strconv.Itoa(i)})
	}
	must.Fail(t, must.Err(joinAs(t, d, state, nil)), "too many simultaneous runs", "one more than the bound")
	d.runs.change(func() { clear(d.runs.all) })
	_, err := joinAs(t, d, state, nil)
	must.True(t, err == nil, "with room again: %v", err)
}

func TestHeed_OnlyAnIdleBackgroundHeedRetires(t *testing.T) {
	d, state := startDaemon(t, nil)
	c := control.NewClient(state)
	m := must.Get(joinAs(t, d, state, nil))(t)
	must.True(t, !c.Retire(t.Context()), "it retires from under a run")
	kept := keepAlive(t, m.Listen, testkit.Page(t))
	must.OK(t, m.End(t.Context(), nil))
	awaitClose(t, kept)
	must.Get(m.Next())(t) // the summary comes after the run has been forgotten
	must.True(t, c.Retire(t.Context()), "it does not retire although no run uses it")
	byHand, state := startDaemon(t, func(d *daemon) { d.background = false })
	must.True(t, !control.NewClient(state).Retire(t.Context()) && byHand.stopping.Err() == nil,
		"a heed started by hand retires")
}

func TestHeed_ABackgroundHeedEndsByItselfWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &daemon{background: true, runs: runs{idleFor: 30 * time.Second, all: map[string]*runSession{}}}
		d.runs.retire = func() { d.retire() }
		d.stopping, d.stop = context.WithCancel(t.Context())
		d.current.Store(&runtimeConfig{cfg: &config.Config{}, joinHash: (&config.Config{}).JoinHash()})
		ended := func() bool {
			synctest.Wait()
			select {
			case <-d.stopping.Done():
				return true
			default:
				return false
			}
		}
		d.runs.await()
		testkit.Advance(29 * time.Second)
		j := &control.JoinRequest{Version: console.Version(), Config: d.current.Load().cfg.JoinHash()}
		must.OK(t, d.admit(j))
		s := &runSession{id: "1"}
		d.runs.enter(s)
		testkit.Advance(time.Hour)
		must.Need(t, !ended(), "it ended under a run")
		d.runs.leave(s)
		testkit.Advance(29 * time.Second)
		must.Need(t, !ended(), "it ended before its time")
		testkit.Advance(2 * time.Second)
		must.Need(t, ended(), "it does not end although no run uses it")
		var refused *control.Refusal
		err := d.admit(j)
		must.True(t, errors.As(err, &refused) && refused.Again, "a late run gets %v, want to try again", err)
	})
}
