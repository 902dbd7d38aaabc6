package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/supervisor/supervisortest"
)

func TestBackOffGrowsAndEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
		b.world.launch = func(context.Context, []string) error { return errors.New("no luck") }
		if err := b.Apply([]supervisor.Spec{fakeSpec("one")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		b.world.mu.Lock()
		defer b.world.mu.Unlock()
		starts := b.world.launches
		if len(starts) != 6 {
			t.Fatalf("%d starts, want one and 5 repeats", len(starts))
		}
		for i := range starts[1:] {
			delay, want := starts[i+1].Sub(starts[i]), time.Second<<i
			if delay < want/2 || delay > want*3/2+1 {
				t.Errorf("delay %d is %s, want about %s", i+1, delay, want)
			}
		}
		if s := b.status("one"); s.State != supervisor.Failed || s.LastError != "no luck" || !s.RetryAt.IsZero() {
			t.Errorf("status: %+v", s)
		}
	})
}

// Failures that are further apart than the window never add up.
func TestWindow(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
		if err := b.Apply([]supervisor.Spec{fakeSpec("one")}); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(5*time.Minute + time.Second)
			if s := b.status("one"); s.State != supervisor.Active {
				t.Fatalf("status: %+v", s)
			}
			b.world.processes()[0].end(supervisor.Exit{Reason: "exit status 1"})
			synctest.Wait()
			if s := b.status("one"); s.State != supervisor.BackingOff || time.Until(s.RetryAt) > 1500*time.Millisecond {
				t.Fatalf("status: %+v", s)
			}
		}
		// Close together they do.
		for range 6 {
			time.Sleep(49 * time.Second)
			for _, p := range b.world.processes() {
				p.end(supervisor.Exit{Reason: "exit status 1"})
			}
			synctest.Wait()
		}
		if s := b.status("one"); s.State != supervisor.Failed {
			t.Errorf("status: %+v", s)
		}
	})
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy supervisor.Policy
		clean  bool
		want   supervisor.State
	}{
		{"", true, supervisor.BackingOff},
		{supervisor.Always, false, supervisor.BackingOff},
		{supervisor.Always, true, supervisor.BackingOff},
		{supervisor.OnFailure, false, supervisor.BackingOff},
		{supervisor.OnFailure, true, supervisor.Inactive},
		{supervisor.Never, false, supervisor.Failed},
		{supervisor.Never, true, supervisor.Inactive},
	} {
		t.Run(fmt.Sprintf("%s, clean %v", test.policy, test.clean), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
				s := fakeSpec("one")
				s.Restart.Policy = test.policy
				if err := b.Apply([]supervisor.Spec{s}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				b.world.processes()[0].end(supervisor.Exit{Clean: test.clean, Reason: "it ended"})
				synctest.Wait()
				if s := b.status("one"); s.State != test.want {
					t.Errorf("status: %+v", s)
				}
				time.Sleep(time.Minute)
				if s := b.status("one"); test.want != supervisor.BackingOff && s.State != test.want {
					t.Errorf("a minute later: %+v", s)
				}
				if _, err := b.Restart("one"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if s := b.status("one"); s.State != supervisor.Active {
					t.Errorf("restarted: %+v", s)
				}
			})
		})
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
		var silent atomic.Int32
		silent.Store(2)
		b.world.call = func(ctx context.Context, _, method string) error {
			if method != "Health" || silent.Add(-1) < 0 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		if err := b.Apply([]supervisor.Spec{fakeSpec("one")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := b.status("one"); s.State != supervisor.Active || s.Restarts != 0 {
			t.Fatalf("two silent probes ended it: %+v", s)
		}
		silent.Store(3)
		start := time.Now()
		e, _ := b.Await(t, 0, "gone", func(e supervisortest.Event) bool { return e.Kind == "gone" })
		if took := time.Since(start); took > 40*time.Second || !strings.Contains(e.Reason, "unanswered") {
			t.Errorf("after %s: %v", took, e)
		}
	})
}

