package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// workflows are the ways in which work is given away and collected. Each is gone
// through by an agent with tools, and by a person with commands.
var workflows = []struct {
	name   string
	agent  func(s *stage, play string)
	person func(s *stage, c chatPlace, play string)
}{
	{"Sequential", agentSequential, personSequential},
	{"Parallel", agentParallel, personParallel},
	{"AsyncWithOtherWork", agentAsync, personAsync},
	{"BatchedTwoOfFive", agentBatched, personBatched},
	{"OutOfOrderCollection", agentOutOfOrder, personOutOfOrder},
	{"ProgressUpdates", agentProgress, personProgress},
	{"SiblingCoordination", agentSiblings, personSiblings},
}

func TestTaskWorkflowsOfAgents(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.open()
	for _, flow := range workflows {
		t.Run(flow.name, func(t *testing.T) {
			t.Parallel()
			flow.agent(s.in(t), flow.name)
		})
	}
}

func TestTaskWorkflowsOfPeople(t *testing.T) {
	t.Parallel()
	s := newStage(t, strangers())
	s.config(`channels: {telegram_channel: {allow_from: ["*"]}}`)
	s.open()
	for i, flow := range workflows {
		for _, place := range []string{"terminal", "Telegram"} {
			t.Run(flow.name+"/"+place, func(t *testing.T) {
				t.Parallel()
				s := s.in(t)
				var c chatPlace
				if place == "terminal" {
					c = s.terminal()
				} else {
					c = s.private(int64(6001 + i))
				}
				flow.person(s, c, flow.name+"_"+place)
			})
		}
	}
}

// gives has a person give a command and waits for the parts in what follows,
// the answer and what comes later; the last part is what others are released by.
func (s *stage) gives(c chatPlace, command string, parts ...string) {
	s.t.Helper()
	c.asks(s.world, command, parts...)
}

// follows has a person wait for a message that only then comes.
func (s *stage) follows(c chatPlace, command, gate, message string) {
	s.t.Helper()
	n := len(c.texts())
	c.asks(s.world, command, "Waiting")
	s.lift(gate)
	c.hears(s.world, n, message)
}

// knows checks that main knows what its user has collected.
func (s *stage) knows(c chatPlace, play string, collected ...string) {
	s.t.Helper()
	s.plays(play, "main", inOrder())
	c.asks(s.world, "What has come of play="+play+"?", allDone)
	all := s.requests(play, "main")
	contains(s.t, "what main knows", transcript(all[len(all)-1]), collected...)
}

func prompt(r openaitest.Request) string {
	for _, m := range r.Messages {
		if m.Role == "user" && strings.Contains(m.Content.Text, "Your name is") {
			return m.Content.Text
		}
	}
	return ""
}

func agentSequential(s *stage, play string) {
	s.works(play, "task-1", "It has two endpoints.")
	s.lift(play + "/task-1")
	s.plays(play, "main", func(_ openaitest.Request, results []string) openaitest.Answer {
		again := pushTask(play, "")
		if len(results) == 3 {
			again = callTasks("push", "prompt", "Implement this of play="+play+": "+firstOutput(s.t, results[2]))
		}
		return inOrder(again, callTasks("run"), callTasks("receive"), again, callTasks("run"),
			callTasks("receive"))(openaitest.Request{}, results)
	})
	results := s.perform(play)
	wantLetters(s.t, results[2:3], "task-1 ok: It has two endpoints.")
	wantLetters(s.t, results[5:], "task-2 ok: This is what task-2 says.")
	contains(s.t, "the second prompt", prompt(s.requests(play, "task-2")[0]), "Implement this", "It has two endpoints.")
}

