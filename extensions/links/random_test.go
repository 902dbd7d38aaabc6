package links

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/internal/seed"
)

// With random agents, crashes and orders of events, each exchange ends, and each
// result is delivered once, to its origin.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	first := seed.Number(t)
	for i := range uint64(120) {
		if !t.Run(fmt.Sprint("seed ", first+i), func(t *testing.T) { schedule(t, first+i) }) {
			return
		}
	}
}

// reported matches the results in a text, including those that are passed on.
var reported = regexp.MustCompile(`The exchange (x\d+) (?:that you began|between)`)

func schedule(t *testing.T, number uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(number, 1))
	agents := []string{"a", "b", "c", "d"}
	var all []link
	for i, from := range agents {
		for _, to := range agents[i+1:] {
			all = append(all, link{
				From: from, To: to, MaxMessages: 1 + r.IntN(6), IdleSeconds: 60,
				Mode: []string{conversation, conversation, task}[r.IntN(3)],
			})
		}
	}
	p := play(t, all...)
	portals := []*fakeTurn{p.portal("a", "anna"), p.portal("a", "bert"), p.portal("b", "anna")}
	running := map[*fakeSession]*fakeTurn{} // turns of sides
	began := map[string]origin{}
	say := func(u *fakeTurn) {
		target := agents[r.IntN(len(agents))]
		if target == u.s.agent {
			return
		}
		p.calls++
		before := len(p.kv)
		answer := u.call("send_agent_message",
			map[string]any{"target": target, "message": fmt.Sprintf("message %d", p.calls)})
		if !answer.IsError && before != len(p.kv) {
			for key := range p.kv {
				if id, ok := strings.CutPrefix(key, exchangePrefix); ok {
					if _, known := began[id]; !known {
						began[id] = origin{u.s.id, map[bool]string{true: u.in.Thread}[u.s.link()]}
					}
				}
			}
		}
	}
	step := func(talk bool) bool {
		var sides []*fakeSession
		for _, id := range slices.Sorted(func(yield func(string) bool) {
			for id := range p.sessions {
				if !yield(id) {
					return
				}
			}
		}) {
			sides = append(sides, p.sessions[id])
		}
		r.Shuffle(len(sides), func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
		for _, s := range sides {
			u := running[s]
			if u == nil {
				if u = p.next(s); u == nil {
					continue
				}
				if s.link() {
					running[s] = u
				}
				return true
			}
			switch n := r.IntN(12); {
			case talk && n < 3:
				say(u)
			case talk && n == 3:
				u.call("conclude_link", map[string]any{"summary": fmt.Sprintf("summary %d", p.calls)})
			case n < 10:
				delete(running, s)
				u.endWith(contract.OutcomeOK, []string{"a text", "another", noReply, ""}[r.IntN(4)])
			case n == 10:
				delete(running, s)
				u.endWith([]string{contract.OutcomeError, contract.OutcomeTimeout, contract.OutcomeDead}[r.IntN(3)], "it failed")
			}
			return true
		}
		return false
	}
	for range 300 {
		switch n := r.IntN(20); {
		case n == 0:
			say(portals[r.IntN(len(portals))])
		case n == 1:
			p.restart()
		case n == 2:
			p.advance(time.Duration(r.IntN(70)) * time.Second)
		case n < 8 && len(p.outputs) > 0:
			p.killed = r.IntN(4) == 0
			p.handle()
		default:
			step(true)
		}
	}
	// From here on no exchange begins, and time passes.
	for range 60 {
		for len(p.outputs) > 0 || step(false) {
			p.settle()
		}
		p.advance(61 * time.Second)
	}
	results := map[string]map[string]int{} // by exchange and receiving session
	for _, s := range p.sessions {
		for _, in := range s.results {
			for _, m := range reported.FindAllStringSubmatch(in.Text, -1) {
				if results[m[1]] == nil {
					results[m[1]] = map[string]int{}
				}
				results[m[1]][s.id+in.Thread]++
			}
			if in.Thread != "" && !s.link() {
				t.Errorf("seed %d: a portal has a result of the exchange %s", number, in.Thread)
			}
		}
	}
	if len(began) == 0 && number > 10 {
		t.Logf("seed %d began nothing", number)
	}
	for key := range p.kv {
		if strings.HasPrefix(key, openPrefix) {
			t.Errorf("seed %d: %s is still open", number, key)
		}
	}
	for id, from := range began {
		x := p.exchange(id)
		switch {
		case !x.Over:
			t.Errorf("seed %d: %s has no end", number, id)
		case len(results[id]) == 0:
			t.Errorf("seed %d: %s (%s) has no result", number, id, x.Outcome)
		case slices.Max(slices.Collect(maps.Values(results[id]))) > 1:
			t.Errorf("seed %d: %s (%s) has the results %v", number, id, x.Outcome, results[id])
		case x.From != from:
			t.Errorf("seed %d: %s was begun in %v, but has the origin %v", number, id, from, x.From)
		case x.Messages > x.MaxMessages:
			t.Errorf("seed %d: %s took %d messages of %d", number, id, x.Messages, x.MaxMessages)
		case len(x.Unanswered) > 0:
			t.Errorf("seed %d: unanswered inputs of %s are lost: %v", number, id, x.Unanswered)
		}
	}
}
