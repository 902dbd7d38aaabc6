package postgres

import (
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// A process that was stopped itself does not take the others for dead.
func TestOnlyWhatIsSeenAges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		looks  []time.Duration // between looks
		beats  []int64
		unseen time.Duration // of the last look
		stale  bool
	}{
		{"it moves", []time.Duration{time.Second, time.Second, time.Second}, []int64{1, 2, 3}, 0, false},
		{"it stands still", []time.Duration{time.Second, time.Second}, []int64{0, 0}, 0, true},
		{"not for long enough", []time.Duration{time.Second}, []int64{0}, 0, false},
		{"no look came", []time.Duration{time.Second, time.Hour}, []int64{0, 0}, time.Hour - lookEvery, false},
		{"it moves again", []time.Duration{time.Second, time.Second, time.Second}, []int64{0, 0, 1}, 0, false},
	} {
		now := time.Now()
		p := &peer{since: now}
		stale := false
		for i, d := range tt.looks {
			now = now.Add(d)
			unseen := time.Duration(0)
			if i == len(tt.looks)-1 {
				unseen = tt.unseen
			}
			stale = p.see(Member{Beat: tt.beats[i]}, now, unseen)
		}
		if stale != tt.stale {
			t.Errorf("%s: stale is %t", tt.name, stale)
		}
	}
}

// The last renewals of a dead process, seen late, do not bring it back; a new one does, and a
// new process.
func TestADeadProcessIsNotRevivedByWhatItWroteBefore(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &peer{since: now}
	p.see(Member{Beat: 4}, now, 0)
	p.dead, p.Beat = true, 6 // as the watch of its lock leaves it
	for _, beat := range []int64{4, 5, 6, 5} {
		if p.see(Member{Beat: beat}, now, 0); !p.dead {
			t.Fatalf("the beat %d has revived it", beat)
		}
	}
	if p.see(Member{Beat: 7}, now, 0); p.dead {
		t.Error("it renews its lease, and is dead")
	}
	p.dead = true
	if p.see(Member{Beat: 1, incarnation: [16]byte{1}}, now, 0); p.dead {
		t.Error("the next process is dead")
	}
}

// Nodes that terminate the connections of another one at the same time find some of them
// gone. An error would cost each its own connection, and its lock with it.
func TestSeveralTerminateAtOnce(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.Start(t, "max_connections=200").Database()
	open := func(name string) *Database {
		d, err := Open(t.Context(), Options{DSN: dsn, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		return d
	}
	connect := func(d *Database) *conn {
		c, err := d.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.drop)
		return c
	}
	stopped := open("stopped")
	var others []*conn
	for _, name := range []string{"a", "b", "c", "d"} {
		others = append(others, connect(open(name)))
	}
	for range 5 {
		for range 30 {
			connect(stopped)
		}
		var all sync.WaitGroup
		for _, c := range others {
			all.Go(func() {
				if err := c.terminate(t.Context(), stopped.incarnation[:]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}
