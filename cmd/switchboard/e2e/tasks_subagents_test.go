package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// TestSubAgents is about what sub-agents are and know, and how those who gave
// them work learn of what came of it.
func TestSubAgents(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.config("extensions: {tasks: {config: {depth: 3, concurrency: 2, per_root: 4}}}")
	s.dropIn("clerk", "", clerk)
	s.open("clerk")
	for name, run := range map[string]func(s *stage, play string){
		"StartBlank":         startBlank,
		"HaveAnotherAgent":   haveAnotherAgent,
		"AskAnotherModel":    askAnotherModel,
		"Nest":               nest,
		"WaitForEachOther":   waitForEachOther,
		"NestNotTooDeep":     nestNotTooDeep,
		"NestFewAtATime":     nestFewAtATime,
		"NestNotTooMany":     nestNotTooMany,
		"AreAnnouncedOnce":   areAnnounced,
		"LeaveMailBehind":    leaveMailBehind,
		"AreNoticedTogether": areNoticedTogether,
		"AreNoticedOnceEach": areNoticedOnceEach,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(s.in(t), name)
		})
	}
}

func toolNames(r openaitest.Request) (all []string) {
	for _, tool := range r.Tools {
		all = append(all, tool.Function.Name)
	}
	slices.Sort(all)
	return all
}

func startBlank(s *stage, play string) {
	p := s.attach()
	s.plays(play, "main", inOrder())
	p.say("The secret is xyzzy in play=" + play + ".")
	s.eventually("an answer", func() bool { return slices.Contains(p.texts(), allDone) })
	n := len(p.texts())
	s.plays(play, "main", inOrder(pushTask(play, "w"), callTasks("run"), callTasks("receive")))
	p.say("Have it done.")
	s.eventually("another answer", func() bool { return slices.Contains(p.texts()[n:], allDone) })
	parent, w := s.requests(play, "main")[0], s.requests(play, "w")[0]
	contains(s.t, "what the parent knows", string(parent.Raw), "xyzzy", "You are a personal assistant")
	for _, part := range []string{"xyzzy", "personal assistant", "Have it done", allDone} {
		if strings.Contains(string(w.Raw), part) {
			s.t.Errorf("a sub-agent knows %q: %s", part, w.Raw)
		}
	}
	contains(s.t, "what a sub-agent is told", string(w.Raw), "Your name is w", "Do your part of play="+play)
	// Those of its parent, which finds most tools of tasks, and these.
	got, want := toolNames(w), toolNames(parent)
	ofTasks := func(name string) bool { return strings.HasPrefix(name, "tasks__") }
	rest := slices.DeleteFunc(slices.Clone(got), ofTasks)
	want = slices.DeleteFunc(want, ofTasks)
	if len(got)-len(rest) != 10 || !slices.Equal(rest, want) || !slices.Contains(want, "find_tools") {
		s.t.Errorf("its tools are %q, those of its parent %q", got, want)
	}
}

func haveAnotherAgent(s *stage, play string) {
	s.plays(play, "w", inOrder(callTasks("send", "to", "main", "message", "I file it.")))
	s.plays(play, "main", inOrder(pushTask(play, "w", "agent", "clerk"), pushTask(play, "x", "agent", "nobody"),
		callTasks("run"), callTasks("receive"), callTasks("receive")))
	results := s.perform(play)
	contains(s.t, "an agent that does not exist", results[1], "nobody")
	wantLetters(s.t, results[3:], "w writes: I file it.", "w ok: "+allDone)
	w := s.requests(play, "w")[0]
	contains(s.t, "its instructions", w.Messages[0].Content.Text, "You are the clerk.")
	if got := toolNames(w); !slices.Equal(got, []string{"list_agents", "tasks__send"}) {
		s.t.Errorf("its tools are %q", got)
	}
	if len(s.rows(play)) != 1 {
		s.t.Errorf("the tasks are %+v", s.rows(play))
	}
}

