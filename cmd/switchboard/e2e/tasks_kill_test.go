package e2e

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// TestSubAgentsSurviveKills kills the kernel, and with it every process, again
// and again while tasks run: each yields one result, and each is collected once.
func TestSubAgentsSurviveKills(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	tasks := []string{"a", "b", "c", "d"}
	var calls []openaitest.Answer
	for _, name := range tasks {
		calls = append(calls, openaitest.CallTool("tasks__push", map[string]string{"name": name, "prompt": "Do it."}))
	}
	calls = append(calls, openaitest.CallTool("tasks__run", map[string]int{"count": 2}))
	for range 2 * len(tasks) { // of each a message and a result
		calls = append(calls, openaitest.CallTool("tasks__receive", map[string]any{}))
	}
	lead := script(calls...)
	var mu sync.Mutex
	var last []string
	over := false
	w.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
		"You are a personal assistant": func(r openaitest.Request) openaitest.Answer {
			mu.Lock()
			defer mu.Unlock()
			if last = allResults(r); len(last) == len(calls) {
				over = true
			}
			return lead(r)
		},
		worker: func(r openaitest.Request) openaitest.Answer {
			if len(allResults(r)) == 0 {
				return openaitest.CallTool("tasks__send", map[string]string{"to": "main", "message": "begun by " + names(r)})
			}
			return openaitest.Say("done by " + names(r))
		},
	}))
	w.start()
	w.attach().say("begin")
	for range 6 {
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // anywhere
		w.restart()
	}
	w.eventually("all results", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return over
	})
	var got, want []string
	mu.Lock()
	for _, result := range last[len(tasks)+1:] {
		for _, m := range collected(t, result) {
			got = append(got, m.From+" "+m.Message+m.Output)
		}
	}
	mu.Unlock()
	for _, name := range tasks {
		want = append(want, name+" begun by "+name, name+" done by "+name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("collected %q", got)
	}
	var listed []struct{ State, Outcome string }
	w.eventually("the end of all", func() bool {
		listed = list[[]struct{ State, Outcome string }](w, "tasks", "list", "--json")
		return len(listed) == len(tasks) && !slices.ContainsFunc(listed, func(x struct{ State, Outcome string }) bool {
			return strings.Join([]string{x.State, x.Outcome}, " ") != "finished ok"
		})
	})
}
