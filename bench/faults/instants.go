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
	"github.com/switchboard-run/switchboard/bench/processes"
)

const (
	crowdSize = 100 // messages at most, each in a chat of its own
	perBatch  = 5   // kills while they are worked on
	perVictim = 3   // of one extension: an event is dead after it has crashed its handler five times
)

// aims are kinds of instants; repeated ones are more frequent.
var aims = []string{
	"any", "any", "any", // random
	// the model has answered, and the reply may not have been sent
	"answered", "answered", "answered", "answered", "answered",
	"sending", "sending", "sending", // the platform has the reply, but the kernel has no receipt
	"starting", // a killed kernel has just been started again
	"stopping", // the kernel was asked to end and has not ended yet
	"together", // an extension, and the kernel at once
	"in a row", // an extension, the kernel while it looks at that, and an extension of the next kernel
	"group",    // the process group of an extension
}

// instants sends a hundred messages at once, and kills the kernel or an extension at random
// instants while they are handled, repeatedly.
func instants(r *run, random *rand.Rand) error {
	batches := (r.kills + perBatch - 1) / perBatch
	var h *home
	defer func() {
		if h != nil {
			h.close(false)
		}
	}()
	for b := range batches {
		// Half of them with the processes of a home as it is, half with one for each
		// extension.
		if b == batches/2 && h != nil {
			if r.leave(h) {
				h = nil
			}
		}
		if h == nil {
			config := "processes: grouped\n"
			if b >= batches/2 {
				config = "processes: separate\n"
			}
			var err error
			if h, err = newHome(r.binary, r.channel, config); err != nil {
				return err
			}
			if err := h.start(); err != nil {
				return err
			}
			if err := h.warm(); err != nil {
				return err
			}
		}
		began := time.Now()
		batch := &batch{home: h, random: random, name: fmt.Sprint("b", b), kills: min(perBatch, r.kills-b*perBatch)}
		by, problems, err := batch.run()
		if err != nil {
			return err
		}
		took := time.Since(began)
		for victim, c := range by {
			r.report.add(r.part("instants"), victim, c, took/time.Duration(len(by)))
		}
		r.say("batch %d of %d: %s, %s", b+1, batches, strings.Join(batch.did, ", "), took.Round(time.Millisecond))
		if len(problems) > 0 {
			problems = append(problems, fmt.Sprintf("batch %d killed %s; see %s", b+1, strings.Join(batch.did, ", "), h.dir))
			r.report.Problems = append(r.report.Problems, problems...)
			r.say("%s", strings.Join(problems, "\n"))
			h.close(true)
			h = nil
		}
	}
	if h != nil && r.leave(h) {
		h = nil
	}
	return nil
}

// leave counts everything in a home again and closes it.
func (r *run) leave(h *home) bool {
	c, problems := h.Again()
	if len(problems) > 0 {
		problems = append(problems, "see "+h.dir)
		r.report.Problems = append(r.report.Problems, problems...)
		r.say("%s", strings.Join(problems, "\n"))
		c.Messages = 0
		r.report.add(r.part("instants"), "afterwards", c, 0)
	}
	h.close(len(problems) > 0)
	return true
}

// warm waits until everything runs.
func (h *home) warm() error {
	m := ledger.Message{Token: ledger.TokenOf("warm", 0), Chat: ledger.ChatOf(0)}
	h.Model.Want(m.Token, ledger.Job{})
	h.write(m.Chat, m.Token)
	return ledger.Until("the first reply", ledger.Patience, func() bool { return h.Complete([]ledger.Message{m}) })
}

// batch is a hundred messages, and the kills meanwhile.
type batch struct {
	*home
	random *rand.Rand
	name   string
	kills  int
	did    []string       // kills, with their times
	killed map[string]int // extensions, by their command lines
}

func (b *batch) run() (by map[string]ledger.Counts, problems []string, err error) {
	b.killed = map[string]int{}
	var messages []ledger.Message
	for i := range ledger.Most(b.channel, crowdSize) {
		m := ledger.Message{Token: ledger.TokenOf(b.name, i), Chat: ledger.ChatOf(i), Reminder: true}
		b.Model.Want(m.Token, ledger.Job{Delay: ledger.DelayOf(i), Reply: ledger.ReplyOf(i)})
		messages = append(messages, m)
	}
	for _, m := range messages {
		b.write(m.Chat, m.Token)
	}
	by = map[string]ledger.Counts{}
	for range b.kills {
		victim, err := b.strike(messages)
		if err != nil {
			return nil, nil, err
		}
		if strings.Contains(victim, " and ") {
			victim = "several at once"
		}
		c := by[victim]
		c.Kills++
		by[victim] = c
	}
	c, problems := b.Settle(messages)
	found := b.astray()
	for _, p := range append(found, b.ProcessesLeft()...) {
		c.ProcessesLeft++
		problems = append(problems, "leftover process: "+p)
	}
	by["any of them"] = c // a batch is of several victims
	return by, problems, nil
}

