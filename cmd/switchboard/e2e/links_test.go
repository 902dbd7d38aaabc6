package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// linkedAgent is an agent that is nothing but a manifest. What it needs for its
// links comes from the links.
const linkedAgent = `api: 1
id: %[1]s
name: The %[1]s
version: 1.0.0
description: Is the %[1]s.
agent:
  model: default
  instructions: You are the %[1]s.
`

// heard is the last thing that an agent was told, by whomever.
func heard(r openaitest.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && !strings.HasPrefix(m.Content.Text, "[context ") {
			return m.Content.Text
		}
	}
	return ""
}

// linkedWorld is chief - lead - community.
func linkedWorld(t *testing.T, community func(openaitest.Request) openaitest.Answer) *world {
	t.Helper()
	w := newWorld(t, withModel)
	w.config(`agents: {default: chief}
links:
  - {from: chief, to: lead}
  - {from: lead, to: community}
`)
	for _, id := range []string{"chief", "lead", "community"} {
		w.dropIn(id, "", fmt.Sprintf(linkedAgent, id))
	}
	send := func(target, message string) openaitest.Answer {
		return openaitest.CallTool("links__send_agent_message", map[string]string{"target": target, "message": message})
	}
	said := func(r openaitest.Request, word string) bool {
		return strings.Contains(strings.Join(r.Results(), " "), word)
	}
	w.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
		"You are the chief.": func(r openaitest.Request) openaitest.Answer {
			switch {
			case said(r, "sent"):
				return openaitest.Say("I have asked.")
			case strings.HasPrefix(heard(r), "[result from lead]"):
				_, word, _ := strings.Cut(heard(r), "The word was ")
				return openaitest.Say("It came back: " + strings.TrimRight(word, "~ \n"))
			}
			return send("lead", "have community pick a random word: "+heard(r))
		},
		"You are the lead.": func(r openaitest.Request) openaitest.Answer {
			switch {
			case said(r, "concluded"):
				return openaitest.Say("Got the word back.")
			case said(r, "sent"):
				return openaitest.Say("NO_REPLY")
			case strings.HasPrefix(heard(r), "[result from community]"):
				_, word, _ := strings.Cut(heard(r), "picked ")
				return openaitest.CallTool("links__conclude_link", map[string]string{"summary": "The word was " +
					strings.TrimRight(word, "~ \n")})
			}
			return send("community", "pick a random word: "+heard(r))
		},
		"You are the community.": func(r openaitest.Request) openaitest.Answer {
			if said(r, "concluded") {
				return openaitest.Say("Done.")
			}
			return community(r)
		},
	}))
	return w
}

func picks(word string) openaitest.Answer {
	return openaitest.CallTool("links__conclude_link", map[string]string{"summary": "picked " + word})
}

// The example of three agents: the word comes back to the conversation, once,
// whichever process dies meanwhile.
func TestNebulaComesBackOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"undisturbed", "the kernel is killed", "the process of the extensions is killed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			w := linkedWorld(t, func(openaitest.Request) openaitest.Answer {
				once.Do(func() { close(reached); <-release })
				return picks("nebula")
			})
			w.start()
			for _, id := range []string{"links", "chief", "lead", "community"} {
				w.state(w.control(), id, "active")
			}
			p := w.attach()
			p.say("which word?")
			<-reached
			switch name {
			case "the kernel is killed":
				w.crash()
				close(release)
				w.start()
				p = w.attach()
			case "the process of the extensions is killed":
				before := w.extensionProcess("links:links")
				kill(before, syscall.SIGKILL)
				w.eventually("another process of links", func() bool { return w.extensionProcess("links:links").pid != before.pid })
				close(release)
				p = w.attach() // the channel was in it, too
			default:
				close(release)
			}
			w.eventually("the word", func() bool {
				return strings.Contains(strings.Join(p.texts(), "\n"), "It came back: nebula")
			})
			w.settled()
			if n := strings.Count(strings.Join(p.texts(), "\n"), "nebula"); n != 1 {
				t.Errorf("the terminal shows %q", p.texts())
			}
			if dead := w.dead(); len(dead) != 0 {
				t.Errorf("dead letters: %q", dead)
			}
			sides := 0
			for _, s := range list[[]*adminv1.Session](w, "sessions", "list") {
				if !strings.HasPrefix(s.Key, "link:") || s.Rows == 0 { // it was not used
					continue
				}
				sides++
				contains(t, s.Key, w.must("sessions", "show", s.Id), "pick a random word", "nebula", "is over")
			}
			if sides != 4 {
				t.Errorf("%d sides of 2 links", sides)
			}
			contains(t, "the list", w.must("links", "list", "--all"), "chief - lead", "lead - community", "concluded", "ready")
			var found struct {
				Exchanges []struct{ ID, Outcome string }
			}
			if err := json.Unmarshal([]byte(w.must("links", "list", "--all", "--json")), &found); err != nil ||
				len(found.Exchanges) != 2 {
				t.Fatalf("%+v, %v", found, err)
			}
			for _, x := range found.Exchanges {
				contains(t, x.ID, w.must("links", "show", x.ID), "pick a random word", "nebula", "concluded by")
			}
			if name == "undisturbed" {
				root := w.query(`SELECT seq FROM event WHERE topic = 'user.message'`)[0]
				contains(t, "the trace", w.must("trace", "e"+root), "lead gets a message from chief on x",
					"community gets a message from lead on x", "chief gets the result of lead", "links/send_agent_message",
					"links/conclude_link")
			}
			if channels := w.must("channels", "list"); strings.Contains(channels, "link") {
				t.Errorf("links are channels:\n%s", channels)
			}
		})
	}
}

