package kerneltest_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/store/powercut"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// shop is a kernel with a channel, an agent and a tool that must not be repeated,
// and what the world outside has seen of them, each with how much the disk had
// been told by then.
type shop struct {
	*kerneltest.World
	disk     *powercut.Disk
	telegram *kerneltest.Channel
	agent    *kerneltest.Agent

	said   map[string]int   // message: accepted at
	shown  map[string][]int // reply: shown at
	bought map[string][]int // by message: the tool ran at
	marked map[string]int   // replies with a mark, since the last cut
}

func openShop(w *kerneltest.World, disk *powercut.Disk) *shop {
	s := &shop{
		World: w, disk: disk, telegram: w.Channel("telegram"), agent: w.Agent("orchestrator"),
		said: map[string]int{}, shown: map[string][]int{}, bought: map[string][]int{}, marked: map[string]int{},
	}
	w.Extension(bus.Actor{ID: "shop"})
	w.Tool(
		"shop",
		&extensionv1.Tool{Name: "buy"},
		func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
			what := string(r.GetArguments())
			s.bought[what] = append(s.bought[what], s.disk.Position())
			return &extensionv1.CallResult{Content: "bought"}, nil
		},
	)
	s.telegram.Admits("*")
	return s
}

func (s *shop) says(person, text string) {
	s.telegram.Reports(
		contract.UserMessage{UserID: person, UserName: person, ConversationID: person, Text: text, MessageID: text},
	)
	s.said[text] = s.disk.Position()
}

// answers has the agent take its next input as far as it is told: it may be
// begun already.
func (s *shop) answers(steps int) bool {
	s.Settle()
	d := s.agent.Next()
	if d == nil {
		return false
	}
	turn := s.agent.Holds(d)
	var calls []journal.Call
	if id := d.GetTurn().GetTurn(); id != 0 {
		s.Read(func(r journal.Reader) (err error) {
			calls, err = r.OpenCalls(id)
			return err
		})
	}
	var ids []string
	for _, c := range calls {
		ids = append(ids, journal.CallID(c.ID))
	}
	if !d.GetTurn().GetResumed() && strings.Contains(turn.Input.Text, "buy") {
		ids = turn.Asks([2]string{"shop/buy", fmt.Sprintf("{%q: 1}", turn.Input.Text)})
	}
	for _, id := range ids {
		if steps--; steps < 0 {
			return true
		}
		if _, err := turn.Call(id); err != nil {
			s.T.Fatal(err)
		}
	}
	if steps--; steps >= 0 {
		turn.Answers("re: " + turn.Input.Text)
	}
	return true
}

// shows has the channel show what it has to send, and confirm it or not.
func (s *shop) shows(confirm bool) bool {
	d := s.telegram.Next()
	if d == nil {
		return false
	}
	m := kerneltest.Decode[contract.ChannelSend](s.T, d.GetEvent())
	text := strings.TrimPrefix(cmp.Or(m.Unmarked, m.Text), "re: ")
	if strings.HasPrefix(m.Text, contract.RepeatMark) {
		s.marked[text]++
	} else {
		s.shown[text] = append(s.shown[text], s.disk.Position())
	}
	if confirm {
		s.telegram.Confirms(d)
	}
	return true
}

// TestPowerLossAtTheKernel cuts the power at random points of a day in a shop.
// Whatever was accepted is answered, a reply that may have been shown comes again
// with a mark only, and nothing is bought twice.
func TestPowerLossAtTheKernel(t *testing.T) {
	cuts := 30
	if testing.Short() {
		cuts = 8
	}
	kerneltest.Run(t, func(w *kerneltest.World) {
		disk := powercut.Watch(t, w.Dir())
		w.Restart() // opens the store on the disk
		s := openShop(w, disk)
		r := rand.New(rand.NewPCG(3, 5)) //nolint:gosec // reproducible
		s.day(r)
		end := disk.Position()
		before := *s
		for i := range cuts {
			at := r.IntN(end + 1)
			left := t.TempDir()
			if err := disk.Cut(at, r, left); err != nil {
				t.Fatal(err)
			}
			s.shown, s.bought, s.marked = map[string][]int{}, map[string][]int{}, map[string]int{}
			w.RestartIn(left)
			s.recovers()
			for text, accepted := range before.said {
				s.judge(fmt.Sprintf("cut %d at %d of %d: %q", i, at, end, text), &before, text, at, accepted <= at)
			}
			w.RestartIn(t.TempDir()) // nobody has it open then
			if _, err := sqlite.Examine(context.Background(), left+"/switchboard.db"); err != nil {
				t.Errorf("cut %d at %d of %d: %v", i, at, end, err)
			}
		}
	})
}

// day has people write, the agent work and the channel send, in any order. Every
// now and then somebody dies in the middle.
func (s *shop) day(r *rand.Rand) {
	for i := range 60 {
		switch r.IntN(8) {
		case 0, 1, 2:
			s.says(fmt.Sprint("person", r.IntN(3)), fmt.Sprintf("%s %d", []string{"hello", "buy tea"}[r.IntN(2)], i))
		case 3, 4:
			s.answers(9)
		case 5, 6:
			s.shows(true)
		case 7:
			switch r.IntN(4) {
			case 0:
				s.answers(r.IntN(2))
				s.agent.Dies()
				s.agent.Starts()
			case 1:
				s.shows(false)
				s.telegram.Dies()
				s.telegram.Starts()
			}
		}
	}
}

// recovers lets everything come to its end.
func (s *shop) recovers() {
	s.T.Helper()
	for idle, n := false, 0; !idle; n++ {
		if n > 1000 {
			s.T.Fatal("it does not come to an end")
		}
		idle = true
		for s.answers(9) || s.shows(true) {
			idle = false
		}
		if idle {
			s.Wait(2 * time.Minute) // for what is tried again
			idle = !s.answers(9) && !s.shows(true)
		}
	}
	s.Read(func(r journal.Reader) error {
		return r.Pending(func(d journal.Delivery) bool {
			s.T.Errorf("event %d still waits: %+v", d.Seq, d)
			return true
		})
	})
	if dead := s.Dead(contract.TopicChannelSend + "telegram"); len(dead) > 0 {
		s.T.Errorf("dead are %q", dead)
	}
}

// judge compares what the world has seen of a message before a cut and since.
func (s *shop) judge(what string, before *shop, text string, at int, accepted bool) {
	s.T.Helper()
	until := func(positions []int) (n int) {
		for _, p := range positions {
			if p <= at {
				n++
			}
		}
		return n
	}
	plain := until(before.shown[text]) + len(s.shown[text])
	if plain > 1 {
		s.T.Errorf("%s was answered %d times without a mark", what, plain)
	}
	if accepted && plain+s.marked[text] == 0 && until(before.shown[text]) == 0 {
		s.T.Errorf("%s was accepted and never answered", what)
	}
	arguments := fmt.Sprintf("{%q: 1}", text)
	if n := until(before.bought[arguments]) + len(s.bought[arguments]); n > 1 {
		s.T.Errorf("%s was bought %d times", what, n)
	}
}
