package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/servers"
)

// points are where a commit is cut off: applied to the file and not sent, in the log and
// not in the file, and in both and not reported.
var points = []string{"before", "appended", "after"}

// commits kills the owner at each commit of one message, at each point, and lets the
// standby go on.
func commits(r *run, random *rand.Rand) error {
	return servers.Stand(func(g *servers.Ground) error {
		s := servers.Start(g, false)
		trace := ""
		if _, _, err := r.at(s, "", func(t string) { trace = t }); err != nil {
			return err
		}
		n := strings.Count(trace, "\n")
		fmt.Printf("%d commits of one message\n", n)
		var all []string
		for i := range n {
			for _, p := range points {
				all = append(all, fmt.Sprintf("%s %d", p, i+1))
			}
		}
		if r.short {
			random.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
			all = all[:3]
		}
		var working sync.WaitGroup
		slots := make(chan struct{}, 2)
		var failed error
		var mu sync.Mutex
		for _, point := range all {
			slots <- struct{}{}
			working.Go(func() {
				defer func() { <-slots }()
				began := time.Now()
				c, problems, err := r.at(s, point, nil)
				if err != nil {
					mu.Lock()
					failed = fmt.Errorf("%s: %w", point, err)
					mu.Unlock()
					return
				}
				kind, _, _ := strings.Cut(point, " ")
				for i := range problems {
					problems[i] = point + ": " + problems[i]
				}
				r.add("owner killed at a commit, "+kind, c, figures{}, problems, 0, time.Since(began))
			})
		}
		working.Wait()
		return failed
	})
}

// at runs one message on two nodes, the owner of which is killed at a point.
func (r *run) at(s *servers.Pair, point string, traced func(trace string)) (c ledger.Counts, problems []string,
	err error,
) {
	err = servers.Stand(func(g *servers.Ground) error {
		w, err := newWorld(g, r.binary, s, false)
		if err != nil {
			return err
		}
		if err := w.grow("a", "b"); err != nil {
			return err
		}
		a := w.nodes[0]
		trace := a.file("commits")
		a.extra = []string{"SWITCHBOARD_CRASH=" + point, "SWITCHBOARD_CRASH_FROM=user.message",
			"SWITCHBOARD_CRASH_TRACE=" + trace}
		if err := w.startAll(); err != nil {
			return err
		}
		if err := w.ownedBy("a"); err != nil {
			return err
		}
		m := w.ask("<c0>", 0, ledger.Job{Delay: 1})
		done := func() bool { return w.Complete([]ledger.Message{m}) && len(w.Pending()) == 0 }
		if err := ledger.Until("the owner to fall, or the job to end", w.Patience, func() bool {
			return a.PID() == 0 || done()
		}); err != nil {
			return err
		}
		if a.PID() == 0 {
			c.Kills = 1
			a.extra = nil
			if err := w.startAll(); err != nil {
				return err
			}
		} else {
			c.NotReached = 1 // the commits of this run were fewer
		}
		found, wrong := w.Settle([]ledger.Message{m})
		c.Add(found)
		if traced != nil {
			raw, err := os.ReadFile(trace)
			if err != nil {
				return err
			}
			traced(string(raw))
			return nil
		}
		_, more := w.check()
		problems = slices.Concat(wrong, more)
		if w.keep = r.keep || len(problems) > 0; len(problems) > 0 {
			problems = append(problems, "see "+w.nodes[0].dir+" and "+w.nodes[1].dir)
		}
		return nil
	})
	return c, problems, err
}