// An agent sees on a link the exchange that it is about, and what came of those
// that are over.
func TestAnAgentSeesOneExchangeOfALink(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	w := linkedWorld(t, func(r openaitest.Request) openaitest.Answer {
		var all []string
		for _, m := range r.Messages[1:] {
			all = append(all, m.Content.Text)
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, strings.Join(all, "\n"))
		return picks([]string{"apple", "pear"}[len(seen)-1])
	})
	w.start()
	for _, id := range []string{"links", "chief", "lead", "community"} {
		w.state(w.control(), id, "active")
	}
	p := w.attach()
	p.say("from-anna")
	w.eventually("the first word", func() bool {
		return strings.Contains(strings.Join(p.texts(), "\n"), "It came back: apple")
	})
	p.say("from-bert")
	w.eventually("the second word", func() bool {
		return strings.Contains(strings.Join(p.texts(), "\n"), "It came back: pear")
	})
	mu.Lock()
	defer mu.Unlock()
	contains(t, "the second exchange", seen[1], "from-bert", "picked apple", "conclude_link")
	if strings.Contains(seen[1], "from-anna") {
		t.Errorf("the first exchange is seen in the second:\n%s", seen[1])
	}
}

func TestALinkThatCannotBeInForceIsReportedWithItsLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config(`agents: {enabled: [orchestrator, echo]}
links:
  - {from: orchestrator, to: nobody}
  - {from: chat, to: orchestrator}
  - {from: orchestrator, to: echo}
`)
	w.start()
	w.state(w.control(), "links", "active")
	problems := []string{
		`config.yaml:3:30: links[0].to: there is no agent "nobody"`,
		`config.yaml:4:12: links[1].from: the agent "chat" is not in agents.enabled`,
	}
	doctor, _, _ := w.cli("doctor")
	for _, problem := range problems {
		contains(t, "the start", w.kernel.output.String(), problem)
		contains(t, "status", w.must("status"), problem)
		contains(t, "doctor", doctor, problem)
		contains(t, "links list", w.must("links", "list"), problem)
	}
	if got := w.attach().ask("/status"); got == "" {
		t.Error("nobody answers")
	}
	keys := map[string]bool{}
	w.eventually("the sessions of the link", func() bool {
		for _, s := range list[[]*adminv1.Session](w, "sessions", "list") {
			keys[s.Key] = true
		}
		return keys["link:orchestrator:echo"] && keys["link:echo:orchestrator"]
	})
	// An agent that is enabled later is linked then.
	w.config(`agents: {enabled: [orchestrator, chat, echo]}
links:
  - {from: chat, to: orchestrator}
`)
	w.eventually("the other link", func() bool {
		for _, s := range list[[]*adminv1.Session](w, "sessions", "list") {
			keys[s.Key] = true
		}
		return keys["link:chat:orchestrator"] && keys["link:orchestrator:chat"]
	})
}

