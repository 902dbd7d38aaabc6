package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/servers"
)

const (
	crowdSize = 30 // messages at most, each in a chat of its own
	perBatch  = 3  // faults while they are worked on
)

// fault harms the cluster. It returns what ends the harm; nil: heal does.
type fault struct {
	name   string
	weight int
	// quick can be done while the platform handles a message.
	quick  bool
	strike func(w *world, owner *node, random *rand.Rand) (end func() error)
}

// longer than the lease, and than its loss takes to be noticed.
func longer(random *rand.Rand) time.Duration {
	return 2500*time.Millisecond + time.Duration(random.Int64N(int64(2*time.Second)))
}

// faults that a random instant has.
var faults = []fault{
	{"owner killed", 6, true, func(_ *world, owner *node, random *rand.Rand) func() error {
		owner.kill()
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		return nil
	}},
	{"owner's kernel stopped for longer than the lease", 2, true, paused(false)},
	{"owner's processes stopped for longer than the lease", 2, true, paused(true)},
	{"owner cut from PostgreSQL", 2, true, func(_ *world, owner *node, random *rand.Rand) func() error {
		owner.proxy.Down(true)
		time.Sleep(time.Duration(random.Int64N(int64(4 * time.Second))))
		return nil
	}},
	{"owner's connections half-open", 2, true, func(_ *world, owner *node, random *rand.Rand) func() error {
		owner.proxy.Filter(func(bool, []byte) bool { return false })
		time.Sleep(time.Duration(random.Int64N(int64(5 * time.Second))))
		owner.proxy.Filter(nil)
		owner.proxy.Cut()
		return nil
	}},
	{"slow link of the owner", 1, true, func(_ *world, owner *node, random *rand.Rand) func() error {
		delay := time.Duration(random.Int64N(int64(60 * time.Millisecond)))
		owner.proxy.Filter(func(bool, []byte) bool {
			time.Sleep(delay)
			return true
		})
		time.Sleep(3 * time.Second)
		return nil
	}},
	{"an answer of PostgreSQL lost", 3, true, func(_ *world, owner *node, _ *rand.Rand) func() error {
		loseAnswer(owner)
		return nil
	}},
	{"a statement that arrives after it was sent again", 2, true, func(_ *world, owner *node, _ *rand.Rand) func() error {
		late, held := holdAppend(owner)
		select {
		case <-held:
			owner.proxy.CutClients()
			time.Sleep(200 * time.Millisecond)
		case <-time.After(2 * time.Second):
			owner.proxy.Hold(nil, nil, nil)
		}
		close(late)
		return nil
	}},
	{"a standby killed", 1, true, func(w *world, owner *node, random *rand.Rand) func() error {
		others := w.others(owner)
		others[random.IntN(len(others))].kill()
		return nil
	}},
	{"all nodes killed", 1, true, func(w *world, _ *node, _ *rand.Rand) func() error {
		for _, n := range w.nodes {
			n.kill()
		}
		return nil
	}},
	{"PostgreSQL restarted", 2, false, func(w *world, _ *node, _ *rand.Rand) func() error {
		w.servers.Primary.Restart()
		return nil
	}},
	{"PostgreSQL killed", 1, false, func(w *world, _ *node, random *rand.Rand) func() error {
		w.servers.Primary.Kill()
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		w.servers.Primary.Run()
		return nil
	}},
	{"synchronous standby promoted", 2, false, func(w *world, _ *node, _ *rand.Rand) func() error {
		w.failover()
		return func() error {
			w.servers.AddStandby()
			return nil
		}
	}},
	{"wait for the standby cancelled", 1, false, unwaited("pg_cancel_backend")},
	{"wait for the standby terminated", 1, false, unwaited("pg_terminate_backend")},
	{"disk of a node full", 2, false, func(w *world, _ *node, random *rand.Rand) func() error {
		if w.fill() {
			time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
		}
		w.empty()
		return nil
	}},
}

func paused(whole bool) func(*world, *node, *rand.Rand) func() error {
	return func(_ *world, owner *node, random *rand.Rand) func() error {
		owner.signal(syscall.SIGSTOP, whole)
		time.Sleep(longer(random))
		owner.signal(syscall.SIGCONT, true)
		return nil
	}
}

// isAppend reports whether a packet has the append of an entry.
func isAppend(toServer bool, b []byte) bool {
	return toServer && (bytes.Contains(b, []byte("\x00append\x00")) ||
		bytes.Contains(b, []byte("INSERT INTO switchboard.log"))) // of a spoiled kernel
}

// loseAnswer swallows the answer to the next append of a node, and cuts its connections.
func loseAnswer(n *node) {
	var sent atomic.Bool
	lost := make(chan struct{})
	var once sync.Once
	n.proxy.Filter(func(toServer bool, b []byte) bool {
		if isAppend(toServer, b) {
			sent.Store(true)
		}
		if !toServer && sent.Load() {
			once.Do(func() { close(lost) })
			return false
		}
		return true
	})
	select {
	case <-lost:
	case <-time.After(2 * time.Second):
	}
	n.proxy.Filter(nil)
	n.proxy.Cut()
}

// holdAppend holds back the next append of a node until late is closed.
func holdAppend(n *node) (late chan struct{}, held chan []byte) {
	late, held = make(chan struct{}), make(chan []byte, 1)
	n.proxy.Hold(isAppend, held, late)
	return late, held
}

// unwaited ends the wait of appends for the synchronous standby, which is stopped.
func unwaited(how string) func(*world, *node, *rand.Rand) func() error {
	return func(w *world, _ *node, random *rand.Rand) func() error {
		s := w.servers
		if s.Standby == nil {
			return nil
		}
		s.Standby.Signal(syscall.SIGSTOP)
		for range 3 + random.IntN(5) {
			time.Sleep(200 * time.Millisecond)
			w.query("SELECT " + how + "(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND " +
				"application_name LIKE 'switchboard %'")
		}
		s.Standby.Signal(syscall.SIGCONT)
		return nil
	}
}

