package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/internal/seed"
)

// anyPoint is one place to crash at among n commits, or all of them if
// SWITCHBOARD_CRASH_POINTS is "all".
func anyPoint(t *testing.T, n int) []string {
	t.Helper()
	if os.Getenv("SWITCHBOARD_CRASH_POINTS") == "all" {
		return fewerPoints(t, n, 1)
	}
	random := seed.Rand(t)
	return []string{fmt.Sprint([]string{"before ", "after "}[random.IntN(2)], 1+random.IntN(n))}
}

// survivesEveryCommit has the chief go through a plan, undisturbed and then with
// a crash of the kernel at a commit.
func survivesEveryCommit(t *testing.T, plans map[string]plan, given map[string]*duty) {
	t.Helper()
	const message = "<c0m0>"
	house := func(t *testing.T) *house {
		t.Helper()
		h := newHouse(t, nil, "")
		h.plans, h.duties = plans, given
		return h
	}
	quiet := house(t)
	trace := quiet.file("commits")
	quiet.env["SWITCHBOARD_CRASH_TRACE"], quiet.env["SWITCHBOARD_CRASH_FROM"] = trace, "user.message"
	quiet.open()
	quiet.write(message)
	quiet.rested("the end", message)
	quiet.counted(message)
	did := quiet.linesOf(trace)
	t.Logf("commits:\n%s", strings.Join(did, "\n"))
	for _, point := range anyPoint(t, len(did)) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := house(t)
			h.crashAt(point)
			h.write(message)
			h.rested("the end", message)
			h.calm(message)
			h.counted(message)
		})
	}
}

func oneByOne(calls ...openaitest.Call) (all [][]openaitest.Call) {
	for _, c := range calls {
		all = append(all, []openaitest.Call{c})
	}
	return all
}

// A task that gives a task: push, run, receive, at both levels.
func TestTasksSurviveACrashOfTheKernelAtEveryCommit(t *testing.T) {
	t.Parallel()
	order := func(name string) [][]openaitest.Call {
		return oneByOne(
			do("push", map[string]any{"name": name, "prompt": "Do <" + name + ">"}),
			do("run", map[string]any{"count": 1}),
			do("receive", map[string]any{"from": name}),
		)
	}
	survivesEveryCommit(t, map[string]plan{
		"<notice>":   {rounds: [][]openaitest.Call{{{Name: drain}}}},
		"<c0m0>":     {rounds: order("c0m0t0")},
		"<c0m0t0>":   {rounds: order("c0m0t0t0")},
		"<c0m0t0t0>": {},
	}, map[string]*duty{
		"<c0m0t0>":   {name: "c0m0t0", parent: "<c0m0>", outcomes: []string{"ok"}},
		"<c0m0t0t0>": {name: "c0m0t0t0", parent: "<c0m0t0>", outcomes: []string{"ok"}},
	})
}

// An exchange: a message, a question, the answer, the conclusion, the result.
func TestAnExchangeSurvivesACrashOfTheKernelAtEveryCommit(t *testing.T) {
	t.Parallel()
	survivesEveryCommit(t, map[string]plan{"<c0m0>": {rounds: oneByOne(say("lead", "ask", "c0m0"))}}, nil)
}
