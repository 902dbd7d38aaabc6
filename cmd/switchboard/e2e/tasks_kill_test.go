package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/internal/seed"
)

// TestSubAgentsSurviveKills kills the kernel, and with it every process, again
// and again while tasks run: each yields one result, and each is collected once.
func TestSubAgentsSurviveKills(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	tasks := []string{"a", "b", "c", "d"}
	var want []string
	var all []openaitest.Answer
	for _, name := range tasks {
		all = append(all, pushTask("Kills", name))
		s.plays("Kills", name, inOrder(callTasks("send", "to", "main", "message", "begun")))
		want = append(want, name+" writes: begun", name+" ok: "+allDone)
	}
	all = append(all, callTasks("run", "count", 2))
	for range want {
		all = append(all, callTasks("receive"))
	}
	s.plays("Kills", "main", inOrder(all...))
	s.open()
	s.begin("Kills")
	random := seed.Rand(t)
	for range 6 {
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond) // anywhere
		s.restart()
	}
	s.eventually("all results", func() bool { return len(s.gotBack("Kills", "main")) == len(all) })
	wantLetters(t, s.gotBack("Kills", "main")[len(tasks)+1:], want...)
	s.kernel = s.control()
	s.state(s.kernel, "tasks", "active")
	s.onceFinished("Kills", len(tasks))
	if slices.ContainsFunc(s.rows("Kills"), func(r taskRow) bool { return r.Outcome != "ok" }) {
		t.Errorf("the tasks are %+v", s.rows("Kills"))
	}
}