func personSequential(s *stage, c chatPlace, play string) {
	s.works(play, "task-1", "It has two endpoints.")
	s.gives(c, `/push "Research the API for play=`+play+`."`, "Queued as task-1")
	s.gives(c, "/run", "Started: task-1")
	s.follows(c, "/receive", play+"/task-1", "task-1 has finished:\n\nIt has two endpoints.")
	s.works(play, "task-2", "It is done.")
	s.gives(c, "/push Implement play="+play+" based on research", "Queued as task-2")
	s.gives(c, "/run", "Started: task-2")
	s.follows(c, "/receive", play+"/task-2", "task-2 has finished:\n\nIt is done.")
	if text := prompt(s.requests(play, "task-1")[0]); !strings.Contains(text, "\nResearch the API for play="+play+".\n") {
		s.t.Errorf("the quotes are part of the prompt %q", text)
	}
	s.knows(c, play, "It has two endpoints.", "It is done.")
}

func agentParallel(s *stage, play string) {
	var all []openaitest.Answer
	for _, name := range []string{"a", "b", "c"} {
		s.works(play, name, "Approach "+name+".")
		all = append(all, pushTask(play, name))
	}
	all = append(all, callTasks("run"), callTasks("receive"), callTasks("receive"), callTasks("receive"),
		callTasks("receive"))
	s.plays(play, "main", inOrder(all...))
	p := s.begin(play)
	s.onceAtWork(play, 3)
	for _, name := range []string{"b", "a", "c"} {
		s.lift(play + "/" + name)
	}
	s.eventually("the end", func() bool { return slices.Contains(p.texts(), allDone) })
	results := s.gotBack(play, "main")
	wantLetters(s.t, results[4:7], "a ok: Approach a.", "b ok: Approach b.", "c ok: Approach c.")
	wantLetters(s.t, results[7:])
	contains(s.t, "a wait in vain", results[7], "Nothing is running")
}

func personParallel(s *stage, c chatPlace, play string) {
	for _, name := range []string{"a", "b", "c"} {
		s.works(play, name, "Approach "+name+".")
		s.gives(c, "/push name="+name+" Research play="+play, "Queued as "+name)
	}
	s.gives(c, "/run", "Started: a, b, c")
	s.onceAtWork(play, 3)
	s.follows(c, "/receive", play+"/b", "b has finished:\n\nApproach b.")
	s.lift(play + "/a")
	s.onceFinished(play, 2)
	s.gives(c, "/receive", "a has finished:\n\nApproach a.")
	s.follows(c, "/receive", play+"/c", "c has finished:\n\nApproach c.")
	s.gives(c, "/receive", "Nothing is running")
	s.knows(c, play, "Approach a.", "Approach b.", "Approach c.")
}

func agentAsync(s *stage, play string) {
	s.works(play, "slow", "It took long.")
	s.plays(play, "main", inOrder(pushTask(play, "slow"), callTasks("run"),
		openaitest.CallTool("list_channels", map[string]any{}), callTasks("check"),
		s.held(play+" finished", callTasks("check"))))
	p := s.begin(play)
	s.eventually("the first check", func() bool { return len(s.gotBack(play, "main")) == 4 })
	s.lift(play + "/slow")
	s.onceFinished(play, 1)
	s.lift(play + " finished")
	s.eventually("the end", func() bool { return slices.Contains(p.texts(), allDone) })
	results := s.gotBack(play, "main")
	contains(s.t, "the other work", results[2], "cli_channel")
	wantLetters(s.t, results[3:4])
	contains(s.t, "the first check", results[3], "Nothing has arrived")
	wantLetters(s.t, results[4:], "slow ok: It took long.")
}

func personAsync(s *stage, c chatPlace, play string) {
	s.works(play, "slow", "It took long.")
	s.gives(c, "/push name=slow Long running research for play="+play, "Queued as slow")
	s.gives(c, "/run", "Started: slow")
	s.onceAtWork(play, 1)
	s.plays(play, "main", inOrder())
	s.gives(c, "Something else for play="+play, allDone)
	s.gives(c, "/check", "Nothing has arrived")
	s.lift(play + "/slow")
	s.onceFinished(play, 1)
	s.gives(c, "/check", "slow has finished:\n\nIt took long.")
	s.gives(c, "/check", "Nothing has arrived")
	s.knows(c, play, "It took long.")
}

var five = []string{"task-1", "task-2", "task-3", "task-4", "task-5"}

