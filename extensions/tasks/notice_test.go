package tasks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

// Results that nobody has collected are told to a main that is idle: those of
// one time in one notice, each once; it is withdrawn with the last of them.
func TestNotices(t *testing.T) {
	play(t, func(g *game) {
		tells := func(want ...string) {
			t.Helper()
			got := g.notices()
			if len(got) != len(want) {
				t.Errorf("main is told %q, want notices of %q", got, want)
				return
			}
			for i := range want {
				if !strings.Contains(got[i], ": "+want[i]+". ") {
					t.Errorf("main is told %q, want %q", got[i], want[i])
				}
			}
		}
		g.push(main, "a", "b", "c", "d", "e")
		g.does(main, "run", nil)
		g.world.sessions[root].pending = nil
		g.done("a")
		tells("a")
		g.done("b", "c") // while main has not heard of a yet
		tells("a")
		g.works(main)
		g.settle()
		tells()
		g.ends(main, contract.OutcomeOK, "I see.")
		tells("b, c")
		g.collects(main, "receive", fields{"from": "b"}, "b")
		tells("b, c")
		g.collects(main, "receive", fields{"from": "c"}, "c")
		tells() // withdrawn, though a still lies there
		g.collects(main, "check", nil, "a")
		g.settle()
		tells()
		g.clean(namedPrefix, unnamedPrefix)

		// Main collects within its turn.
		g.mu.Lock()
		g.sessions[root].pending = append(g.sessions[root].pending, nil)
		g.mu.Unlock()
		g.works(main)
		g.mu.Lock()
		g.sessions[root].busy = true
		g.mu.Unlock()
		wait := g.later(main, "receive", nil)
		g.done("d")
		g.says(wait, "d is done")
		g.done("e")
		g.collects(main, "check", nil, "e")
		g.mu.Lock()
		g.sessions[root].busy = false
		g.rest()
		g.mu.Unlock()
		g.settle()
		tells()
	})
}

// A message is no reason for a notice, and neither is an announced result.
func TestWhatNoNoticeTells(t *testing.T) {
	play(t, func(g *game) {
		g.does(main, "push", fields{"name": "a", "prompt": "Do it.", "deliver": announce})
		g.does(main, "run", nil)
		g.does("a", "send", fields{"to": main, "message": "half of it"})
		g.settle()
		g.done("a")
		if n := g.notices(); len(n) > 0 {
			t.Errorf("main is told %q", n)
		}
		in := g.works(main)
		if in.GetKind() != contract.InputResult || in.GetSender() != "a" || in.GetReplyTo() != "the chat" || !strings.Contains(in.GetText(), "a is done") {
			t.Errorf("main hears %+v", in)
		}
	})
}

// Very many results are named in a few notices.
func TestVeryManyResults(t *testing.T) {
	play(t, func(g *game) {
		const many = maxNamed + 3
		g.mu.Lock()
		g.sessions[root].busy = true
		g.mu.Unlock()
		for i := range many {
			g.push(main, fmt.Sprint("x", i))
			g.does(main, "run", nil)
			g.done(fmt.Sprint("x", i))
		}
		g.mu.Lock()
		g.sessions[root].busy = false
		g.rest()
		g.mu.Unlock()
		g.settle()
		if n := g.notices(); len(n) != 1 || !strings.Contains(n[0], fmt.Sprintf("x49 and %d more", maxNamed-maxShown)) {
			t.Errorf("main is told %q", n)
		}
		g.works(main)
		g.ends(main, contract.OutcomeOK, "I see.")
		if n := g.notices(); len(n) != 1 || !strings.Contains(n[0], ": x500, x501, x502. ") {
			t.Errorf("then main is told %q", n)
		}
		var got []string
		for range many/maxChecked + 1 {
			got = append(got, senders(g.received(g.does(main, "check", nil)))...)
		}
		if slices.Sort(got); len(slices.Compact(got)) != many {
			t.Errorf("main has collected %d", len(got))
		}
		if n := g.notices(); len(n) > 0 {
			t.Errorf("it is still told %q", n)
		}
		g.clean(namedPrefix, unnamedPrefix)
	})
}
