package e2e

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// clerk is an agent with instructions and tools of its own.
const clerk = `api: 1
id: clerk
name: Clerk
version: 1.0.0
description: Files things.
agent:
  model: default
  instructions: You are the clerk.
  uses_tools: [core/list_agents, tasks/send]
`

// TestTaskCommands goes through what a person can write, with every parameter,
// in a terminal and in Telegram.
func TestTaskCommands(t *testing.T) {
	t.Parallel()
	s := newStage(t, strangers())
	s.config(`channels: {telegram_channel: {allow_from: ["*"]}}`)
	s.dropIn("clerk", "", clerk)
	s.open("clerk")
	for i, topic := range []struct {
		name string
		run  func(s *stage, c chatPlace, play string)
	}{
		{"Push", commandPush},
		{"Announce", commandAnnounce},
		{"Run", commandRun},
		{"RemoveAndCancel", commandCancel},
		{"Timeout", commandTimeout},
		{"Messages", commandMessages},
		{"ReceiveFrom", commandReceiveFrom},
		{"OtherConversations", commandAll},
		{"BadInput", commandBad},
	} {
		for _, place := range []string{"terminal", "Telegram"} {
			t.Run(topic.name+"/"+place, func(t *testing.T) {
				t.Parallel()
				s := s.in(t)
				c := s.private(int64(6101 + i))
				if place == "terminal" {
					c = s.terminal()
				}
				topic.run(s, c, topic.name+"_"+place)
			})
		}
	}
}

func commandPush(s *stage, c chatPlace, play string) {
	s.gives(c, "/push name=x model=openai/other-model agent=clerk timeout=600 deliver=inbox Do play="+play,
		"Queued as x. /run starts it.")
	s.gives(c, "/push --timeout=300 Do more of play="+play, "Queued as task-1")
	s.gives(c, "/run", "Started: x, task-1")
	s.onceFinished(play, 2)
	s.gives(c, "/receive from=x", "x has finished:\n\nThis is what x says.")
	s.gives(c, "/receive", "task-1 has finished:\n\nThis is what task-1 says.")
	x, other := s.requests(play, "x")[0], s.requests(play, "task-1")[0]
	if x.Model != "other-model" || other.Model != "test-model" {
		s.t.Errorf("the models are %s and %s", x.Model, other.Model)
	}
	contains(s.t, "the instructions of an agent that is named", x.Messages[0].Content.Text, "You are the clerk.")
	if text := other.Messages[0].Content.Text; strings.Contains(text, "clerk.") ||
		strings.Contains(text, "personal assistant") {
		s.t.Errorf("the instructions of a copy: %s", text)
	}
	for _, row := range s.rows(play) {
		if want := map[string]float64{"x": 600, "task-1": 300}[row.Name]; row.Timeout != want {
			s.t.Errorf("the timeout of %s is %v", row.Name, row.Timeout)
		}
	}
	shown := s.must("tasks", "show", s.rows(play)[0].ID, "--follow")
	contains(s.t, "tasks show", shown, "play="+play, "finished", "ok", "This is what")
}

func commandAnnounce(s *stage, c chatPlace, play string) {
	s.works(play, "loud", "Loud in play="+play+".")
	s.plays(play, "result", func(openaitest.Request, []string) openaitest.Answer {
		return openaitest.Say("I was told of loud.")
	})
	s.gives(c, "/push deliver=announce name=loud Do play="+play, "Queued as loud")
	s.gives(c, "/run", "Started: loud")
	n := len(c.texts())
	s.lift(play + "/loud")
	c.hears(s.world, n, "I was told of loud.")
	s.gives(c, "/inbox", "The inbox is empty")
	s.gives(c, "/receive from=loud", "Nothing more can arrive from loud")
	if told := s.requests(play, "result"); len(told) != 1 {
		s.t.Errorf("main was run %d times", len(told))
	} else {
		contains(s.t, "what main is told", heard(told[0]), "[result from loud]", `"success":true`, "Loud in play")
	}
}

