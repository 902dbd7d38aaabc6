package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/internal/seed"
)

// house is a home where several agents work together: people write to the chief
// in Telegram, who has tasks done and talks over links to the lead, who asks the
// community, to the ranger, an executable of its own, and to the sleeper, who
// never answers. What each of them does stands in plans, by a token in what it
// is told; so whoever is killed, the model answers as it did before.
type house struct {
	*shop
	random *rand.Rand // of plans
	pauses *rand.Rand // of models

	mu     sync.Mutex
	plans  map[string]plan  // by token
	duties map[string]*duty // by token: those of plans that are tasks
}

// plan is what an agent does in a turn.
type plan struct {
	rounds [][]openaitest.Call // calls of one answer each
	fails  bool                // the model refuses in the end
}

// A call of these names is made again and again: until nothing can come, or the
// task that it names has finished; until the inbox is empty.
const (
	collect = "collect"
	drain   = "drain"
)

// duty is a task that a plan gives.
type duty struct {
	name     string
	parent   string   // the token of the one who gives it
	outcomes []string // how it may end
	announce bool
}

const member = `api: 1
id: %[1]s
name: The %[1]s
version: 1.0.0
description: Is the %[1]s.
%[2]sagent:
  model: default
  instructions: You are the %[1]s.
  uses_tools: [tasks/*]
  limits: {max_steps: 300, turn_timeout: 30m}
` + backAtOnce

func newHouse(t *testing.T, random *rand.Rand, more string) *house {
	t.Helper()
	h := &house{shop: &shop{world: newWorld(t, strangers(), withModel)}, random: random, pauses: seed.Rand(t),
		plans: map[string]plan{}, duties: map[string]*duty{}}
	h.config(`agents: {default: chief, enabled: [chief, lead, community, ranger, sleeper]}
channels: {telegram_channel: {allow_from: ["*"]}}
extensions: {scheduler: {enabled: false}, offline: {enabled: false}, memory: {enabled: false}, heartbeat: {enabled: false}}
links:
  - {from: chief, to: lead, max_messages: 6}
  - {from: lead, to: community}
  - {from: chief, to: ranger, mode: task}
  - {from: chief, to: sleeper, idle: 1s}
` + more)
	for _, id := range []string{"chief", "lead", "community", "sleeper"} {
		h.dropIn(id, "", fmt.Sprintf(member, id, ""))
	}
	h.dropIn("ranger", "probe", fmt.Sprintf(member, "ranger", "run: {command: ./probe, args: [ranger, agent]}\n"), "in")
	h.env["SWITCHBOARD_CRASH_OFTEN"] = "1"
	h.model.Handle(h.answer)
	return h
}

// told is the turn that a model is asked to go on with.
type told struct {
	inputs  []string
	results []string // of its calls that have run
	asked   int
}

// now reads a request: turns that others have interrupted lie below.
func now(r openaitest.Request) told {
	var open []*told
	for _, m := range r.Messages[1:] {
		var top *told
		if len(open) > 0 {
			top = open[len(open)-1]
		}
		text := m.Content.Text
		switch {
		case m.Role == "user" && startsWith(text, "[note ", "[context", "[record", "[summary"):
		case m.Role == "user" && top != nil && top.asked == 0:
			top.inputs = append(top.inputs, text)
		case m.Role == "user":
			open = append(open, &told{inputs: []string{text}})
		case m.Role == "assistant" && top != nil && len(m.ToolCalls) == 0:
			open = open[:len(open)-1]
		case m.Role == "assistant" && top != nil:
			top.asked++
		case m.Role == "tool" && top != nil && !strings.Contains(text, contract.SkippedCall) &&
			!startsWith(text, "interrupted: "):
			top.results = append(top.results, text)
		}
	}
	if len(open) == 0 {
		return told{}
	}
	return *open[len(open)-1]
}

func startsWith(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

var errand = regexp.MustCompile(`\{(\w+) (\w+)\}`)

// answer is the model of all agents.
func (h *house) answer(r openaitest.Request) openaitest.Answer {
	a := h.reply(r)
	a.Delay = time.Duration(h.pauses.IntN(15)) * time.Millisecond
	return a
}

func (h *house) reply(r openaitest.Request) openaitest.Answer {
	turn := now(r)
	if len(turn.inputs) == 0 {
		h.note("the model is asked though nothing is left to answer:\n%s", transcript(r))
		return openaitest.Fail(400, "nothing to answer")
	}
	var tokens []string
	for _, text := range turn.inputs {
		switch {
		case strings.HasPrefix(text, "[notice"):
			tokens = append(tokens, "<notice>")
		case !startsWith(text, "[result", "[message"):
			tokens = append(tokens, token.FindAllString(text, -1)...)
		}
	}
	if len(tokens) == 0 {
		if e := errand.FindStringSubmatch(turn.inputs[0]); e != nil {
			return onLink(r, turn, e[1], e[2])
		}
		return openaitest.Say("I see: " + flat(turn.inputs[0]))
	}
	left, fails := turn.results, false
	for _, t := range tokens {
		h.mu.Lock()
		p := h.plans[t]
		h.mu.Unlock()
		fails = fails || p.fails
		for _, calls := range p.rounds {
			if next := through(calls, &left); next != nil {
				return openaitest.Answer{Calls: next}
			}
		}
	}
	if fails {
		return openaitest.Fail(400, "not today")
	}
	return openaitest.Say("Done " + strings.Join(tokens, " "))
}

// flat is a text without fences in one line.
func flat(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "~", "")), " ")
}