// twoOfFive checks that two of the five are at work as long as there are two,
// each time one finishes, and that the others have not been given to anybody.
func (s *stage) twoOfFive(play string, each func(name string)) {
	s.t.Helper()
	for done := range five {
		at := min(2, len(five)-done)
		var now []string
		s.eventually(fmt.Sprintf("%d at work, and %d finished", at, done), func() bool {
			in := s.states(play)
			now = s.atWork(play) // who has finished has left by now
			return in["finished"] == done && in["running"] == at && in["queued"] == len(five)-done-at && len(now) == at
		})
		last := now[len(now)-1]
		s.lift(play + "/" + last)
		each(last)
	}
	s.onceFinished(play, len(five))
	s.mu.Lock()
	defer s.mu.Unlock()
	if most := s.most[play]; most != 2 {
		s.t.Errorf("%d were at work at a time", most)
	}
}

func agentBatched(s *stage, play string) {
	var all []openaitest.Answer
	var want []string
	for _, name := range five {
		s.works(play, name, "Refactored "+name+".")
		all = append(all, pushTask(play, ""))
		want = append(want, name+" ok: Refactored "+name+".")
	}
	all = append(all, callTasks("run", "count", 2))
	for range five {
		all = append(all, callTasks("receive"))
	}
	s.plays(play, "main", inOrder(all...))
	p := s.begin(play)
	s.twoOfFive(play, func(string) {})
	s.eventually("the end", func() bool { return slices.Contains(p.texts(), allDone) })
	wantLetters(s.t, s.gotBack(play, "main")[6:], want...)
}

func personBatched(s *stage, c chatPlace, play string) {
	for i, name := range five {
		s.works(play, name, "Refactored "+name+".")
		s.gives(c, fmt.Sprintf("/push Refactor file%d of play=%s", i+1, play), "Queued as "+name)
	}
	s.gives(c, "/run 2", "Started: task-1, task-2.", "Still queued: 3")
	s.twoOfFive(play, func(name string) { s.gives(c, "/receive", name+" has finished:\n\nRefactored "+name) })
	s.gives(c, "/inbox", "The inbox is empty")
}

func agentOutOfOrder(s *stage, play string) {
	s.plays(play, "main", inOrder(pushTask(play, "a"), pushTask(play, "b"), pushTask(play, "c"), callTasks("run"),
		s.held(play+" finished", callTasks("receive", "from", "b")), callTasks("receive", "from", "c"), callTasks("receive")))
	p := s.begin(play)
	s.onceFinished(play, 3)
	s.lift(play + " finished")
	s.eventually("the end", func() bool { return slices.Contains(p.texts(), allDone) })
	for i, name := range []string{"b", "c", "a"} {
		wantLetters(s.t, s.gotBack(play, "main")[4+i:5+i], name+" ok: This is what "+name+" says.")
	}
}

func personOutOfOrder(s *stage, c chatPlace, play string) {
	for _, name := range []string{"a", "b", "c"} {
		s.gives(c, "/push name="+name+" Task of play="+play, "Queued as "+name)
	}
	s.gives(c, "/run", "Started: a, b, c")
	s.onceFinished(play, 3)
	for _, command := range []string{"/receive from=b", "/receive from=c", "/receive"} {
		name := map[string]string{"/receive from=b": "b", "/receive from=c": "c", "/receive": "a"}[command]
		s.gives(c, command, name+" has finished:\n\nThis is what "+name+" says.")
	}
	s.gives(c, "/inbox", "The inbox is empty")
}

// reports is the part of a worker that tells main of two phases, each when it is
// released.
func (s *stage) reports(play string) part {
	phase := func(n int) openaitest.Answer {
		return s.held(fmt.Sprintf("%s phase %d", play, n), callTasks("send", "to", "main", "message",
			fmt.Sprintf("Phase %d complete", n)))
	}
	return func(_ openaitest.Request, results []string) openaitest.Answer {
		s.lift(fmt.Sprintf("%s sent %d", play, len(results)))
		if len(results) == 2 {
			return s.held(play+" phase 3", openaitest.Say("All phases are complete."))
		}
		return phase(len(results) + 1)
	}
}