func commandRun(s *stage, c chatPlace, play string) {
	s.gives(c, "/run", "Nothing is queued")
	s.gives(c, "/queue", "The queue is empty")
	for _, name := range []string{"a", "b", "c"} {
		s.works(play, name, "Done.")
		s.gives(c, "/push name="+name+" Do play="+play, "Queued as "+name)
	}
	do := ": Do play=" + play
	s.gives(c, "/queue", "Queued:\n- a"+do+"\n- b"+do+"\n- c"+do)
	s.gives(c, "/run 1", "Started: a. Still queued: 2")
	s.onceAtWork(play, 1)
	s.gives(c, "/queue", "Queued:\n- b"+do+"\n- c"+do+"\n\nRunning:\n- a (started ", "ago)"+do)
	s.gives(c, "/run 1", "No free slot. The next task starts when a running one finishes")
	s.lift(play + "/a")
	s.onceFinished(play, 1)
	s.onceAtWork(play, 1)
	s.gives(c, "/queue", "Queued:\n- c"+do+"\n\nRunning:\n- b (started ", "Finished:\n- a (ok, ")
	s.gives(c, "/run 2", "Started: c")
	s.onceAtWork(play, 2)
	s.works(play, "d", "Done.")
	s.gives(c, "/push name=d Do play="+play, "Queued as d") // run was about what was queued then
	for _, name := range []string{"b", "c", "d"} {
		s.lift(play + "/" + name)
	}
	s.onceFinished(play, 3)
	s.gives(c, "/queue", "Queued:\n- d"+do+"\n\nFinished:\n")
	s.gives(c, "/run", "Started: d")
	s.onceFinished(play, 4)
}

func commandCancel(s *stage, c chatPlace, play string) {
	for _, name := range []string{"now", "later", "never"} {
		s.works(play, name, "Done.")
		s.gives(c, "/push name="+name+" Do play="+play, "Queued as "+name)
	}
	s.gives(c, "/queue_remove never", "Removed never")
	s.gives(c, "/queue", "Queued:\n- now: Do play="+play+"\n- later: Do play="+play)
	s.gives(c, "/run 1", "Started: now. Still queued: 1")
	s.onceAtWork(play, 1)
	s.gives(c, "/task_cancel later", "Cancelled later")
	s.gives(c, "/receive from=later", "later has failed (cancelled): the task was cancelled before it started")
	s.gives(c, "/task_cancel now", "Cancelled now")
	s.onceFinished(play, 2)
	s.gives(c, "/receive", "now has failed (cancelled): ")
	s.gives(c, "/push name=never Do play="+play, "Queued as never") // the name is free
	s.gives(c, "/run", "Started: never")
	s.lift(play + "/never")
	s.onceFinished(play, 3)
	s.gives(c, "/check", "never has finished")
}

// A timeout of run holds for the tasks that have none.
func commandTimeout(s *stage, c chatPlace, play string) {
	for _, name := range []string{"hasty", "patient"} {
		s.works(play, name, "Done.")
	}
	s.gives(c, "/push name=hasty Do play="+play, "Queued as hasty")
	s.gives(c, "/push name=patient timeout=3600 Do play="+play, "Queued as patient")
	s.gives(c, "/run 2 timeout=0.2", "Started: hasty, patient")
	s.onceFinished(play, 1)
	s.gives(c, "/receive", "hasty has failed (timeout): ")
	s.follows(c, "/receive", play+"/patient", "patient has finished:\n\nDone.")
}

// sends is the part of a sub-agent that sends texts to main, and ends when it is
// released.
func (s *stage) sends(play, name string, texts ...string) {
	s.plays(play, name, func(_ openaitest.Request, results []string) openaitest.Answer {
		if len(results) < len(texts) {
			return callTasks("send", "to", "main", "message", texts[len(results)])
		}
		s.lift(play + "/" + name + " has sent")
		return s.held(play+"/"+name, openaitest.Say("Done."))
	})
}

// started pushes a task, has it run, and waits for what it sends.
func (s *stage) started(c chatPlace, play, name string) {
	s.t.Helper()
	s.gives(c, "/push name="+name+" Do play="+play, "Queued as "+name)
	s.gives(c, "/run", "Started: "+name)
	<-s.gate(play + "/" + name + " has sent")
}

// inThisOrder checks that texts follow one another in the last message.
func (s *stage) inThisOrder(c chatPlace, texts ...string) {
	s.t.Helper()
	all := c.texts()
	rest := all[len(all)-1]
	for _, text := range texts {
		_, behind, found := strings.Cut(rest, text)
		if !found {
			s.t.Errorf("%q are not in this order in %q", texts, all[len(all)-1])
		}
		rest = behind
	}
}

