package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// strike kills a process of an extension with -9, and waits until it is gone and
// the kernel has seen that. Something else takes its place in time.
func (s *shop) strike(victim string) {
	s.t.Helper()
	p := s.extensionProcess(victim)
	kill(p, syscall.SIGKILL)
	s.gone([]process{p})
	c := s.control()
	s.eventually("the kernel to see the end of "+p.String(), func() bool {
		return !slices.ContainsFunc(s.extensions(c), func(e *adminv1.Extension) bool { return e.GetPid() == int64(p.pid) })
	})
}

// gates hold the model back when it is asked for an answer of a turn for the
// first time.
func (s *shop) gates() (asked []chan struct{}, answer []chan struct{}) {
	n := len(s.plan("<c0m0>")) + 1
	for range n {
		asked, answer = append(asked, make(chan struct{})), append(answer, make(chan struct{}))
	}
	come := make(chan int, 1)
	come <- 0
	s.onRequest(func(o order) {
		next := <-come
		if o.asked != next {
			come <- next
			return
		}
		come <- next + 1
		close(asked[next])
		select {
		case <-answer[next]:
		case <-s.t.Context().Done():
		}
	})
	return asked, answer
}

// TestTurnSurvivesAnExtensionKilledAtEveryStep kills one extension at each step
// of a turn: while the model thinks, while a tool works, and while the reply is
// being sent. Over the runs every extension dies at every step.
func TestTurnSurvivesAnExtensionKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	const shopProcess, channel = "probe shop", "telegram_channel"
	for _, tt := range []struct {
		processes string
		victims   []string
	}{
		{"shared", []string{channel}},
		{"grouped", []string{"keeper", channel}},
		{"separate", []string{"agent:keeper", channel, shopProcess, "openai:openai"}},
	} {
		for first := range tt.victims {
			t.Run(fmt.Sprintf("%s/%d", tt.processes, first), func(t *testing.T) {
				t.Parallel()
				s := newShop(t, "processes: "+tt.processes)
				s.plan = func(token string) [][]openaitest.Call {
					return [][]openaitest.Call{
						{work("peek", token, 0, "go0")},
						{work("act", token, 1, "go1"), work("act", token, 2, "go2")},
						{openaitest.NewCall(sendTool, map[string]string{"channel_id": "shop", "text": "News of " + token})},
					}
				}
				asked, answer := s.gates()
				s.open()
				victim := first
				step := func(what string) string {
					now := tt.victims[victim%len(tt.victims)]
					victim++
					t.Logf("%s: killing %s", what, now)
					s.strike(now)
					return now
				}
				model := func(n int) {
					s.eventually(fmt.Sprintf("request %d", n), func() bool {
						select {
						case <-asked[n]:
							return true
						default:
							return false
						}
					})
					if step(fmt.Sprintf("request %d", n)) == shopProcess && n >= 2 {
						s.leeway.shop = true // it may be given a send before the kernel sees its end
					}
					close(answer[n])
				}
				tool := func(n int, line string) {
					s.eventually(line, func() bool { return slices.Contains(s.lines("shop", "calls"), line) })
					if step(line) == shopProcess {
						s.leeway.unknown = true
					}
					s.world.write("", 0o600, "data", "shop", fmt.Sprint("go", n))
				}
				s.telegram.Fail("sendMessage", 1, telegramtest.Fault{Hang: true})
				s.write("<c0m0>")
				model(0)
				tool(0, "peek <c0m0>0")
				model(1)
				tool(1, "act <c0m0>1")
				tool(2, "act <c0m0>2")
				model(2)
				model(3)
				if err := s.telegram.WaitCalls(s.ctx(), "sendMessage", 1); err != nil {
					t.Fatal(err)
				}
				step("the reply")
				s.leeway.telegram = true // a connection that breaks before the answer comes
				s.telegram.Release()
				s.survived("<c0m0>")
			})
		}
	}
}