func askAnotherModel(s *stage, play string) {
	s.plays(play, "w", inOrder(pushTask(play, "child"), callTasks("run"), callTasks("receive")))
	s.plays(play, "main", inOrder(pushTask(play, "w", "model", "openai/other-model"), pushTask(play, "v"),
		callTasks("run"), callTasks("receive"), callTasks("receive")))
	wantLetters(s.t, s.perform(play)[3:], "w ok: "+allDone, "v ok: This is what v says.")
	for name, model := range map[string]string{"main": "test-model", "w": "other-model", "child": "other-model",
		"v": "test-model"} {
		for _, r := range s.requests(play, name) {
			if r.Model != model {
				s.t.Errorf("%s asks %s", name, r.Model)
			}
		}
	}
}

func nest(s *stage, play string) {
	s.plays(play, "a", func(_ openaitest.Request, results []string) openaitest.Answer {
		if len(results) < 3 {
			return inOrder(pushTask(play, "b"), callTasks("run"), callTasks("receive", "from", "b"))(openaitest.Request{},
				results)
		}
		return openaitest.Say("b said: " + firstOutput(s.t, results[2]))
	})
	s.plays(play, "b", inOrder(callTasks("send", "to", "main", "message", "I am below.")))
	s.plays(play, "main", inOrder(pushTask(play, "a"), callTasks("run"), callTasks("receive"), callTasks("receive"),
		callTasks("check")))
	results := s.perform(play)
	wantLetters(s.t, results[2:3], "b writes: I am below.")
	wantLetters(s.t, results[3:4], "a ok: b said: "+allDone)
	wantLetters(s.t, results[4:]) // the result of b is its parent's
	for _, row := range s.rows(play) {
		if want := map[string]string{"a": "main", "b": "a"}[row.Name]; row.Requester != want {
			s.t.Errorf("%s was given by %s", row.Name, row.Requester)
		}
	}
}

// Two that wait for each other are told so, and go on; who waits for them goes on waiting.
func waitForEachOther(s *stage, play string) {
	s.plays(play, "b", inOrder(callTasks("receive", "from", "a")))
	s.plays(play, "a", func(_ openaitest.Request, results []string) openaitest.Answer {
		if n := len(results); n == 3 && len(letters(s.t, results[2])) == 0 || n == 4 {
			return inOrder(openaitest.Answer{}, openaitest.Answer{}, openaitest.Answer{},
				callTasks("send", "to", "b", "message", "Go on."), callTasks("receive", "from", "b"))(openaitest.Request{}, results)
		}
		return inOrder(pushTask(play, "b"), callTasks("run"), callTasks("receive", "from", "b"))(openaitest.Request{},
			results)
	})
	s.plays(play, "main", inOrder(pushTask(play, "a"), callTasks("run"), callTasks("receive")))
	wantLetters(s.t, s.perform(play)[2:], "a ok: "+allDone)
	a, b := s.gotBack(play, "a"), s.gotBack(play, "b")
	wantLetters(s.t, a[len(a)-1:], "b ok: "+allDone)
	if n := strings.Count(strings.Join(append(a, b...), "\n"),
		"it is waiting for you, directly or through others"); n == 0 {
		s.t.Errorf("nobody is told that the wait is in vain: %q, %q", a, b)
	}
}

func nestNotTooDeep(s *stage, play string) {
	below := map[string]string{"main": "a", "a": "b", "b": "c"}
	for name, child := range below {
		s.plays(play, name, inOrder(pushTask(play, child), callTasks("run"), callTasks("receive")))
	}
	s.plays(play, "c", inOrder(pushTask(play, "d")))
	wantLetters(s.t, s.perform(play)[2:], "a ok: "+allDone)
	contains(s.t, "what is too deep", strings.Join(s.gotBack(play, "c"), "\n"), "nested 3 deep")
	if len(s.rows(play)) != 3 {
		s.t.Errorf("the tasks are %+v", s.rows(play))
	}
}

