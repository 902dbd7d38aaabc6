package scheduler

import (
	"testing"

	"github.com/switchboard-run/switchboard/sdk"
	"testing/synctest"
	"time"
)

// TestKilledBetweenAnyTwoSteps kills the scheduler and the kernel at each step
// of a scenario and restarts them after a pause. Every due time must then be
// published once or counted as skipped.
func TestKilledBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{0, time.Minute, 3 * time.Hour} {
		t.Run(pause.String(), func(t *testing.T) {
			t.Parallel()
			for step := 1; ; step++ {
				reached := false
				synctest.Test(t, func(t *testing.T) { reached = killedAt(t, step, pause) })
				if !reached || t.Failed() {
					if step < 20 {
						t.Errorf("the scenario has only %d steps", step)
					}
					return
				}
			}
		})
	}
}

// killedAt plays the scenario with a kill at a step. It reports false if there is
// no such step.
func killedAt(t *testing.T, step int, pause time.Duration) (reached bool) {
	t.Helper()
	b := setup(t)
	b.edit(func(s *store) { s.dieAt = step })
	begun := b.now()
	var answered bool
	revive := func() {
		if !reached && b.dead() {
			reached = true
			<-b.sched.stopped
			b.pass(pause)
			b.edit(func(s *store) { s.dieAt = 0 })
			b.start()
			synctest.Wait()
		}
	}
	// The kernel repeats a call without a result. The result is committed with
	// the effects.
	create := func(name, arguments string) {
		before := b.keys()
		_, err := b.call(name, arguments)
		revive()
		if err != nil && b.keys() == before {
			b.must(name, arguments)
		}
	}
	create("schedule_once", `{"message":"once","delay_seconds":300}`)
	create("schedule_recurring", `{"message":"hourly","every_seconds":3600}`)
	create("schedule_once", `{"message":"cancelled","delay_seconds":600}`)
	for range 24 {
		b.pass(10 * time.Minute)
		revive()
		if !answered && b.now().Sub(begun) > 15*time.Minute {
			out, err := b.call("cancel_schedule", `{"id":"r3"}`)
			revive()
			if err != nil {
				out = b.must("cancel_schedule", `{"id":"r3"}`)
			}
			if out["status"] != "cancelled" {
				t.Errorf("killed at step %d: cancel answers %v", step, out)
			}
			answered = true
		}
	}
	b.edit(func(s *store) { s.dieAt = 0 })
	seen, count := map[string]bool{}, map[string]int{}
	for i, e := range b.store.published() {
		if seen[e.GetDedupeKey()] {
			t.Errorf("killed at step %d: %s was published twice", step, e.GetDedupeKey())
		}
		seen[e.GetDedupeKey()] = true
		count[b.store.texts()[i][:4]]++
	}
	if count["once"] != 1 {
		t.Errorf("killed at step %d: the one-shot fired %d times: %q", step, count["once"], b.store.texts())
	}
	row, err := b.sched.find(t.Context(), sdk.ToolCall{}, "r2")
	if err != nil {
		t.Fatalf("killed at step %d: %v", step, err)
	}
	rule, err := row.Rule()
	if err != nil {
		t.Fatal(err)
	}
	var due int64
	for at := rule.Next(row.Anchor); !at.After(b.now()); at = rule.Next(at) {
		due++
	}
	if row.Fired+row.Skipped != due || int(row.Fired) != count["hour"] {
		t.Errorf("killed at step %d: %d were due, %d fired, %d skipped, %d published", step, due, row.Fired,
			row.Skipped, count["hour"])
	}
	var withdrawn int
	b.edit(func(s *store) { withdrawn = len(s.gone) })
	if withdrawn != count["canc"] {
		t.Errorf("killed at step %d: the cancelled one fired %d times, %d withdrawn", step, count["canc"], withdrawn)
	}
	return reached
}

func (b *bench) dead() (dead bool) {
	b.edit(func(s *store) { dead = s.dieAt != 0 && s.steps >= s.dieAt })
	return dead
}
