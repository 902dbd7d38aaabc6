package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// stage is a world in which the agents of each conversation give a play: each of
// them has a part of its own.
type stage struct {
	*world
	*cast
	kernel *admin.Client
}

// cast is who plays what. A play is known by play=NAME in what the user says and
// in the prompts of the tasks.
type cast struct {
	mu    sync.Mutex
	parts map[string]part
	asked map[string][]openaitest.Request // of each agent
	gates map[string]chan struct{}
	acts  map[string][]string // of each play, the sub-agents whose completions are held
	most  map[string]int      // of each play, how many were at once
	tasks map[string]string   // the prompts of tasks, which do not change
}

// part is what an agent answers; results are those of its turn so far.
type part func(r openaitest.Request, results []string) openaitest.Answer

// newStage is a home with a model where nothing runs yet.
func newStage(t *testing.T, opts ...option) *stage {
	t.Helper()
	s := &stage{world: newWorld(t, append(opts, withModel)...), cast: &cast{
		parts: map[string]part{}, asked: map[string][]openaitest.Request{}, gates: map[string]chan struct{}{},
		acts: map[string][]string{}, most: map[string]int{}, tasks: map[string]string{},
	}}
	s.model.Handle(s.answer)
	return s
}

// open starts the kernel, and waits for the extensions.
func (s *stage) open(extensions ...string) {
	s.t.Helper()
	s.start()
	s.kernel = s.control()
	for _, id := range append(extensions, "tasks", "orchestrator", "openai") {
		s.state(s.kernel, id, "active")
	}
	if s.telegram != nil {
		s.telegramReady()
	}
}

// in is the same stage for a part of the test.
func (s *stage) in(t *testing.T) *stage {
	w := *s.world
	w.t = t
	return &stage{&w, s.cast, s.kernel}
}

var (
	playing = regexp.MustCompile(`play=(\w+)`)
	named   = regexp.MustCompile(`\(Your name is (\S+)\. Your final answer`)
)

// whoAsks is the play and the name of an agent that asks. What main is told by
// others than its user are parts of their own, named after the kind of it.
func whoAsks(r openaitest.Request) (play, name string) {
	name = "main"
	for _, m := range r.Messages[1:] {
		if m.Role != "user" {
			continue
		}
		if found := playing.FindStringSubmatch(m.Content.Text); found != nil && play == "" {
			play = found[1]
		}
		if found := named.FindStringSubmatch(m.Content.Text); found != nil {
			name = found[1]
		}
	}
	for _, kind := range []string{"notice", "result"} {
		if name == "main" && strings.HasPrefix(heard(r), "["+kind+" from ") {
			name = kind
		}
	}
	return play, name
}

func (c *cast) answer(r openaitest.Request) openaitest.Answer {
	play, name := whoAsks(r)
	c.mu.Lock()
	of := play + "/" + name
	c.asked[of] = append(c.asked[of], r)
	p := c.parts[of]
	c.mu.Unlock()
	switch {
	case p != nil:
		return p(r, allResults(r))
	case name == "notice":
		return openaitest.Say("")
	}
	return openaitest.Say("This is what " + name + " says.")
}

// plays gives an agent of a play its part.
func (c *cast) plays(play, name string, p part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts[play+"/"+name] = p
}

// requests are what an agent of a play has asked the model.
func (c *cast) requests(play, name string) []openaitest.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked[play+"/"+name])
}

// gotBack are the results that an agent of a play has got in the turn in which it
// asked last.
func (c *cast) gotBack(play, name string) []string {
	all := c.requests(play, name)
	if len(all) == 0 {
		return nil
	}
	return allResults(all[len(all)-1])
}

// gate is open once it has been released.
func (c *cast) gate(name string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gates[name] == nil {
		c.gates[name] = make(chan struct{})
	}
	return c.gates[name]
}

