package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/processes"
)

// lean is the configuration of a home for one message: separate processes, and only the
// extensions that the job needs.
const lean = `processes: separate
extensions: {offline: {enabled: false}, memory: {enabled: false}, heartbeat: {enabled: false}, tasks: {enabled: false}, links: {enabled: false}}
`

// victims are parts of the command lines of processes to kill at each commit; "" is the
// kernel.
func (r *run) victims() []string {
	return []string{"", "agent:keeper", ledger.ChannelID(r.channel), "openai:openai", "scheduler:scheduler",
		filepath.Base(os.Args[0]) + " extension"}
}

func nameOf(victim string) string {
	switch {
	case victim == "":
		return "kernel"
	case strings.Contains(victim, "extension"):
		return "shop"
	}
	_, name, ok := strings.Cut(victim, ":")
	if !ok {
		return victim
	}
	return name
}

// point is the commit at which a process is killed.
type point struct {
	victim string
	where  string       // "before 7": the 7th commit is applied, not on disk; "after 7": its outcome is not reported
	reply  ledger.Reply // form of the job's reply
	next   string       // the commit at which the next kernel is killed, from its start; empty: none
}

func (p point) name() string {
	switch {
	case p.next != "":
		return "kernel twice"
	case p.reply == ledger.Slowly:
		return nameOf(p.victim) + ", drafts"
	}
	return nameOf(p.victim)
}

func (p point) String() string {
	text := fmt.Sprintf("%s killed %s", p.name(), p.where)
	if p.next != "" {
		text += " and then " + p.next
	}
	return text
}

// within lists the commits of a start at which the second kernel is killed.
const within = 8

// commits kills each process of the job before and after each of its commits: when the
// commit is applied and not on disk, and when it is on disk and its outcome not reported.
func commits(r *run, random *rand.Rand) error {
	var points []point
	for _, kind := range []ledger.Reply{ledger.AtOnce, ledger.Slowly} {
		did, err := r.trace(kind)
		if err != nil {
			return err
		}
		r.say("%d commits of one message%s", len(did),
			map[ledger.Reply]string{ledger.Slowly: " whose reply is shown while it is written"}[kind])
		for n := range did {
			for _, where := range []string{fmt.Sprint("before ", n+1), fmt.Sprint("after ", n+1)} {
				for _, v := range r.victims() {
					if kind == ledger.AtOnce || v == "" || v == ledger.ChannelID(r.channel) {
						points = append(points, point{victim: v, where: where, reply: kind})
					}
				}
				if kind == ledger.AtOnce {
					next := fmt.Sprint([]string{"before ", "after "}[random.IntN(2)], 1+random.IntN(within))
					points = append(points, point{where: where, next: next})
				}
			}
		}
	}
	if r.short {
		random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		points = points[:min(len(points), 8)]
	}
	done := 0
	return r.each(len(points), func(i int, lock *sync.Mutex) error {
		began, p := time.Now(), points[i]
		c, problems, err := r.commitPoint(p)
		lock.Lock()
		defer lock.Unlock()
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		for _, problem := range problems {
			problem = fmt.Sprintf("%s: %s", p, problem)
			r.say("%s", problem)
			r.report.Problems = append(r.report.Problems, problem)
		}
		r.report.add(r.part("commits"), p.name(), c, time.Since(began))
		if done++; done%50 == 0 {
			r.say("%d of %d points", done, len(points))
		}
		return nil
	})
}

// each calls a function n times, several at a time, and returns the first error.
func (r *run) each(n int, do func(i int, lock *sync.Mutex) error) (first error) {
	var (
		mu    sync.Mutex
		all   sync.WaitGroup
		slots = make(chan struct{}, r.parallel)
		errs  = make([]error, n)
	)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i, &mu)
		})
	}
	all.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// trace runs the job and returns a description of each of its commits.
func (r *run) trace(kind ledger.Reply) ([]string, error) {
	h, err := newHome(r.binary, r.channel, lean)
	if err != nil {
		return nil, err
	}
	defer h.close(false)
	trace := h.file("commits")
	h.extra = []string{"SWITCHBOARD_CRASH_TRACE=" + trace, "SWITCHBOARD_CRASH_FROM=user.message"}
	if err := h.start(); err != nil {
		return nil, err
	}
	if c, problems := h.Settle(h.one(kind)); c.Losses() > 0 {
		return nil, fmt.Errorf("the job goes wrong though nothing is killed: %q", problems)
	}
	h.end()
	raw, err := os.ReadFile(trace)
	return strings.Split(strings.TrimSpace(string(raw)), "\n"), err
}

// one kills once during one message.
func (h *home) one(kind ledger.Reply) []ledger.Message {
	m := ledger.Message{Token: ledger.TokenOf("b0", 0), Chat: ledger.ChatOf(0), Reminder: true}
	h.Model.Want(m.Token, ledger.Job{Delay: 1, Reply: kind})
	h.write(m.Chat, m.Token)
	return []ledger.Message{m}
}

func (r *run) commitPoint(p point) (c ledger.Counts, problems []string, err error) {
	h, err := newHome(r.binary, r.channel, lean)
	if err != nil {
		return c, nil, err
	}
	defer func() { h.close(len(problems) > 0) }()
	reached := h.file("reached")
	h.extra = []string{"SWITCHBOARD_CRASH=" + p.where, "SWITCHBOARD_CRASH_FROM=user.message",
		"SWITCHBOARD_CRASH_VICTIM=" + p.victim, "SWITCHBOARD_CRASH_TRACE=" + reached}
	if err := h.start(); err != nil {
		return c, nil, err
	}
	messages := h.one(p.reply)
	if p.victim == "" {
		fell, err := h.fall(messages)
		if err != nil {
			return c, nil, err
		}
		if c.Kills = fell; p.next != "" && fell > 0 {
			h.extra = []string{"SWITCHBOARD_CRASH=" + p.next}
			if err := h.start(); err != nil {
				return c, nil, err
			}
			if fell, err = h.fall(messages); err != nil {
				return c, nil, err
			}
			c.Kills += fell
		}
		if fell == 0 {
			c.NotReached = 1 // the commits of this run were fewer
		}
		h.extra = nil
		if h.PID() == 0 {
			if err := h.start(); err != nil {
				return c, nil, err
			}
		}
	}
	found, problems := h.Settle(messages)
	c.Add(found)
	if p.victim != "" {
		raw, _ := os.ReadFile(reached)
		if strings.Contains(string(raw), "killed ") {
			c.Kills = 1
		} else {
			c.NotReached = 1
		}
	}
	gone := h.astray()
	h.end()
	for _, left := range append(gone, h.ProcessesLeft()...) {
		c.ProcessesLeft++
		problems = append(problems, "leftover process: "+left)
	}
	if len(problems) > 0 {
		problems = append(problems, "see "+h.dir)
	}
	return c, problems, nil
}

// fall waits until the kernel kills itself, and returns the number of kills: 0 if the job
// ends first.
func (h *home) fall(messages []ledger.Message) (int, error) {
	were := map[int]processes.Process{}
	fell := true
	err := ledger.Until("the kernel to fall, or the job to end", 2*h.Patience, func() bool {
		pid := h.PID()
		if pid == 0 {
			return true
		}
		for _, p := range processes.Below(pid) {
			were[p.PID] = p
		}
		fell = !h.Complete(messages) || len(h.Pending()) > 0
		return !fell
	})
	if err != nil || !fell {
		return 0, err
	}
	var list []processes.Process
	for _, p := range were {
		list = append(list, p)
	}
	h.Watch(list)
	return 1, nil
}
