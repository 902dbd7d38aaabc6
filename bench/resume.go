package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// modelTime is the duration of a completion, completionsAtOnce the number at a time: the
// default of models.concurrency.
const (
	modelTime         = 20 * time.Millisecond
	completionsAtOnce = 64
)

// resume kills a kernel with waiting inputs of many sessions, and measures how long the next
// one takes until it waits for the model, and until all are answered.
func resume(b *bench) error {
	sessions := b.scale(10_000)
	var out, outCPU, all, allCPU []time.Duration
	var memory []int64
	for range min(b.rounds, 3) {
		r, err := b.resumeOnce(sessions)
		if err != nil {
			return err
		}
		out, outCPU, all, allCPU, memory = append(out, r.out), append(outCPU, r.outCPU), append(all, r.all),
			append(allCPU, r.allCPU), append(memory, r.memory)
		if r.most > completionsAtOnce || r.again > 0 {
			return fmt.Errorf("%d completions at once; %d sessions were asked for twice while others waited", r.most, r.again)
		}
		fmt.Printf("completions at once: %d; asked for twice while others waited: %d\n", r.most, r.again)
	}
	fmt.Printf("%d sessions with an input waiting, kernel killed:\n", sessions)
	fmt.Printf("started, recovered and handing out until nothing goes on: %s, kernel CPU %s\n", spread(out, milliseconds),
		spread(outCPU, milliseconds))
	fmt.Printf("all answered, counted from the model's first answer: %s, kernel CPU from the start %s\n",
		spread(all, milliseconds), spread(allCPU, milliseconds))
	fmt.Println("memory (PSS) of all processes at most:", spread(memory,
		func(k int64) string { return fmt.Sprintf("%.1f MiB", float64(k)/1024) }))
	return nil
}

type resumed struct {
	out, outCPU time.Duration // until the kernel was idle
	all, allCPU time.Duration // until all were answered
	most        int           // completions at once
	again       int           // asked for a second time too early
	memory      int64         // KiB
}

func (b *bench) resumeOnce(sessions int) (r resumed, err error) {
	d, err := newBed()
	if err != nil {
		return r, err
	}
	defer d.close()
	gate := make(chan struct{})
	var asking sync.Mutex
	asked := map[string]bool{} // texts in the second kernel's requests
	again := 0
	d.model.Handle(func(r openaitest.Request) openaitest.Answer {
		asking.Lock()
		defer asking.Unlock()
		asked[r.Last("user")] = true
		if n := len(asked); strings.HasPrefix(r.Last("user"), "again") && n < sessions-completionsAtOnce {
			again++ // other sessions had no request yet
		}
		return openaitest.Answer{Text: "Welcome back.", Pieces: 1, Gate: gate, Delay: modelTime}
	})
	if err := d.start(b.binary); err != nil {
		return r, err
	}
	for i := range sessions {
		chat := int64(100 + i)
		d.telegram.AddChat(telegramtest.Chat{ID: chat, Type: telegramtest.Private})
		d.say(chat, fmt.Sprint("are you there? ", chat))
	}
	if err := until("the platform's messages were not taken",
		func() bool { return len(d.telegram.PendingUpdates()) == 0 }); err != nil {
		return r, err
	}
	_ = d.kernel.Process.Kill()
	_ = d.kernel.Wait()
	asking.Lock()
	clear(asked)
	asking.Unlock()

	began := time.Now()
	if err := d.start(b.binary); err != nil {
		return r, err
	}
	stop, peak := d.watchMemory()
	defer stop()
	// It is idle once the agent runs its maximum of turns, and none can continue.
	const window = time.Second
	before, since, quiet := d.kernelCPU(), began, 0
	if err := until("the kernel did not come to rest", func() bool {
		time.Sleep(window) //nolint:forbidigo // resting is what is waited for
		used := d.kernelCPU()
		asking.Lock()
		busy := len(asked) < min(sessions, completionsAtOnce)
		asking.Unlock()
		if quiet++; busy || used-before > window/20*time.Duration(quiet) {
			before, since, quiet = used, time.Now(), 0
		}
		return quiet == 3
	}); err != nil {
		return r, err
	}
	r.out, r.outCPU = since.Sub(began), before

	opened := time.Now()
	close(gate)
	answered := map[int64]bool{}
	for len(answered) < sessions {
		m, err := d.reply(context.Background())
		if err != nil {
			return r, fmt.Errorf("after %d answers: %w", len(answered), err)
		}
		answered[m.Chat] = true
		if len(answered) <= sessions/20 {
			d.say(m.Chat, fmt.Sprint("again ", m.Chat)) // its turn comes after all others
		}
	}
	r.all, r.allCPU, r.most = time.Since(opened), d.kernelCPU(), d.model.MaxConcurrent()
	asking.Lock()
	r.again = again
	asking.Unlock()
	stop()
	r.memory = peak()
	return r, nil
}

// until polls a condition for at most two minutes.
func until(otherwise string, done func() bool) error {
	deadline := time.Now().Add(2 * time.Minute)
	for ; !done(); time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // waits for processes
		if time.Now().After(deadline) {
			return errors.New(otherwise)
		}
	}
	return nil
}

// kernelCPU returns the processor time of the kernel's own process so far.
func (d *bed) kernelCPU() time.Duration { return cpuOf(d.kernel.Process.Pid) }

// watchMemory samples the memory of all processes until it is stopped.
func (d *bed) watchMemory() (stop func(), peak func() int64) {
	done := make(chan struct{})
	var watching sync.WaitGroup
	most := int64(0)
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
				kib, _ := d.pss()
				most = max(most, kib)
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(done)
		watching.Wait()
	})
	return stop, func() int64 { return most }
}