func (c *cast) lift(name string) {
	gate := c.gate(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-gate:
	default:
		close(gate)
	}
}

// held is an answer that comes once the gate is open.
func (c *cast) held(gate string, a openaitest.Answer) openaitest.Answer {
	a.Gate = c.gate(gate)
	return a
}

// works is the part of a sub-agent whose completion counts as under way until
// its gate, PLAY/NAME, is open; then it says the text.
func (s *stage) works(play, name, text string) {
	s.plays(play, name, func(openaitest.Request, []string) openaitest.Answer {
		s.mu.Lock()
		s.acts[play] = append(s.acts[play], name)
		s.most[play] = max(s.most[play], len(s.acts[play]))
		s.mu.Unlock()
		select {
		case <-s.gate(play + "/" + name):
		case <-s.t.Context().Done():
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.acts[play] = slices.DeleteFunc(s.acts[play], func(n string) bool { return n == name })
		return openaitest.Say(text)
	})
}

// atWork are the sub-agents whose completions are held.
func (c *cast) atWork(play string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.acts[play])
}

// onceAtWork waits until the completions of n sub-agents are held.
func (s *stage) onceAtWork(play string, n int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d sub-agents of %s at work", n, play), func() bool { return len(s.atWork(play)) == n })
}

// allDone is what main says at the end of its part.
const allDone = "That was all."

// inOrder is the part of an agent that makes one call after the other.
func inOrder(all ...openaitest.Answer) part {
	return func(_ openaitest.Request, results []string) openaitest.Answer {
		if len(results) < len(all) {
			return all[len(results)]
		}
		return openaitest.Say(allDone)
	}
}

// callTasks is a call of a tool of tasks: pairs of arguments and values.
func callTasks(tool string, pairs ...any) openaitest.Answer {
	arguments := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		arguments[pairs[i].(string)] = pairs[i+1]
	}
	return openaitest.CallTool("tasks__"+tool, arguments)
}

// pushTask is a call that queues a task of a play; without a name one is made up.
func pushTask(play, name string, more ...any) openaitest.Answer {
	if name != "" {
		more = append(more, "name", name)
	}
	return callTasks("push", append(more, "prompt", "Do your part of play="+play+".")...)
}

// perform has main give a play in a conversation of its own, and returns the
// results of its calls.
func (s *stage) perform(play string) []string {
	s.t.Helper()
	p := s.begin(play)
	s.eventually("the end of "+play, func() bool { return slices.Contains(p.texts(), allDone) })
	return s.gotBack(play, "main")
}

// begin has main begin with a play in a conversation of its own.
func (s *stage) begin(play string) *person {
	s.t.Helper()
	p := s.attach(wire.Frame{New: true})
	p.say("play=" + play)
	return p
}

// terminal is a conversation of its own at a terminal.
func (s *stage) terminal() chatPlace {
	s.t.Helper()
	p := s.attach(wire.Frame{New: true})
	return chatPlace{"terminal", p.say, func() []string { return unbold(p.texts()) }}
}

// private is a private chat in Telegram.
func (s *stage) private(id int64) chatPlace {
	s.telegram.AddChat(telegramtest.Chat{ID: id, Type: telegramtest.Private})
	return chatPlace{"Telegram", func(text string) { s.telegram.Say(id, text) },
		func() []string { return unbold(s.texts(id)) }}
}

// unbold is texts without what makes them bold, and lists as they were written.
func unbold(texts []string) []string {
	for i := range texts {
		texts[i] = strings.NewReplacer("**", "", ":\n\n• ", ":\n- ", "• ", "- ").Replace(texts[i])
	}
	return texts
}

// taskRow is a task as the command line sees it.
type taskRow struct {
	ID, Name, Root, Prompt, State, Outcome, Requester, Agent, Model string
	Timeout                                                         float64
}