func nestFewAtATime(s *stage, play string) {
	var all []openaitest.Answer
	for _, name := range []string{"x", "y", "z"} {
		s.works(play, name, "Done.")
		all = append(all, pushTask(play, name))
	}
	s.plays(play, "a", inOrder(append(all, callTasks("run"), callTasks("receive"), callTasks("receive"),
		callTasks("receive"))...))
	s.plays(play, "main", inOrder(pushTask(play, "a"), callTasks("run"), callTasks("receive")))
	p := s.begin(play)
	s.onceAtWork(play, 2)
	s.eventually("the states", func() bool { return s.inState(play, "running") == 3 && s.inState(play, "queued") == 1 })
	for _, name := range []string{"x", "y", "z"} {
		s.lift(play + "/" + name)
	}
	s.eventually("the end", func() bool { return slices.Contains(p.texts(), allDone) })
	wantLetters(s.t, s.gotBack(play, "a")[4:], "x ok: Done.", "y ok: Done.", "z ok: Done.")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most[play] != 2 {
		s.t.Errorf("%d were at work at a time", s.most[play])
	}
}

func nestNotTooMany(s *stage, play string) {
	var all []openaitest.Answer
	for range 5 {
		all = append(all, pushTask(play, ""))
	}
	s.plays(play, "a", inOrder(all...))
	all = nil
	for range 6 { // its own have no such bound
		all = append(all, pushTask(play, ""))
	}
	s.plays(play, "main", inOrder(append(all, pushTask(play, "a"), callTasks("run"),
		callTasks("receive", "from", "a"))...))
	results := s.perform(play)
	for _, result := range append(slices.Clone(results[:6]), s.gotBack(play, "a")[:4]...) {
		contains(s.t, "a push within bounds", result, "queued")
	}
	contains(s.t, "one too many", s.gotBack(play, "a")[4], "sub-agents have 4 unfinished tasks")
	wantLetters(s.t, results[8:], "a ok: "+allDone)
	s.onceFinished(play, 11) // those that a had not started are cancelled with its end
}

func areAnnounced(s *stage, play string) {
	s.works(play, "w", "Hear this.")
	s.plays(play, "result", func(openaitest.Request, []string) openaitest.Answer {
		return openaitest.Say("I have heard.")
	})
	s.plays(play, "w2", inOrder(pushTask(play, "y", "deliver", "announce")))
	s.plays(play, "main", inOrder(pushTask(play, "w", "deliver", "announce"), pushTask(play, "w2"), callTasks("run"),
		callTasks("receive", "from", "w2")))
	p := s.begin(play)
	s.eventually("the end of the turn", func() bool { return slices.Contains(p.texts(), allDone) })
	contains(s.t, "an announcement to a sub-agent", s.gotBack(play, "w2")[0], "works only for main")
	s.lift(play + "/w")
	s.eventually("the answer", func() bool { return slices.Contains(p.texts(), "I have heard.") })
	contains(s.t, "/check", p.ask("/check"), "Nothing has arrived")
	told := s.requests(play, "result")
	if len(told) != 1 {
		s.t.Fatalf("main was run %d times", len(told))
	}
	contains(s.t, "what it was told", heard(told[0]), "[result from w]", `"success":true`, `"output":"Hear this."`)
}

func leaveMailBehind(s *stage, play string) {
	s.works(play, "w", "Done.")
	s.plays(play, "main", inOrder(pushTask(play, "w"), callTasks("send", "to", "w", "message", "one"), callTasks("run"),
		callTasks("send", "to", "w", "message", "two"), callTasks("receive"),
		callTasks("send", "to", "w", "message", "three")))
	p := s.begin(play)
	s.eventually("two messages", func() bool { return len(s.gotBack(play, "main")) == 4 })
	s.lift(play + "/w")
	s.eventually("the end", func() bool { return slices.Contains(p.texts(), allDone) })
	results := s.gotBack(play, "main")
	if all := letters(s.t, results[4]); len(all) != 1 || all[0].Uncollected != 2 || all[0].Output != "Done." {
		s.t.Errorf("the result is %s", results[4])
	}
	contains(s.t, "a message to one that has finished", results[5], "has finished (ok) and reads no more messages")
}