func agentProgress(s *stage, play string) {
	s.plays(play, "worker", s.reports(play))
	s.plays(play, "main", func(_ openaitest.Request, results []string) openaitest.Answer {
		if n := len(results) - 1; n > 0 { // it has started it, and read n-1 reports
			s.lift(fmt.Sprintf("%s phase %d", play, n))
		}
		return inOrder(pushTask(play, "worker"), callTasks("run"), s.held(play+" sent 1", callTasks("check")),
			s.held(play+" sent 2", callTasks("check")),
			callTasks("receive"))(openaitest.Request{}, results)
	})
	results := s.perform(play)
	wantLetters(s.t, results[2:3], "worker writes: Phase 1 complete")
	wantLetters(s.t, results[3:4], "worker writes: Phase 2 complete")
	wantLetters(s.t, results[4:], "worker ok: All phases are complete.")
}

func personProgress(s *stage, c chatPlace, play string) {
	s.plays(play, "worker", s.reports(play))
	s.gives(c, "/push name=worker Long task of play="+play+". My ID is 'main', send progress updates.", "Queued as worker")
	s.gives(c, "/run", "Started: worker")
	for n := 1; n <= 2; n++ {
		s.gives(c, "/check", "Nothing has arrived")
		s.lift(fmt.Sprintf("%s phase %d", play, n))
		<-s.gate(fmt.Sprintf("%s sent %d", play, n))
		s.gives(c, "/check", fmt.Sprintf("worker writes: Phase %d complete", n))
	}
	s.follows(c, "/receive", play+" phase 3", "worker has finished:\n\nAll phases are complete.")
	s.knows(c, play, "Phase 1 complete", "Phase 2 complete", "All phases are complete.")
}

// siblings gives two workers their parts: one shares what it finds with the
// other, which waits for it, and then looks what else there is.
func (s *stage) siblings(play string) {
	s.plays(play, "analyzer", func(_ openaitest.Request, results []string) openaitest.Answer {
		if len(results) == 0 {
			return s.held(play+" analysis", callTasks("send", "to", "implementer", "message", "Found patterns: two."))
		}
		return openaitest.Say("Analyzed.")
	})
	s.plays(play, "implementer", func(_ openaitest.Request, results []string) openaitest.Answer {
		switch len(results) {
		case 0:
			s.lift(play + " analysis")
			return callTasks("receive", "from", "analyzer")
		case 1:
			return callTasks("check")
		}
		return openaitest.Say("Implemented.")
	})
}

func (s *stage) siblingsTalked(play string) {
	s.t.Helper()
	results := s.gotBack(play, "implementer")
	wantLetters(s.t, results[:1], "analyzer writes: Found patterns: two.")
	wantLetters(s.t, results[1:], "main writes: Mind the style.")
}

func agentSiblings(s *stage, play string) {
	s.siblings(play)
	s.plays(play, "main", inOrder(pushTask(play, "analyzer"), pushTask(play, "implementer"),
		callTasks("send", "to", "implementer", "message", "Mind the style."), callTasks("run"), callTasks("receive"),
		callTasks("receive")))
	results := s.perform(play)
	wantLetters(s.t, results[4:], "analyzer ok: Analyzed.", "implementer ok: Implemented.")
	s.siblingsTalked(play)
}

// A person has one of them work at a time: what the first one sends waits for
// the second one in its queue.
func personSiblings(s *stage, c chatPlace, play string) {
	s.siblings(play)
	s.lift(play + " analysis")
	s.gives(c, "/push name=analyzer Analyze play="+play+". Share findings with 'implementer'.", "Queued as analyzer")
	s.gives(c, "/push name=implementer Wait for analysis of play="+play+" from 'analyzer', then implement.",
		"Queued as implementer")
	s.gives(c, "/send implementer Mind the style.", "Sent to implementer")
	s.gives(c, "/run 1", "Started: analyzer.", "Still queued: 1")
	s.onceFinished(play, 2)
	s.gives(c, "/receive", "analyzer has finished:\n\nAnalyzed.")
	s.gives(c, "/receive", "implementer has finished:\n\nImplemented.")
	s.siblingsTalked(play)
	s.knows(c, play, "Analyzed.", "Implemented.")
}