// An exchange ends, whatever the agents do, and its conversation gets a result.
func TestExchangesEndByThemselves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		link  string
		lead  openaitest.Answer
		words string
	}{
		"they thank each other": {"{from: chief, to: lead, max_messages: 6}", openaitest.Say("Thank you!"),
			"6 messages are used up"},
		"nothing is said": {"{from: chief, to: lead, idle: 1s}", openaitest.Say("NO_REPLY"),
			"no message arrived for too long"},
		"the model is gone": {"{from: chief, to: lead}", openaitest.Fail(400, "no"), "lead failed"},
		"a task":            {"{from: chief, to: lead, mode: task}", openaitest.Say("It is nebula."), "It is nebula."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withModel)
			w.config("agents: {default: chief}\nlinks: [" + c.link + "]\n")
			for _, id := range []string{"chief", "lead"} {
				w.dropIn(id, "", fmt.Sprintf(linkedAgent, id))
			}
			w.model.Handle(by(map[string]func(openaitest.Request) openaitest.Answer{
				"You are the lead.": func(openaitest.Request) openaitest.Answer { return c.lead },
				"You are the chief.": func(r openaitest.Request) openaitest.Answer {
					switch {
					case len(r.Results()) > 0:
						return openaitest.Say("I have asked.")
					case strings.HasPrefix(heard(r), "[message from lead]"):
						return openaitest.Say("No, thank you!")
					case strings.HasPrefix(heard(r), "[result from lead]"):
						return openaitest.Say("The end: " + heard(r))
					}
					return openaitest.CallTool("links__send_agent_message",
						map[string]string{"target": "lead", "message": "thank you"})
				},
			}))
			w.start()
			for _, id := range []string{"links", "chief", "lead"} {
				w.state(w.control(), id, "active")
			}
			p := w.attach()
			p.say("thank the lead")
			p.hearsLike("The end: ")
			contains(t, "the result", strings.Join(p.texts(), "\n"), c.words)
			w.settled()
			if n := strings.Count(strings.Join(p.texts(), "\n"), "The end:"); n != 1 {
				t.Errorf("the terminal shows %q", p.texts())
			}
			contains(t, "the list", w.must("links", "list"), "No exchange is open.")
		})
	}
}

// Four conversations ask at once, and something is killed again and again: each
// exchange is concluded, and each conversation has its own result, once.
func TestLinksSurviveKills(t *testing.T) {
	t.Parallel()
	w := linkedWorld(t, func(r openaitest.Request) openaitest.Answer {
		_, number, _ := strings.Cut(heard(r), "word-")
		return picks("word-" + number[:min(1, len(number))])
	})
	w.start()
	for _, id := range []string{"links", "chief", "lead", "community"} {
		w.state(w.control(), id, "active")
	}
	const n = 4
	for i := range n {
		w.attach(wire.Frame{New: true}).say(fmt.Sprintf("word-%d", i))
	}
	type exchanges struct {
		Exchanges []struct {
			ID, Outcome string
			Over        bool
		}
	}
	found := func() (all exchanges) {
		out, _, code := w.cli("links", "list", "--all", "--json")
		if code != 0 {
			return all
		}
		_ = json.Unmarshal([]byte(out), &all)
		return all
	}
	over := func() bool {
		all := found()
		for _, x := range all.Exchanges {
			if !x.Over {
				return false
			}
		}
		return len(all.Exchanges) == 2*n
	}
	for i := range 5 {
		want := w.model.Total() + 3
		w.eventually("something to happen", func() bool { return w.model.Total() >= want || over() })
		if i%2 == 0 {
			w.crash()
			w.start()
			continue
		}
		kill(w.extensionProcess("links:links"), syscall.SIGKILL)
	}
	w.eventually("the end of all exchanges", over)
	w.eventually("all agents to rest", func() bool { // no terminal is there that could show what they say
		return !slices.ContainsFunc(list[[]*adminv1.Session](w, "sessions", "list"),
			func(s *adminv1.Session) bool { return s.State != "idle" })
	})
	for _, x := range found().Exchanges {
		if x.Outcome != "concluded" {
			t.Errorf("%s ended as %s", x.ID, x.Outcome)
		}
	}
	told := map[string]int{}
	for _, s := range list[[]*adminv1.Session](w, "sessions", "list", "--agent", "chief") {
		if strings.HasPrefix(s.Key, "link:") {
			continue
		}
		shown := w.must("sessions", "show", s.Id)
		for i := range n {
			word := fmt.Sprintf("word-%d", i)
			if results := strings.Count(shown, "The word was "+word); results > 0 {
				if told[word] += results; !strings.Contains(shown, "\n  "+word+"\n") {
					t.Errorf("%s came to another conversation:\n%s", word, shown)
				}
			}
		}
	}
	for i := range n {
		if word := fmt.Sprintf("word-%d", i); told[word] != 1 {
			t.Errorf("%s came back %d times", word, told[word])
		}
	}
	if dead := w.dead(); len(dead) != 0 {
		t.Errorf("dead letters: %q", dead)
	}
}