func areNoticedTogether(s *stage, play string) {
	s.plays(play, "main", func(_ openaitest.Request, results []string) openaitest.Answer {
		if len(results) == 4 {
			return s.held(play+" finished", openaitest.Say(allDone))
		}
		return inOrder(pushTask(play, "a"), pushTask(play, "b"), pushTask(play, "c"), callTasks("run"))(openaitest.Request{},
			results)
	})
	s.plays(play, "notice", inOrder(callTasks("check")))
	p := s.begin(play)
	s.onceFinished(play, 3)
	if n := len(s.requests(play, "notice")); n != 0 {
		s.t.Error("main is noticed in the middle of a turn")
	}
	s.lift(play + " finished")
	s.eventually("two answers", func() bool { return len(p.texts()) == 2 })
	wantLetters(s.t, s.gotBack(play, "notice"), "a ok: This is what a says.", "b ok: This is what b says.",
		"c ok: This is what c says.")
	all := s.requests(play, "notice")
	last := transcript(all[len(all)-1])
	if strings.Count(last, "[notice from ") != 1 || len(all) != 2 {
		s.t.Errorf("main is noticed more than once:\n%s", last)
	}
	contains(s.t, "the notice", heard(all[0]), "[notice from tasks]", "a", "b", "c")
}

// Each result is named once, whenever main is idle.
func areNoticedOnceEach(s *stage, play string) {
	for _, name := range []string{"first", "second"} {
		s.works(play, name, "Done.")
	}
	s.plays(play, "main", inOrder(pushTask(play, "first"), pushTask(play, "second"), callTasks("run")))
	s.plays(play, "notice", inOrder())
	p := s.begin(play)
	for i, name := range []string{"first", "second"} {
		s.eventually("an answer", func() bool { return len(p.texts()) == 1+i })
		s.lift(play + "/" + name)
		s.eventually("a notice", func() bool { return len(s.requests(play, "notice")) == 1+i })
		told := heard(s.requests(play, "notice")[i])
		contains(s.t, "the notice", told, "[notice from tasks]", name)
		if other := []string{"second", "first"}[i]; strings.Contains(told, other) {
			s.t.Errorf("the notice of %s names %s: %s", name, other, told)
		}
	}
	s.eventually("the last answer", func() bool { return len(p.texts()) == 3 })
	contains(s.t, "/check", p.ask("/check"), "first", "second")
}