func commandMessages(s *stage, c chatPlace, play string) {
	s.gives(c, "/inbox", "The inbox is empty")
	s.gives(c, "/check", "Nothing has arrived")
	s.gives(c, "/receive", "Nothing is running")
	s.sends(play, "w", "one", "two", "three")
	s.sends(play, "v", "four", "five")
	s.started(c, play, "w")
	s.started(c, play, "v")
	s.gives(c, "/inbox", "Messages:")
	s.inThisOrder(c, "message from w (", "message from w (", "message from w (", "message from v (", "message from v (")
	s.gives(c, "/receive --lifo", "v writes: five")
	s.gives(c, "/receive from=w", "w writes: one")
	s.gives(c, "/receive from=v --lifo", "v writes: four")
	s.gives(c, "/check from=v", "Nothing has arrived")
	s.gives(c, "/check from=w --lifo", "w writes: three")
	s.inThisOrder(c, "w writes: three", "w writes: two")
	s.gives(c, "/inbox", "The inbox is empty")
	s.gives(c, "/check", "Nothing has arrived")
	s.lift(play + "/w")
	s.lift(play + "/v")
	s.onceFinished(play, 2)
	s.gives(c, "/inbox", "result from w (", "result from v (")
	s.gives(c, "/check order=lifo", "v has finished", "w has finished")
	s.knows(c, play, "one", "two", "three", "four", "five", "Done.")
}

// What a person waits for from one is not given from another, and a wait ends
// with its timeout.
func commandReceiveFrom(s *stage, c chatPlace, play string) {
	s.works(play, "w", "Done by w.")
	s.works(play, "v", "Done by v.")
	s.gives(c, "/push name=w Do play="+play, "Queued as w")
	s.gives(c, "/receive from=w", "Nothing can arrive from w: it hasn't started")
	s.gives(c, "/push name=v Do play="+play, "Queued as v")
	s.gives(c, "/run", "Started: w, v")
	s.gives(c, "/receive timeout=0.05", "Waiting", "Nothing arrived in time")
	s.gives(c, "/receive from=v timeout=0.05", "Waiting", "Nothing arrived in time")
	n := len(c.texts())
	s.gives(c, "/receive from=w timeout=3600", "Waiting")
	s.lift(play + "/v")
	s.onceFinished(play, 1)
	s.gives(c, "/inbox", "result from v (")
	s.lift(play + "/w")
	c.hears(s.world, n, "w has finished:\n\nDone by w.")
	if strings.Contains(strings.Join(c.texts()[n:], "\n"), "Done by v.") {
		s.t.Errorf("it was given to one who waits for another: %q", c.texts()[n:])
	}
	s.gives(c, "/receive from=v", "v has finished:\n\nDone by v.")
	s.knows(c, play, "Done by w.", "Done by v.")
}

// Inboxes of a person's other conversations are listed on request, and nothing is taken
// from them.
func commandAll(s *stage, c chatPlace, play string) {
	name := "of_" + c.name
	s.gives(c, "/push name="+name+" Do play="+play, "Queued as "+name)
	s.gives(c, "/run", "Started: "+name)
	s.onceFinished(play, 1)
	s.gives(c, "/push name="+name+"_2 Do play="+play, "Queued as "+name+"_2")
	for _, other := range []chatPlace{s.terminal(), s.private(int64(6201 + len(play)))} {
		s.gives(other, "/queue", "The queue is empty")
		s.gives(other, "/inbox", "The inbox is empty")
		if c.name == "terminal" && other.name == "terminal" { // the same person
			s.gives(other, "/queue all", "Queued:\n- ", name+"_2 in s", "Finished:\n- ", name+" in s")
			s.gives(other, "/inbox all", "result from "+name+" in s")
		} else {
			s.gives(other, "/queue all")
			s.gives(other, "/inbox all")
			if told := strings.Join(other.texts(), "\n"); strings.Contains(told, name) {
				s.t.Errorf("another person is told of it: %s", told)
			}
		}
		s.gives(other, "/check", "Nothing has arrived")
		s.gives(other, "/check from="+name, "no task")
		s.gives(other, "/task_cancel "+name+"_2", "no task")
		s.gives(other, "/send "+name+"_2 hello", "no task")
	}
	s.gives(c, "/check", name+" has finished")
}