// through goes through the results of the calls of a round, and returns those
// that have none yet.
func through(calls []openaitest.Call, left *[]string) []openaitest.Call {
	call, until := calls[0], []string{"can arrive", "Nothing is running", "there is no task"}
	switch call.Name {
	case drain:
		call, until = do("check", map[string]any{}), []string{"Nothing has arrived"}
	case collect:
		fields := map[string]any{"timeout": 3600}
		if name := call.Arguments; name != "" {
			// Agents that wait for each other all learn that nothing can arrive, and go
			// on. The result still comes: ending now would cancel the task.
			fields["from"], until = name, []string{"more can arrive", "it hasn't started", "there is no task"}
		}
		call = do("receive", fields)
	default:
		n := min(len(calls), len(*left))
		if *left = (*left)[n:]; n == len(calls) {
			return nil
		}
		return calls[n:]
	}
	for len(*left) > 0 {
		last := (*left)[0]
		*left = (*left)[1:]
		if slices.ContainsFunc(until, func(end string) bool { return strings.Contains(last, end) }) {
			return nil
		}
	}
	return []openaitest.Call{call}
}

// onLink is what agents say on links, and to results that come over them.
func onLink(r openaitest.Request, turn told, kind, id string) openaitest.Answer {
	mark := fmt.Sprintf("{%s %s}", kind, id)
	self := regexp.MustCompile(`You are the (\w+)\.`).FindStringSubmatch(r.Messages[0].Content.Text)
	text := turn.inputs[0]
	from := regexp.MustCompile(`^\[(\w+) from (\w+)\]`).FindStringSubmatch(text)
	call := func(name string, fields map[string]string) openaitest.Answer {
		return openaitest.CallTool("links__"+name, fields)
	}
	conclude := func(word string) openaitest.Answer {
		return call("conclude_link", map[string]string{"summary": word + " " + mark})
	}
	who := "a worker"
	if self != nil {
		who = self[1]
	}
	did := len(turn.results)
	switch {
	case from == nil || from[1] == "result" && who != "lead":
		return openaitest.Say("Heard: " + flat(text))
	case who == "sleeper":
		return openaitest.Say("NO_REPLY")
	case who == "ranger":
		return openaitest.Say("found " + mark)
	case who == "community" && did == 0:
		return conclude("picked")
	case who == "chief" && strings.Contains(text, "thanks"):
		return openaitest.Say("thanks " + mark)
	case who == "chief":
		return openaitest.Say("reply " + mark)
	case who != "lead":
		return openaitest.Say("NO_REPLY")
	}
	switch {
	case kind == "thank":
		return openaitest.Say("thanks " + mark)
	case kind == "fail":
		return openaitest.Fail(400, "not today")
	case kind == "ask" && strings.Contains(text, "please"):
		return openaitest.Say("question " + mark)
	case from[1] == "result" && kind == "early":
		return openaitest.Say("passed on " + mark)
	case (kind == "pass" || kind == "early") && from[1] == "message" && did == 0:
		return call("send_agent_message", map[string]string{"target": "community", "message": "please " + mark})
	case kind == "pass" && from[1] == "message":
		return openaitest.Say("NO_REPLY")
	case kind == "early" && did == 1, did == 0:
		return conclude("back")
	}
	return openaitest.Say("NO_REPLY")
}

// say is the sending of a message on a link.
func say(to, kind, id string) openaitest.Call {
	return openaitest.NewCall("links__send_agent_message",
		map[string]string{"target": to, "message": fmt.Sprintf("please {%s %s}", kind, id)})
}

func do(name string, fields map[string]any) openaitest.Call {
	return openaitest.NewCall("tasks__"+name, fields)
}

