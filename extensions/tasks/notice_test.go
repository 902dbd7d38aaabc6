package tasks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

// When main is idle, one notice names all uncollected results that no notice has
// named. It is withdrawn when the last of them is collected.
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
		g.call(main, "run", nil)
		g.world.sessions[root].pending = nil
		g.finishTasks("a")
		tells("a")
		g.finishTasks("b", "c") // main has not read the notice of a yet
		tells("a")
		g.beginTurn(main)
		g.settle()
		tells()
		g.endTurn(main, contract.OutcomeOK, "I see.")
		tells("b, c")
		g.receives(main, "receive", fields{"from": "b"}, "b")
		tells("b, c")
		g.receives(main, "receive", fields{"from": "c"}, "c")
		tells() // withdrawn, although a is uncollected
		g.receives(main, "check", nil, "a")
		g.settle()
		tells()
		g.noRows(noticedPrefix, unnoticedPrefix)

		// Results that main collects in its turn.
		g.mu.Lock()
		g.sessions[root].pending = append(g.sessions[root].pending, nil)
		g.mu.Unlock()
		g.beginTurn(main)
		g.mu.Lock()
		g.sessions[root].busy = true
		g.mu.Unlock()
		wait := g.start(main, "receive", nil)
		g.finishTasks("d")
		g.returns(wait, "d is done")
		g.finishTasks("e")
		g.receives(main, "check", nil, "e")
		g.mu.Lock()
		g.sessions[root].busy = false
		g.notifyIdle()
		g.mu.Unlock()
		g.settle()
		tells()
	})
}

// Messages and announced results cause no notice.
func TestNoNotice(t *testing.T) {
	play(t, func(g *game) {
		g.call(main, "push", fields{"name": "a", "prompt": "Do it.", "deliver": announce})
		g.call(main, "run", nil)
		g.call("a", "send", fields{"to": main, "message": "half of it"})
		g.settle()
		g.finishTasks("a")
		if n := g.notices(); len(n) > 0 {
			t.Errorf("main is told %q", n)
		}
		in := g.beginTurn(main)
		if in.GetKind() != contract.InputResult || in.GetSender() != "a" || in.GetReplyTo() != "the chat" ||
			!strings.Contains(in.GetText(), "a is done") {
			t.Errorf("main hears %+v", in)
		}
	})
}

// Many results are named in a few notices.
func TestNoticesAreBounded(t *testing.T) {
	play(t, func(g *game) {
		const many = maxNoticed + 3
		g.mu.Lock()
		g.sessions[root].busy = true
		g.mu.Unlock()
		for i := range many {
			g.push(main, fmt.Sprint("x", i))
			g.call(main, "run", nil)
			g.finishTasks(fmt.Sprint("x", i))
		}
		g.mu.Lock()
		g.sessions[root].busy = false
		g.notifyIdle()
		g.mu.Unlock()
		g.settle()
		if n := g.notices(); len(n) != 1 || !strings.Contains(n[0], fmt.Sprintf("x49 and %d more", maxNoticed-maxShown)) {
			t.Errorf("main is told %q", n)
		}
		g.beginTurn(main)
		g.endTurn(main, contract.OutcomeOK, "I see.")
		if n := g.notices(); len(n) != 1 || !strings.Contains(n[0], ": x500, x501, x502. ") {
			t.Errorf("then main is told %q", n)
		}
		var got []string
		for range many/maxChecked + 1 {
			got = append(got, senders(g.received(g.call(main, "check", nil)))...)
		}
		if slices.Sort(got); len(slices.Compact(got)) != many {
			t.Errorf("main has collected %d", len(got))
		}
		if n := g.notices(); len(n) > 0 {
			t.Errorf("it is still told %q", n)
		}
		g.noRows(noticedPrefix, unnoticedPrefix)
	})
}