func TestMemoryOfAGroup(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
		one, two := fakeSpec("one"), fakeSpec("two")
		one.Group, two.Group, one.Limits.Memory, two.Limits.Memory = "g", "g", 10<<20, 20<<20
		if err := b.Apply([]supervisor.Spec{one, two}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if p := b.world.processes()[0]; p.limits.Memory != 30<<20 {
			t.Errorf("limits %+v", p.limits)
		}
	})
}

// Held, a process starts once, and waits for as long as it takes: also one that
// has failed to start, before which nobody is told of anything.
func TestHold(t *testing.T) {
	t.Parallel()
	inHeldBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
		var calls atomic.Int64
		b.world.call = func(context.Context, string, string) error { calls.Add(1); return nil }
		b.world.launch = func(_ context.Context, ids []string) error {
			if ids[0] == "bad" {
				return supervisor.Failure{Err: errors.New("no luck"), Permanent: true}
			}
			return nil
		}
		if err := b.Apply([]supervisor.Spec{fakeSpec("one"), fakeSpec("bad")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for _, id := range []string{"one", "bad"} {
			if s := b.status(id); s.State != supervisor.Starting {
				t.Errorf("before: %+v", s)
			}
		}
		if n := len(b.world.processes()); n != 1 || calls.Load() != 0 {
			t.Errorf("before: %d processes, %d calls", n, calls.Load())
		}
		b.Begin(41)
		synctest.Wait()
		if s := b.status("one"); s.State != supervisor.Active || s.Generation != 42 || s.Restarts != 0 {
			t.Errorf("after: %+v", s)
		}
		if s := b.status("bad"); s.State != supervisor.Failed || s.LastError != "no luck" {
			t.Errorf("after: %+v", s)
		}
	})
}

// Who is stopped while he waits was never asked for anything.
func TestStopOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	inHeldBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
		b.world.call = func(_ context.Context, _, method string) error { return errors.New(method) }
		b.world.launch = func(ctx context.Context, ids []string) error {
			if ids[0] == "slow" {
				<-ctx.Done()
			}
			return nil
		}
		if err := b.Apply([]supervisor.Spec{fakeSpec("one"), fakeSpec("slow")}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		if err := b.Stop(context.Background()); err != nil || time.Since(began) > time.Second {
			t.Errorf("stopped after %s: %v", time.Since(began), err)
		}
		if n := len(b.world.processes()); n != 0 {
			t.Errorf("%d processes are left", n)
		}
	})
}

func TestGroupMemberStops(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
		base, one, two := fakeSpec("base"), fakeSpec("one"), fakeSpec("two")
		one.Group, two.Group = "g", "g"
		two.Requires = []string{"base"}
		base.Restart.Policy = supervisor.Never
		if err := b.Apply([]supervisor.Spec{base, one, two}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := b.Kill("base", 0, "test"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s, r := b.status("one"), b.status("two"); s.State != supervisor.Active || s.Generation > 3 || r.State != supervisor.Inactive {
			t.Errorf("one: %+v\ntwo: %+v", s, r)
		}
		if _, err := b.Restart("base"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s, r := b.status("one"), b.status("two"); r.State != supervisor.Active || s.PID != r.PID || s.Generation > 3 {
			t.Errorf("one: %+v\ntwo: %+v", s, r)
		}
	})
}

// Whatever is asked for, and whatever breaks: no extension ever runs twice, the
// observer is told in order (the recorder and the world check both), and once
// it is quiet, what can run does.
func TestRandomLife(t *testing.T) {
	t.Parallel()
	first := seed.Number(t)
	for i := range uint64(100) {
		inBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
			randomLife(t, b, rand.New(rand.NewPCG(first+i, 1)))
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", first+i, b.Recorder)
			}
		})
	}
}