// draft plans what an agent does that is told a token: tasks, messages, errands.
// By chance, and more simply the deeper it works.
func (h *house) draft(token string, depth int, mayEnd bool) plan {
	var p plan
	one := func(c openaitest.Call) { p.rounds = append(p.rounds, []openaitest.Call{c}) }
	id := strings.Trim(token, "<>")
	roll := func(n int) bool { return h.random.IntN(n) == 0 }
	letter := func(to string, n int) openaitest.Call {
		return do("send", map[string]any{"to": to, "message": fmt.Sprintf("((%s %s %d))", id, to, n)})
	}
	tasks := 0
	switch {
	case depth == 0:
		tasks = 1 + h.random.IntN(4)
	case depth < 3 && roll(3):
		tasks = 1 + h.random.IntN(2)
	}
	collects := depth == 0 && !roll(3) || depth > 0 && !roll(4)
	var batch []openaitest.Call
	var names []string
	limit := map[string]any{}
	if !roll(3) {
		limit["count"] = 1 + h.random.IntN(2)
	}
	for i := range tasks {
		child := fmt.Sprintf("<%st%d>", id, i)
		name := strings.Trim(child, "<>")
		names = append(names, name)
		j := &duty{name: name, parent: token, outcomes: []string{"ok"}}
		fields := map[string]any{"name": name, "prompt": "Do " + child}
		cancelled := mayEnd || depth > 0 && !collects
		switch {
		case depth == 0 && roll(5):
			fields["deliver"], j.announce = "announce", true
		case roll(8):
			fields["agent"] = "ranger"
		}
		sleeps := roll(9)
		if sleeps {
			fields["timeout"], j.outcomes = 0.05+0.2*h.random.Float64(), []string{"timeout"}
		}
		if cancelled {
			j.outcomes = append(j.outcomes, "cancelled")
		}
		h.duties[child] = j
		below := h.draft(child, depth+1, cancelled || sleeps)
		if sleeps { // a word that never comes
			below.rounds = append(below.rounds, []openaitest.Call{do("receive",
				map[string]any{"from": "main", "timeout": 3600})})
			// with the word of its parent, it may end
			j.outcomes = append(j.outcomes, "ok")
		} else if below.fails {
			j.outcomes = append(j.outcomes, "error")
		}
		h.plans[child] = below
		batch = append(batch, do("push", fields))
	}
	if roll(2) && len(batch) > 0 { // all in one answer
		p.rounds = append(p.rounds, batch)
	} else {
		for i, c := range batch {
			if one(c); i > 0 && i < len(batch)-1 && roll(4) {
				one(do("run", limit))
			}
		}
	}
	for n, name := range names {
		if roll(3) {
			one(letter(name, n))
		}
	}
	if depth == 0 && len(names) > 2 && roll(4) {
		h.duties["<"+names[2]+">"].outcomes = append(h.duties["<"+names[2]+">"].outcomes, "removed")
		one(do("queue_remove", map[string]any{"name": names[2]}))
	}
	if len(names) > 0 {
		one(do("run", limit))
	}
	if depth > 0 {
		for n := range h.random.IntN(3) {
			one(letter("main", 10+n))
		}
		if roll(3) { // a sibling, if there is one
			one(letter(id[:len(id)-1]+fmt.Sprint(h.random.IntN(3)), 30))
		}
		p.fails = roll(8)
	}
	for n, name := range names {
		if roll(4) {
			one(letter(name, 20+n))
		}
	}
	if len(names) > 1 && roll(3) {
		h.mayBeCancelled("<" + names[1] + ">")
		one(do("task_cancel", map[string]any{"name": names[1]}))
	}
	if roll(3) {
		one(do("inbox", map[string]any{}))
		one(do("check", map[string]any{"order": "lifo"}))
	}
	if len(names) > 0 && roll(3) {
		one(do("receive", map[string]any{"from": names[len(names)-1], "timeout": 3600}))
	}
	switch {
	case !collects:
	case depth == 0:
		one(openaitest.Call{Name: collect})
	default: // of all it would wait as long as main is idle, which may write to it
		for _, name := range names {
			one(openaitest.Call{Name: collect, Arguments: name})
		}
	}
	return p
}

// mayBeCancelled says so of a task and of all below it.
func (h *house) mayBeCancelled(token string) {
	h.duties[token].outcomes = append(h.duties[token].outcomes, "cancelled")
	for other, j := range h.duties {
		if j.parent == token {
			h.mayBeCancelled(other)
		}
	}
}

// errandsOf adds messages over links to the plan of a turn.
func (h *house) errandsOf(token string) {
	id := strings.Trim(token, "<>")
	p := h.plans[token]
	kinds := []string{"tell", "ask", "pass", "pass", "early", "thank", "fail"}
	calls := []openaitest.Call{say("lead", kinds[h.random.IntN(len(kinds))], id)}
	if h.random.IntN(2) == 0 {
		calls = append(calls, say("ranger", "find", id))
	}
	if h.random.IntN(4) == 0 {
		calls = append(calls, say("sleeper", "sleep", id))
	}
	at := h.random.IntN(len(p.rounds) + 1)
	p.rounds = slices.Insert(p.rounds, at, calls)
	h.plans[token] = p
}

// decoded is a result of a tool as JSON; empty if it is none.
func decoded[T any](text string) (v T) {
	_ = json.Unmarshal([]byte(text), &v)
	return v
}
