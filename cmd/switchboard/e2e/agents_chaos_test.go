package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/internal/seed"
)

// TestAgentsTogetherSurviveAnything has people in several chats write to an agent
// that gives tasks, which give tasks in turn, send messages, are cancelled, fail
// and run out of time, while it talks to others over links; and meanwhile the
// kernel and the processes of extensions die at any moment. In the end each task
// has finished once, each result and each message was collected once, each
// exchange is over and was told of once, and nothing waits.
//
// SWITCHBOARD_CHAOS_ROUNDS is how often, each time with the next seed.
func TestAgentsTogetherSurviveAnything(t *testing.T) {
	t.Parallel()
	rounds, first := uint64(1), seed.Number(t)
	if text := os.Getenv("SWITCHBOARD_CHAOS_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.ParseUint(text, 10, 16); err != nil || rounds == 0 {
			t.Fatalf("read SWITCHBOARD_CHAOS_ROUNDS: %q is not a number of rounds", text)
		}
	}
	for i := range rounds {
		t.Run(fmt.Sprint("seed ", first+i), func(t *testing.T) {
			t.Parallel()
			agentsInChaos(t, first+i)
		})
	}
}

func agentsInChaos(t *testing.T, number uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(number, 0))
	chats, crashes, kills := 4, 5, 8
	if raceDetector || testing.Short() {
		chats, crashes, kills = 2, 3, 4
	}
	processes := []string{"separate", "grouped"}[random.IntN(2)]
	h := newHouse(t, random, "processes: "+processes)
	h.leeway = leeway{telegram: true, unknown: true, often: true}
	h.plans["<notice>"] = plan{rounds: [][]openaitest.Call{{{Name: drain}}}}
	var tokens []string
	for c := range chats {
		for m := range 1 + random.IntN(3) {
			token := fmt.Sprintf("<c%dm%d>", c, m)
			tokens = append(tokens, token)
			h.plans[token] = h.draft(token, 0, false)
			if m == 0 && random.IntN(4) > 0 {
				h.errandsOf(token)
			}
		}
	}
	var points []string
	for range crashes {
		points = append(points, fmt.Sprint([]string{"before ", "after "}[random.IntN(2)], 10+random.IntN(150)))
	}
	t.Logf("%s processes, the kernels die %q", processes, points)
	h.crashAt(points[0], points[1:]...)
	victims := map[string]int{"agent:chief": 2, "agent:lead": 1, "agent:community": 1, "agent:sleeper": 1,
		"probe ranger": 1, "tasks:tasks": 3, "links:links": 3, "openai:openai": 3, "telegram_channel": 2}
	if processes == "grouped" {
		victims = map[string]int{"agent:chief": 3, "probe ranger": 1, "openai": 2, "telegram_channel": 2}
	}
	names := []string{"agent:chief", "agent:lead", "agent:community", "agent:sleeper", "probe ranger", "tasks:tasks",
		"links:links", "openai", "telegram_channel"}
	resting := func() bool { return h.unrest(tokens) == "" }
	said := 0
	for strikes := 0; said < len(tokens) || strikes < kills; {
		if said < len(tokens) {
			h.write(tokens[said])
			said++
		}
		if random.IntN(4) == 0 { // people collect, too
			h.telegram.Say(chatOf(tokens[random.IntN(said)]), []string{"/check", "/receive timeout=1",
				"/receive --lifo timeout=2", "/queue"}[random.IntN(4)])
		}
		if random.IntN(2) == 0 && said < len(tokens) {
			continue
		}
		strikes++
		want := h.model.Total() + 1 + random.IntN(12)
		h.reaches("something to happen", func() bool { return h.model.Total() >= want || resting() })
		victim := names[random.IntN(len(names))]
		if victims[victim]--; victims[victim] < 0 { // what kills an agent too often is given up, and rightly so
			continue
		}
		for _, p := range descendants(t, h.kernel.pid()) {
			if strings.Contains(p.command, victim) {
				kill(p, syscall.SIGKILL)
			}
		}
	}
	h.rested("the end of all tasks and exchanges", tokens...)
	// Collect the rest.
	for c := range chats {
		token := fmt.Sprintf("<c%dm9>", c)
		h.mu.Lock()
		h.plans[token] = plan{rounds: [][]openaitest.Call{{{Name: drain}}}}
		h.mu.Unlock()
		tokens = append(tokens, token)
		h.write(token)
	}
	h.rested("rest", tokens...)
	h.calm(tokens...)
	h.counted(tokens...)
}

// TestAgentsThatWaitForEachOtherCollectTheirResults has the chief wait for a task,
// which waits for another one, which waits for the chief. One that is told that nothing
// can come asks again; the others get their result by then, or are told it too. All of
// them get their results long before the hour that they would wait.
func TestAgentsThatWaitForEachOtherCollectTheirResults(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, "")
	wait := func(from string) []openaitest.Call {
		return []openaitest.Call{do("receive", map[string]any{"from": from, "timeout": 3600})}
	}
	gives := func(token string, waits bool) plan {
		name := strings.Trim(token, "<>") + "t0"
		h.duties["<"+name+">"] = &duty{name: name, parent: token, outcomes: []string{"ok"}}
		p := plan{rounds: oneByOne(do("push", map[string]any{"name": name, "prompt": "Do <" + name + ">"}),
			do("run", map[string]any{}))}
		if waits {
			p.rounds = append(p.rounds, wait(name))
		}
		p.rounds = append(p.rounds, []openaitest.Call{{Name: collect, Arguments: name}})
		return p
	}
	h.plans = map[string]plan{
		"<notice>":     {rounds: [][]openaitest.Call{{{Name: drain}}}},
		"<c0m0>":       gives("<c0m0>", true),
		"<c0m0t0>":     gives("<c0m0t0>", false),
		"<c0m0t0t0>":   gives("<c0m0t0t0>", true),
		"<c0m0t0t0t0>": {rounds: [][]openaitest.Call{wait("main")}},
	}
	h.open()
	h.write("<c0m0>")
	h.rested("the end", "<c0m0>")
	h.counted("<c0m0>")
	if everything := h.everything(); !strings.Contains(everything, "directly or through others") {
		t.Errorf("no call was told that nothing can come:\n%s", everything)
	}
}