func randomLife(t *testing.T, b *fakeBench, r *rand.Rand) {
	t.Helper()
	broken := true
	pause := func(ctx context.Context) error {
		b.world.mu.Lock()
		d, fail := time.Duration(r.IntN(3000))*time.Millisecond, broken && r.IntN(8) == 0
		b.world.mu.Unlock()
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if fail {
			return errors.New("bad luck")
		}
		return nil
	}
	b.world.launch = func(ctx context.Context, _ []string) error { return pause(ctx) }
	b.world.call = func(ctx context.Context, _, _ string) error { return pause(ctx) }

	ids := []string{"a", "b", "c", "d", "e", "f"}
	specs := func() []supervisor.Spec {
		var all []supervisor.Spec
		for i, id := range ids {
			if r.IntN(5) == 0 {
				continue
			}
			s := fakeSpec(id)
			s.Fingerprint = fmt.Sprint(r.IntN(3))
			s.Group = []string{"", "", "g", "h"}[r.IntN(4)]
			s.Restart = supervisor.Restart{Max: r.IntN(4) - 1}
			for range r.IntN(3) {
				if i > 0 && r.IntN(2) == 0 {
					s.Requires = append(s.Requires, ids[r.IntN(i)])
				} else if r.IntN(10) == 0 {
					s.Requires = append(s.Requires, ids[r.IntN(len(ids))])
				}
			}
			all = append(all, s)
		}
		return all
	}
	for range 30 {
		b.world.mu.Lock()
		what := r.IntN(8)
		b.world.mu.Unlock()
		switch what {
		case 0, 1:
			b.world.mu.Lock()
			next := specs()
			b.world.mu.Unlock()
			if err := b.Apply(next); err != nil {
				t.Fatal(err)
			}
		case 2, 3:
			if live := b.world.processes(); len(live) > 0 {
				live[len(live)/2].end(supervisor.Exit{Clean: what == 2, Reason: "it broke"})
			}
		case 4:
			_, _ = b.Restart(ids[3])
		case 5:
			_ = b.Kill(ids[2], 0, "test")
		default:
			time.Sleep(time.Duration(1+what) * time.Second)
		}
	}
	b.world.mu.Lock()
	broken = false
	last := specs()
	b.world.mu.Unlock()
	if err := b.Apply(last); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		_, _ = b.Restart(id)
	}
	time.Sleep(time.Hour)
	if err := b.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	can := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for _, s := range last {
			if !can[s.ID] && !slices.ContainsFunc(s.Requires, func(id string) bool { return !can[id] }) {
				can[s.ID], changed = true, true
			}
		}
	}
	statuses := b.Statuses()
	if len(statuses) != len(last) {
		t.Errorf("%d statuses for %d extensions", len(statuses), len(last))
	}
	for _, s := range statuses {
		if want := map[bool]supervisor.State{true: supervisor.Active, false: supervisor.Inactive}[can[s.ID]]; s.State != want {
			t.Errorf("%s is %s (%s), want %s", s.ID, s.State, s.Detail, want)
		}
	}
}

// What an extension reports survives a probe that was under way meanwhile, and
// a later probe replaces it.
func TestReportWinsOverProbe(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *fakeBench) { //nolint:thelper // it is the test
		b.world.call = func(_ context.Context, _, method string) error {
			if method == "Health" {
				time.Sleep(time.Second)
			}
			return nil
		}
		if err := b.Apply([]supervisor.Spec{fakeSpec("one")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		b.Report("one", 1, &extensionv1.Readiness{State: extensionv1.Readiness_STATE_OFFLINE, Detail: "no network"})
		time.Sleep(5 * time.Second)
		if s := b.status("one"); s.Readiness != extensionv1.Readiness_STATE_OFFLINE || s.ReadinessDetail != "no network" {
			t.Errorf("status: %+v", s)
		}
		time.Sleep(10 * time.Second)
		if s := b.status("one"); s.Readiness != extensionv1.Readiness_STATE_READY || s.ReadinessDetail != "" {
			t.Errorf("after the next probe: %+v", s)
		}
	})
}

// Without a Launcher, an extension with a Command fails, and the error says what to do.
func TestNoLauncher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := supervisor.New(supervisor.Options{Observer: supervisortest.NewRecorder(t)})
		s.Begin(0)
		if err := s.Apply([]supervisor.Spec{fakeSpec("one")}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := s.Statuses()[0]; s.State != supervisor.Failed || !strings.Contains(s.LastError, "give it a Launcher") {
			t.Errorf("status: %+v", s)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