// small makes a node whose disk is small enough to be filled, and reports whether it can.
func (w *world) small(name string) bool {
	dir, err := os.MkdirTemp("/tmp", "sbc")
	if err != nil {
		return false
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m,mode=700"); err != nil {
		_ = os.Remove(dir)
		return false
	}
	w.ground.Cleanup(func() {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		_ = os.Remove(dir)
	})
	err = w.addNode(name, dir)
	w.tmpfs = dir
	return err == nil
}

// fill fills the disk of the node that has a small one, and reports whether there is one.
func (w *world) fill() bool {
	if w.tmpfs == "" {
		return false
	}
	f, err := os.Create(w.tmpfs + "/ballast")
	if err != nil {
		return false
	}
	for block := make([]byte, 64<<10); len(block) > 256; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	_ = f.Close()
	return true
}

func (w *world) empty() { _ = os.Remove(w.tmpfs + "/ballast") }

// instants has people write to a cluster, and harms it at random instants while that is
// worked on, repeatedly.
func instants(r *run, random *rand.Rand) error {
	if !slices.ContainsFunc(faults, func(f fault) bool { return strings.Contains(f.name, r.like) }) {
		return nil
	}
	for left, number := r.instants, 0; left > 0; {
		err := servers.Stand(func(g *servers.Ground) error {
			w, err := newWorld(g, r.binary, servers.Start(g, true), true)
			if err != nil {
				return err
			}
			if !w.small("a") {
				fmt.Println("left out: a full disk (no tmpfs can be mounted)")
				if err := w.grow("a"); err != nil {
					return err
				}
			}
			if err := w.grow("b", "c"); err != nil {
				return err
			}
			if err := w.begin(); err != nil {
				return err
			}
			// A new cluster now and then: the history of keys stays short.
			for batches := 0; left > 0 && batches < 20; batches++ {
				number++
				b := &batch{world: w, random: random, name: fmt.Sprint("b", number), kills: min(perBatch, left)}
				left -= b.kills
				ok, err := b.run(r)
				if err != nil {
					return err
				}
				if !ok {
					w.keep = true
					fmt.Println("see", w.nodes[0].dir, w.nodes[1].dir, w.nodes[2].dir)
					return nil
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// batch is a crowd of messages, and the faults meanwhile.
type batch struct {
	*world
	random *rand.Rand
	name   string
	kills  int
}

func (b *batch) run(r *run) (ok bool, err error) {
	began := time.Now()
	var messages []ledger.Message
	for i := range crowdSize {
		messages = append(messages, b.ask(ledger.TokenOf(b.name, i), i,
			ledger.Job{Delay: ledger.DelayOf(i), Reply: ledger.ReplyOf(i)}))
	}
	var did []string
	for range b.kills {
		f := b.pick(r.like)
		if err := b.strike(f); err != nil {
			return false, err
		}
		did = append(did, f.name)
		r.add(f.name, ledger.Counts{Kills: 1}, figures{}, nil, 0, 0)
	}
	c, problems := b.Settle(messages)
	told := b.told()
	found, more := b.check()
	problems = append(problems, more...)
	if told > 0 { // the standby was synchronous
		problems = append(problems, fmt.Sprintf("a node told %d times that commits were lost, and none were", told))
	}
	if len(problems) > 0 {
		problems = append(problems, "after: "+strings.Join(did, ", "))
	}
	r.add("any of them", c, found, problems, told, time.Since(began))
	fmt.Printf("%s: %s: %s, %d entries, %d operations\n", b.name, strings.Join(did, ", "),
		time.Since(began).Round(time.Millisecond), found.Entries, found.Operations)
	return len(problems) == 0, nil
}

// pick returns one of the faults with like in their names, by its weight.
func (b *batch) pick(like string) (picked fault) {
	total := 0
	for _, f := range faults {
		if strings.Contains(f.name, like) {
			if total += f.weight; b.random.IntN(total) < f.weight {
				picked = f
			}
		}
	}
	return picked
}

// strike harms the cluster at an instant, and heals it.
func (b *batch) strike(f fault) error {
	owner, err := b.await()
	if err != nil {
		return err
	}
	var end func() error
	struck := false
	share, aim := b.random.Float64(), b.random.IntN(3)
	switch {
	case aim == 0 && f.quick: // before the platform's answer leaves
		hit := make(chan struct{})
		var once sync.Once
		b.onMessage(func(ledger.Arrived) {
			once.Do(func() {
				if owner := b.owner(); owner != nil {
					end, struck = f.strike(b.world, owner, b.random), true
				}
				close(hit)
			})
		})
		select {
		case <-hit:
		case <-time.After(time.Second):
			once.Do(func() { close(hit) })
			<-hit
		}
		b.onMessage(nil)
	case aim == 1: // the model has answered, and the reply may not have been sent
		answered := make(chan struct{})
		var once sync.Once
		b.Model.OnReply(func(string) { once.Do(func() { close(answered) }) })
		select {
		case <-answered:
		case <-time.After(time.Second):
		}
		b.Model.OnReply(nil)
		time.Sleep(time.Duration(share * float64(12*time.Millisecond)))
	default:
		time.Sleep(time.Duration(share * share * float64(1500*time.Millisecond)))
	}
	if !struck {
		if current := b.owner(); current != nil {
			owner = current
		}
		end = f.strike(b.world, owner, b.random)
	}
	err = b.heal()
	if end != nil {
		err = errors.Join(err, end())
	}
	return err
}
