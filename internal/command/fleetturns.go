package command

import (
	"context"
	"strings"
	"time"

	"heed/internal/fleet"
	"heed/internal/pace"
	"heed/rules"
)

// fleetTurns has turns taken together with the other heeds of a fleet. What the
// store does not hear while it is away, it says itself.
type fleetTurns struct{ turns *fleet.Turns }

// sharedTurns returns the turns of a fleet; nil when there is none.
func sharedTurns(store *fleet.Store) pace.Shared {
	if store == nil {
		return nil
	}
	return fleetTurns{store.Turns()}
}

// heedPauses has turns keep the pauses that sites asked other heeds for.
func heedPauses(store *fleet.Store, turns *pace.Turns) {
	if store == nil {
		return
	}
	store.Turns().Watch(func(host string, pause time.Duration) {
		scheme, authority, _ := strings.Cut(host, "://")
		if origin, err := rules.ParseOrigin(scheme, authority); err == nil {
			turns.Hold(origin, pause)
		}
	})
}

func fleetLanes(lanes []pace.SharedLane) (all []fleet.Turn) {
	for _, l := range lanes {
		all = append(all, fleet.Turn(l))
	}
	return all
}

// Ask implements pace.Shared.
func (f fleetTurns) Ask(ctx context.Context, origin, ticket string, lanes []pace.SharedLane) pace.SharedAnswer {
	a := f.turns.Ask(ctx, origin, ticket, fleetLanes(lanes))
	return pace.SharedAnswer{Now: a.Now, Again: a.Again, Wait: a.Wait, Held: a.Held, Others: a.Others}
}

// Started implements pace.Shared.
func (f fleetTurns) Started(ctx context.Context, origin, ticket string, lanes []pace.SharedLane, ago time.Duration) {
	_ = f.turns.Started(ctx, origin, ticket, fleetLanes(lanes), ago)
}

// Leave implements pace.Shared.
func (f fleetTurns) Leave(ctx context.Context, origin, ticket string, lanes []pace.SharedLane) {
	_ = f.turns.Leave(ctx, origin, ticket, fleetLanes(lanes))
}

// Moved implements pace.Shared.
func (f fleetTurns) Moved(ctx context.Context, origin string) { _ = f.turns.Moved(ctx, origin) }

// Hold implements pace.Shared.
func (f fleetTurns) Hold(ctx context.Context, origin string, d time.Duration) {
	_ = f.turns.Hold(ctx, origin, d)
}

// Release implements pace.Shared.
func (f fleetTurns) Release(ctx context.Context, origin string) { _ = f.turns.Release(ctx, origin) }
