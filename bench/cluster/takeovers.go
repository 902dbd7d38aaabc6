package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/servers"
)

// replies measures how long people wait: a message is written every few milliseconds, each
// in a chat of its own, and the model answers at once.
type replies struct {
	world *world
	every time.Duration
	name  string

	mu    sync.Mutex
	asked map[string]time.Time
	took  map[time.Time]time.Duration // by the time of asking
	stop  chan struct{}
	done  sync.WaitGroup
}

func (w *world) listen(name string, every time.Duration) *replies {
	p := &replies{world: w, every: every, name: name, asked: map[string]time.Time{}, took: map[time.Time]time.Duration{},
		stop: make(chan struct{})}
	w.onMessage(func(m ledger.Arrived) {
		p.mu.Lock()
		defer p.mu.Unlock()
		token := ledger.TokenIn(m.Text)
		if at, ok := p.asked[token]; ok {
			delete(p.asked, token)
			p.took[at] = time.Since(at)
		}
	})
	p.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
			case <-p.stop:
				return
			}
			token := ledger.TokenOf(name, n)
			p.mu.Lock()
			p.asked[token] = time.Now()
			p.mu.Unlock()
			w.Model.Want(token, ledger.Job{})
			w.Platform.Write(ledger.ChatOf(n), "message "+token) // an agent answers what waits in a chat at once
		}
	})
	return p
}

// end stops writing, waits for the replies that are missing, and returns the longest wait of
// those who asked after an instant.
func (p *replies) end(since time.Time) (longest time.Duration, err error) {
	close(p.stop)
	p.done.Wait()
	err = ledger.Until("the replies to all messages", ledger.Patience, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.asked) == 0
	})
	p.world.onMessage(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, took := range p.took {
		if at.After(since.Add(-2 * p.every)) {
			longest = max(longest, took)
		}
	}
	return longest, err
}

// median wait of all.
func (p *replies) usual() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []time.Duration
	for _, took := range p.took {
		all = append(all, took)
	}
	return quantile(all, 0.5)
}

func quantile[T float64 | time.Duration](all []T, q float64) T {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// event is what interrupts the service; it returns when it began, and when it was over by
// itself (zero: it was not).
type event struct {
	name   string
	rounds int
	strike func(w *world, owner *node) (began time.Time, down time.Duration)
}

var events = []event{
	{"the owner's process dies", 6, func(_ *world, owner *node) (time.Time, time.Duration) {
		began := time.Now()
		owner.kill()
		return began, 0
	}},
	{"the owner is stopped whole", 2, func(_ *world, owner *node) (time.Time, time.Duration) {
		began := time.Now()
		owner.signal(syscall.SIGSTOP, true)
		return began, 0
	}},
	{"the owner is cut off", 2, func(_ *world, owner *node) (time.Time, time.Duration) {
		began := time.Now()
		owner.proxy.Filter(func(bool, []byte) bool { return false })
		return began, 0
	}},
	{"the owner is asked to end", 4, func(_ *world, owner *node) (time.Time, time.Duration) {
		began := time.Now()
		owner.Stop()
		return began, 0
	}},
	{"the cell is moved", 4, func(w *world, owner *node) (time.Time, time.Duration) {
		began := time.Now()
		w.query("UPDATE switchboard.cell SET wanted = '" + w.others(owner)[0].name + "', ready = ''; NOTIFY switchboard")
		return began, 0
	}},
	{"PostgreSQL is restarted", 3, func(w *world, _ *node) (time.Time, time.Duration) {
		began := time.Now()
		w.servers.Primary.Restart()
		return began, time.Since(began)
	}},
}

// takeovers measures how long people wait for a reply when the owner is lost: the longest
// wait of those who write while that happens.
func takeovers(r *run, _ *rand.Rand) error { return r.interrupt(events, false) }

// backlog measures the same while 10,000 deliveries wait at an extension that does not
// finish them.
func backlog(r *run, _ *rand.Rand) error { return r.interrupt(events[:losses], true) }

// losses is the number of events in which the owner is lost.
const losses = 3

func (r *run) interrupt(events []event, backlog bool) error {
	return servers.Stand(func(g *servers.Ground) error {
		w, err := newWorld(g, r.release, servers.Start(g, false), false)
		if err != nil {
			return err
		}
		w.keep, w.backlog = r.keep, backlog
		if err := w.grow("a", "b"); err != nil {
			return err
		}
		if err := w.begin(); err != nil {
			return err
		}
		for i, e := range events {
			if !strings.Contains(e.name, r.like) {
				continue
			}
			var waits, beyond []time.Duration
			var usual time.Duration
			for n := range e.rounds * r.rounds {
				time.Sleep(time.Second) //nolint:forbidigo // the standby is ready
				owner, err := w.await()
				if err != nil {
					return err
				}
				if backlog {
					if err := owner.awaitBacklog(); err != nil {
						return err
					}
				}
				p := w.listen(fmt.Sprintf("t%dn%d", i, n), 50*time.Millisecond)
				time.Sleep(500 * time.Millisecond) //nolint:forbidigo // people write
				began, down := e.strike(w, owner)
				if down == 0 {
					if err := ledger.Until("another owner", w.Patience, func() bool {
						o := w.owner()
						return o != nil && o != owner
					}); err != nil {
						return err
					}
				}
				time.Sleep(300 * time.Millisecond) //nolint:forbidigo // people write
				longest, err := p.end(began)
				if err != nil {
					return err
				}
				waits, beyond = append(waits, longest), append(beyond, longest-down)
				usual = p.usual()
				owner.proxy.Filter(nil)
				owner.proxy.Cut()
				if err := w.heal(); err != nil {
					return err
				}
			}
			text := ""
			if e.name == "PostgreSQL is restarted" {
				text = fmt.Sprintf("; beyond its downtime p50 %s, longest %s", round(quantile(beyond, 0.5)), round(quantile(beyond, 1)))
			}
			fmt.Printf("%s: the longest wait of a person, p50 %s, p99 %s, of %d times (usually %s)%s\n", e.name,
				round(quantile(waits, 0.5)), round(quantile(waits, 0.99)), len(waits), round(usual), text)
		}
		return nil
	})
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