// TestSubAgentsOfAKernelThatIsKilled: what was queued, runs and lies in inboxes
// is there when the next kernel starts, and what is collected is collected once.
func TestSubAgentsOfAKernelThatIsKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t, strangers())
	s.config(`channels: {telegram_channel: {allow_from: ["*"]}}`)
	s.open()
	c, play := s.private(6401), "Killed"
	again := func() {
		t.Helper()
		s.restart()
		s.kernel = s.control()
		s.state(s.kernel, "tasks", "active")
		s.telegramReady()
	}
	s.works(play, "runs", "Done by runs.")
	for _, name := range []string{"done", "told"} {
		s.gives(c, "/push name="+name+" Do play="+play, "Queued as "+name)
	}
	s.gives(c, "/run", "Started: done, told")
	s.onceFinished(play, 2)
	s.gives(c, "/push name=loud deliver=announce Do play="+play, "Queued as loud")
	s.works(play, "loud", "Loud in play="+play)
	s.plays(play, "result", func(openaitest.Request, []string) openaitest.Answer { return openaitest.Say("I was told.") })
	s.gives(c, "/push name=runs Do play="+play, "Queued as runs")
	s.gives(c, "/push name=later Do play="+play, "Queued as later")
	s.gives(c, "/send later a word", "Sent to later")
	s.gives(c, "/run 2", "Started: loud, runs. Still queued: 1")
	s.onceAtWork(play, 2)
	s.gives(c, "/receive from=told", "told has finished:\n\nThis is what told says.")
	again()
	s.gives(c, "/inbox", "result from done (")
	s.gives(c, "/receive", "done has finished:\n\nThis is what done says.")
	s.gives(c, "/inbox", "The inbox is empty")
	s.gives(c, "/receive from=runs", "Waiting")
	again()
	n := len(c.texts())
	s.lift(play + "/loud")
	c.hears(s.world, n, "I was told.")
	s.lift(play + "/runs")
	c.hears(s.world, n, "runs has finished:\n\nDone by runs.")
	s.onceFinished(play, 5)
	again()
	s.gives(c, "/check", "later has finished:\n\nThis is what later says.")
	s.gives(c, "/check", "Nothing has arrived")
	s.settled()
	all := strings.Join(c.texts(), "\n")
	for _, text := range []string{"This is what done says.", "This is what told says.", "I was told.", "Done by runs.",
		"This is what later says."} {
		if n := strings.Count(all, text); n != 1 {
			t.Errorf("%q was told %d times: %q", text, n, c.texts())
		}
	}
}

// boss is an agent that is not started again when it dies.
const boss = `api: 1
id: boss
name: Boss
version: 1.0.0
description: Has others work.
restart: {policy: never}
agent:
  model: default
  instructions: You are the boss.
  uses_tools: [tasks/*]
`

// TestNoticeOfSubAgentsIsWithdrawn: a notice that has not been read is not read
// any more once what it names is collected.
func TestNoticeOfSubAgentsIsWithdrawn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.config("agents: {default: boss}")
	s.dropIn("boss", "", boss)
	s.dropIn("clerk", "", clerk)
	s.open("boss", "clerk")
	p, play := s.begin("Withdrawn"), "Withdrawn"
	s.eventually("an answer", func() bool { return len(p.texts()) == 1 })
	for _, name := range []string{"a", "b"} {
		s.works(play, name, "Done by "+name+".")
		contains(t, "/push", p.ask("/push agent=clerk name="+name+" Do play="+play), "Queued as "+name)
	}
	contains(t, "/run", p.ask("/run"), "Started: a, b")
	s.onceAtWork(play, 2)
	kill(s.extensionProcess("agent:boss"), syscall.SIGKILL)
	s.state(s.kernel, "boss", "failed")
	s.lift(play + "/a")
	notices := func() int {
		n := 0
		for _, payload := range s.waiting("agent.input.boss") {
			if strings.Contains(payload, "returns the results") {
				n++
			}
		}
		return n
	}
	s.eventually("a notice that waits", func() bool { return notices() == 1 })
	contains(t, "/check", p.ask("/check"), "Done by a.")
	if n := notices(); n != 0 {
		t.Errorf("%d notices wait", n)
	}
	if _, err := s.kernel.Restart(s.ctx(), &adminv1.RestartRequest{Id: "boss"}); err != nil {
		t.Fatal(err)
	}
	s.state(s.kernel, "boss", "active")
	s.lift(play + "/b")
	s.eventually("the notice of the other", func() bool { return len(s.requests(play, "notice")) > 0 })
	s.settled()
	told := s.requests(play, "notice")
	if len(told) != 1 {
		t.Fatalf("the boss was told %d times", len(told))
	}
	if text := transcript(told[0]); strings.Count(text, "[notice from tasks]") != 1 ||
		strings.Contains(heard(told[0]), "inbox: a") {
		t.Errorf("the boss was told:\n%s", text)
	}
	contains(t, "the record", transcript(told[0]), "Done by a.")
	if sessions := list[[]*adminv1.Session](s.world, "sessions", "list", "--agent", "boss"); len(sessions) != 1 {
		t.Errorf("the sessions are %+v", sessions)
	}
}
