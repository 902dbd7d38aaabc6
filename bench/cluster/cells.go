package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/processes"
	"github.com/switchboard-run/switchboard/bench/servers"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

const (
	manyCells = 8
	// cellMessages are written in each cell, one each cellPace: far from what the machine can do.
	cellMessages = 60
	cellPace     = 200 * time.Millisecond
	cellIdle     = 5 * time.Second
)

// household is a further cell with a bot of its own.
type household struct {
	name    string
	bot     *telegramtest.Server
	replies chan telegramtest.Message
}

// layout is what a number of nodes with all cells needs.
type layout struct {
	nodes                  int
	p50, p95, cpu, idle, n []float64
}

// cells compares eight cells on three nodes with eight on one.
func cells(r *run, _ *rand.Rand) error {
	all := []*layout{{nodes: 1}, {nodes: 3}}
	for n := range r.rounds {
		for i := range all {
			l := all[(n+i)%len(all)] // in turns, neither always first
			if err := servers.Stand(func(g *servers.Ground) error { return l.measure(r, g) }); err != nil {
				return err
			}
		}
	}
	show := func(format string, values []float64) string {
		return fmt.Sprintf(format+" ("+format+" to "+format+")", quantile(values, 0.5), slices.Min(values), slices.Max(values))
	}
	for _, l := range all {
		fmt.Printf("%d cells on %d nodes, %d rounds of %d messages: p50 %s, p95 %s, CPU of the nodes' %.0f processes per message %s; "+
			"without messages %s of a core\n", manyCells, l.nodes, len(l.p50), manyCells*cellMessages, show("%.1f ms", l.p50),
			show("%.1f ms", l.p95), l.n[0], show("%.2f ms", l.cpu), show("%.1f%%", l.idle))
	}
	return nil
}

func (l *layout) measure(r *run, g *servers.Ground) error {
	w, err := newWorld(g, r.release, servers.Start(g, false), false)
	if err != nil {
		return err
	}
	w.keep = r.keep
	if err := w.grow([]string{"a", "b", "c"}[:l.nodes]...); err != nil {
		return err
	}
	model, err := openaitest.Start()
	if err != nil {
		return err
	}
	g.Cleanup(model.Close)
	model.Keep(1)
	model.Handle(func(q openaitest.Request) openaitest.Answer {
		return openaitest.Answer{Text: "You said: " + q.Last("user"), Pieces: 1}
	})
	var households []*household
	for i := range manyCells {
		h := &household{name: fmt.Sprintf("flat%d", i), replies: make(chan telegramtest.Message, 16)}
		if h.bot, err = telegramtest.New(telegramtest.OnMessage(func(m telegramtest.Message) { h.replies <- m })); err != nil {
			return err
		}
		g.Cleanup(h.bot.Close)
		for _, n := range w.nodes {
			if err := h.furnish(n, model.BaseURL()); err != nil {
				return err
			}
		}
		households = append(households, h)
	}
	if err := w.begin(); err != nil {
		return err
	}
	for i, h := range households {
		n := w.nodes[i%len(w.nodes)]
		create := exec.Command(w.binary, "cells", "create", h.name, "--node", n.name)
		create.Env = ledger.Environment(n.dir, model.BaseURL())
		if out, err := create.CombinedOutput(); err != nil {
			return fmt.Errorf("create %s: %w: %s", h.name, err, out)
		}
		for n := range 5 {
			if _, err := h.ask(n); err != nil {
				return err
			}
		}
	}
	time.Sleep(cellIdle) //nolint:forbidigo // the standbys start what they hold ready
	before := w.cpu()
	time.Sleep(cellIdle) //nolint:forbidigo // measures idle processes
	l.idle = append(l.idle, 100*float64(w.cpu()-before)/float64(cellIdle))

	before = w.cpu()
	var mu sync.Mutex
	var waits []time.Duration
	var failed error
	var writing sync.WaitGroup
	for i, h := range households {
		writing.Go(func() {
			time.Sleep(time.Duration(i) * cellPace / manyCells) //nolint:forbidigo // not all at once
			tick := time.NewTicker(cellPace)
			defer tick.Stop()
			for n := range cellMessages {
				took, err := h.ask(n)
				mu.Lock()
				waits, failed = append(waits, took), errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
				<-tick.C
			}
		})
	}
	writing.Wait()
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	l.cpu = append(l.cpu, milliseconds(w.cpu()-before)/float64(manyCells*cellMessages))
	l.p50 = append(l.p50, milliseconds(quantile(waits, 0.5)))
	l.p95 = append(l.p95, milliseconds(quantile(waits, 0.95)))
	running := 0
	for _, n := range w.nodes {
		running += 1 + len(processes.Below(n.PID()))
	}
	l.n = append(l.n, float64(running))
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%d nodes: p50 %.1f ms, CPU %.2f ms, idle %.1f%%, load %s\n", l.nodes, l.p50[len(l.p50)-1], l.cpu[len(l.cpu)-1],
		l.idle[len(l.idle)-1], strings.TrimSpace(string(load)))
	return failed
}

// furnish writes the files of a cell's home on a node.
func (h *household) furnish(n *node, model string) error {
	dir := n.file("cells", h.name)
	secrets := fmt.Sprintf("TELEGRAM_BOT_TOKEN=%s\nTELEGRAM_API_URL=%s\nOPENAI_API_KEY=k\nOPENAI_BASE_URL=%s\nOPENAI_MODEL=m\n",
		h.bot.Token(), h.bot.URL(), model)
	return errors.Join(os.MkdirAll(dir, 0o700),
		os.WriteFile(n.file("cells", h.name, "config.yaml"), []byte("channels: {telegram_channel: {allow_from: [\"*\"]}}\n"+lean), 0o600),
		os.WriteFile(n.file("cells", h.name, "secrets.env"), []byte(secrets), 0o600))
}

// ask writes a message, in one of several chats, and returns how long the reply took.
func (h *household) ask(n int) (time.Duration, error) {
	chat := int64(100 + n%10)
	h.bot.AddChat(telegramtest.Chat{ID: chat, Type: telegramtest.Private})
	began := time.Now()
	h.bot.Say(chat, fmt.Sprint("message ", n))
	select {
	case <-h.replies:
		return time.Since(began), nil
	case <-time.After(ledger.Patience):
		return 0, fmt.Errorf("%s: the reply to message %d: %w", h.name, n, ledger.ErrTime)
	}
}

// cpu is the processor time of all processes of the nodes so far.
func (w *world) cpu() (total time.Duration) {
	for _, n := range w.nodes {
		total += processes.CPU(n.PID())
		for _, p := range processes.Below(n.PID()) {
			total += processes.CPU(p.PID)
		}
	}
	return total
}