// strike kills a process at an instant, and starts a killed kernel again.
func (b *batch) strike(messages []ledger.Message) (victim string, err error) {
	aim := aims[b.random.IntN(len(aims))]
	share, slip, kernel, pick := b.random.Float64(), b.random.Float64(), b.random.IntN(2) == 0, b.random.Float64()
	if b.PID() == 0 {
		if err := b.start(); err != nil {
			return "", err
		}
	}
	switch aim {
	case "any":
		time.Sleep(moment(share*share, 1500*time.Millisecond))
	case "answered":
		b.await(messages, func(now func()) {
			b.Model.OnReply(func(string) { now() })
		})
		time.Sleep(moment(slip, 12*time.Millisecond))
	case "sending":
		// It is killed before the platform's answer leaves.
		victim = b.within(messages, func() string { return b.strikeOne(kernel, pick) })
	case "starting":
		b.crash()
		if err := b.start(); err != nil {
			return "", err
		}
		time.Sleep(moment(slip, 250*time.Millisecond))
		kernel = true
	case "stopping":
		time.Sleep(moment(share, 500*time.Millisecond))
		b.Signal(syscall.SIGTERM)
		time.Sleep(moment(slip, 400*time.Millisecond))
		kernel = true
	case "together", "in a row":
		time.Sleep(moment(share, time.Second))
		victim = b.strikeOne(false, pick)
		if aim == "in a row" {
			time.Sleep(moment(slip, 60*time.Millisecond))
		}
		if victim != "kernel" {
			victim += " and kernel"
			b.crash()
		}
		if aim == "in a row" {
			if err := b.start(); err != nil {
				return "", err
			}
			time.Sleep(moment(pick, 400*time.Millisecond))
			b.strikeOne(false, slip)
			victim += " and another"
		}
	case "group":
		time.Sleep(moment(share, time.Second))
		victim = b.strikeGroup(pick)
	}
	if victim == "" {
		victim = b.strikeOne(kernel, pick)
	}
	b.did = append(b.did, victim+" ("+aim+")")
	if b.PID() == 0 {
		return victim, b.start()
	}
	return victim, nil
}

// await waits for an instant that arm announces, or for the end of the batch.
func (b *batch) await(messages []ledger.Message, arm func(now func())) {
	hit := make(chan struct{})
	// A few of them pass first.
	pass := b.random.IntN(20)
	var mu sync.Mutex
	arm(func() {
		mu.Lock()
		defer mu.Unlock()
		if pass--; pass == -1 {
			close(hit)
		}
	})
	defer arm(func() {})
	for range 200 {
		select {
		case <-hit:
			return
		case <-time.After(20 * time.Millisecond):
			if b.replied(messages) {
				return
			}
		}
	}
}

func (b *batch) replied(messages []ledger.Message) bool {
	l := b.Look(messages)
	return !slices.ContainsFunc(messages, func(m ledger.Message) bool { return !l.Whole(m) })
}

// within kills while the platform handles a message, before it answers; "" if no message
// came.
func (b *batch) within(messages []ledger.Message, end func() string) (victim string) {
	var once sync.Once
	done := make(chan struct{})
	b.await(messages, func(now func()) {
		b.onMessage(func(ledger.Arrived) { now() })
	})
	b.onMessage(func(ledger.Arrived) {
		once.Do(func() {
			victim = end()
			close(done)
		})
	})
	select {
	case <-done:
	case <-time.After(500 * time.Millisecond):
		once.Do(func() { close(done) })
		<-done
	}
	b.onMessage(nil)
	return victim
}

// atWork lists the processes that the job needs, by the names of shortly.
func (b *batch) atWork() []string {
	return []string{"several extensions", "keeper", ledger.ChannelID(b.channel), "openai", "scheduler", "shop"}
}

// pick returns an extension that was not killed too often.
func (b *batch) pick(share float64) (processes.Process, bool) {
	running := slices.DeleteFunc(processes.Below(b.PID()), func(p processes.Process) bool {
		return p.Command == "" || ledger.Idle(p) || b.killed[p.Command] >= perVictim || !slices.Contains(b.atWork(), shortly(p.Command))
	})
	if len(running) == 0 {
		return processes.Process{}, false
	}
	return running[int(share*float64(len(running)))], true
}

// strikeOne kills the kernel, or one of its extensions.
func (b *batch) strikeOne(kernel bool, share float64) string {
	if !kernel {
		if p, ok := b.pick(share); ok && p.Kill() {
			b.killed[p.Command]++
			return shortly(p.Command)
		}
	}
	b.crash()
	return "kernel"
}

// strikeGroup kills the process group of an extension.
func (b *batch) strikeGroup(share float64) string {
	if p, ok := b.pick(share); ok && p.Runs() && syscall.Kill(-p.PID, syscall.SIGKILL) == nil {
		b.killed[p.Command]++
		return shortly(p.Command)
	}
	b.crash()
	return "kernel"
}

// shortly names a process of an extension by its command line.
func shortly(command string) string {
	f := strings.Fields(command)
	switch {
	case len(f) < 3:
		return "shop"
	case len(f) > 3:
		return "several extensions"
	}
	_, name, ok := strings.Cut(f[2], ":")
	if !ok {
		name = f[2]
	}
	return name
}

// moment returns a random part of a duration.
func moment(share float64, of time.Duration) time.Duration { return time.Duration(share * float64(of)) }