// rows are the tasks of a play.
func (s *stage) rows(play string) (found []taskRow) {
	s.t.Helper()
	var all struct{ Tasks []taskRow }
	if !s.asks("tasks/list", `{}`, &all) {
		s.t.Fatal("the tasks cannot be listed")
	}
	for _, row := range all.Tasks {
		row.Prompt = s.promptOf(row.ID)
		if m := playing.FindStringSubmatch(row.Prompt); m != nil && m[1] == play {
			found = append(found, row)
		}
	}
	return found
}

// promptOf is what a task was told; nothing if it has just been removed.
func (s *stage) promptOf(id string) string {
	s.t.Helper()
	s.mu.Lock()
	known := s.tasks[id]
	s.mu.Unlock()
	if known != "" {
		return known
	}
	var shown taskRow
	if s.asks("tasks/show", fmt.Sprintf(`{"id": %q}`, id), &shown) {
		s.mu.Lock()
		s.tasks[id] = shown.Prompt
		s.mu.Unlock()
	}
	return shown.Prompt
}

// asks calls a tool like the command line; false: the tool failed.
func (s *stage) asks(tool, arguments string, into any) bool {
	s.t.Helper()
	result, err := s.kernel.CallTool(s.ctx(), &adminv1.CallToolRequest{Name: tool, Arguments: []byte(arguments)})
	if err == nil && !result.IsError {
		err = json.Unmarshal([]byte(result.Content), into)
	}
	if err != nil {
		s.t.Fatalf("%s %s: %v, %+v", tool, arguments, err, result)
	}
	return !result.IsError
}

// inState is how many tasks of a play are in a state.
func (s *stage) inState(play, state string) int {
	s.t.Helper()
	return s.states(play)[state]
}

// states is how many tasks of a play are in each state.
func (s *stage) states(play string) map[string]int {
	s.t.Helper()
	n := map[string]int{}
	for _, j := range s.rows(play) {
		n[j.State]++
	}
	return n
}

// onceFinished waits until n tasks of a play have finished.
func (s *stage) onceFinished(play string, n int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d finished tasks of %s", n, play), func() bool { return s.inState(play, "finished") == n })
}

// letter is one message as receive or check gives it.
type letter struct {
	From        string
	TaskID      string `json:"task_id"`
	Success     *bool
	Output      string
	Error       string
	Message     string
	Outcome     string
	Partial     string `json:"partial_output"`
	Uncollected int    `json:"uncollected_messages"`
}

func (l letter) String() string {
	switch {
	case l.Success == nil:
		return l.From + " writes: " + l.Message
	case *l.Success:
		return l.From + " " + l.Outcome + ": " + l.Output
	}
	return l.From + " " + l.Outcome + "! " + l.Error
}

// letters are the messages in a result of receive or check.
func letters(t *testing.T, result string) []letter {
	t.Helper()
	var all struct{ Messages []letter }
	if err := json.Unmarshal([]byte(result), &all); err != nil {
		t.Errorf("the result %q: %v", result, err)
	}
	return all.Messages
}

// firstOutput is what the first of the results in a result of receive says.
func firstOutput(t *testing.T, result string) string {
	t.Helper()
	all := letters(t, result)
	if len(all) == 0 {
		t.Errorf("nothing was received: %s", result)
		return ""
	}
	return all[0].Output
}

// wantLetters checks what results of receive or check hold, in any order.
func wantLetters(t *testing.T, results []string, want ...string) {
	t.Helper()
	var got []string
	for _, r := range results {
		for _, l := range letters(t, r) {
			got = append(got, l.String())
		}
	}
	sorted := slices.Sorted(slices.Values(got))
	slices.Sort(want)
	if !slices.Equal(sorted, want) {
		t.Errorf("collected %q, want %q: %q", got, want, results)
	}
}

// allResults is the results of the calls of the turn that is under way.
func allResults(r openaitest.Request) (results []string) {
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			results = nil
		case "tool":
			results = append(results, m.Content.Text)
		}
	}
	return results
}