func commandBad(s *stage, c chatPlace, play string) {
	s.gives(c, "/push name=done Do play="+play, "Queued as done")
	s.gives(c, "/run", "Started: done")
	s.onceFinished(play, 1)
	s.gives(c, "/push name=waits Do play="+play, "Queued as waits")
	before := s.rows(play)
	for _, tt := range []struct{ command, told string }{
		{"/push", "Usage: /push PROMPT [name=TEXT] [model=TEXT] [agent=TEXT] [timeout=NUMBER] [deliver=inbox|announce]"},
		{"/push name=x", "Prompt is missing."},
		{"/push modle=x Do it.", "Unknown option 'modle'. Did you mean model?"},
		{"/push Do it. modle=x", "Unknown option 'modle'. Did you mean model?"},
		{"/push name=main Do it.", `"main" is not a valid task name`},
		{"/push name=a/b Do it.", `"a/b" is not a valid task name`},
		{"/push name=" + strings.Repeat("n", 65) + " Do it.", "at most 64"},
		{"/push name=waits Do it.", `"waits" is taken`},
		{"/push name=done Do it.", `"done" is taken`}, // as long as its result lies there
		{"/push timeout=soon Do it.", "must be a number, not 'soon'."},
		{"/push timeout=0 Do it.", "Timeout: got "},
		{"/push timeout=-5 Do it.", "Timeout: got "},
		{"/push agent=nobody Do it.", "nobody"},
		{"/push deliver=pigeon Do it.", "inbox"},
		{"/run 2 3", "Unexpected argument '3'. Usage: /run [count=NUMBER] [timeout=NUMBER]"},
		{"/run many", "Count must be a whole number, not 'many'."},
		{"/run 1.5", "Count must be a whole number, not '1.5'."},
		{"/run 0", "Count: got 0, want at least 1."},
		{"/run -1", "Count: got -1, want at least 1."},
		{"/run timeout=soon", "Timeout must be a number"},
		{"/run timeout=0", "Timeout: got "},
		{"/queue everything", "Unexpected argument 'everything'. Usage: /queue [--all]"},
		{"/inbox everything", "Unexpected argument 'everything'. Usage: /inbox [--all]"},
		{"/queue_remove", "Usage: /queue_remove NAME"},
		{"/queue_remove nobody", `no task "nobody"`},
		{"/queue_remove done", `Task "done" is finished and not in the queue`},
		{"/task_cancel", "Usage: /task_cancel NAME"},
		{"/task_cancel nobody", `no task "nobody"`},
		{"/task_cancel done", "has already finished: ok"},
		{"/send", "Usage: /send TO MESSAGE"},
		{"/send waits", "Message is missing. Usage: /send TO MESSAGE"},
		{"/send nobody hello", `no task "nobody"`},
		{"/send done hello", "has finished (ok) and reads no more messages"},
		{"/receive from=nobody", `no task "nobody"`},
		{"/receive from=main", "wait for itself"},
		{"/receive order=sideways", "lifo"},
		{"/receive timeout=soon", "number"},
		{"/receive timeout=-1", "Timeout: got "},
		{"/receive from=waits", "it hasn't started"},
		{"/check from=nobody", `no task "nobody"`},
		{"/check order=sideways", "lifo"},
	} {
		s.gives(c, tt.command, tt.told)
	}
	if after := s.rows(play); !reflect.DeepEqual(before, after) {
		s.t.Errorf("the tasks were %+v, and are %+v", before, after)
	}
	s.gives(c, "/inbox", "Messages:\n- result from done (")
	if last := c.texts()[len(c.texts())-1]; strings.Count(last, "\n") != 1 {
		s.t.Errorf("the inbox is %q", last)
	}
	s.gives(c, "/check", "done has finished:")
	if n := len(s.requests(play, "waits")) + len(s.requests("", "main")); n != 0 {
		s.t.Errorf("the model was asked %d times too often", n)
	}
}

// TestReceiveWhileTheResultComes has people wait for a result in the moment in
// which it comes: it is given to them at once, or a little later.
func TestReceiveWhileTheResultComes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.open()
	places := make([]chatPlace, 12)
	for i := range places {
		play := fmt.Sprintf("Round%d", i)
		places[i] = s.terminal()
		s.works(play, "w", "Done in time.")
		s.gives(places[i], "/push name=w Do play="+play, "Queued as w")
		s.gives(places[i], "/run", "Started: w")
		s.onceAtWork(play, 1)
	}
	for i, c := range places {
		s.lift(fmt.Sprintf("Round%d/w", i))
		c.says("/receive")
	}
	for _, c := range places {
		c.hears(s.world, 0, "w has finished:\n\nDone in time.")
		s.gives(c, "/inbox", "The inbox is empty")
		if n := strings.Count(strings.Join(c.texts(), "\n"), "Done in time."); n != 1 {
			t.Errorf("it was given %d times", n)
		}
	}
}
