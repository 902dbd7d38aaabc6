package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

const labCommands = "provides: {tools: true, commands: [shout, slow, look]}"

// chatPlace is somewhere where a person talks to the assistant.
type chatPlace struct {
	name  string
	says  func(text string)
	texts func() []string
}

// hears waits for the parts in what came after the first n texts.
func (c chatPlace) hears(w *world, n int, parts ...string) {
	w.t.Helper()
	text := ""
	if !w.waitFor(func() bool {
		all := c.texts()
		text = strings.Join(all[min(n, len(all)):], "\n")
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
	}) {
		w.t.Fatalf("on the %s there was not %q, but:\n%s", c.name, parts, text)
	}
}

// asks says something and waits for the answer.
func (c chatPlace) asks(w *world, text string, parts ...string) {
	w.t.Helper()
	n := len(c.texts())
	c.says(text)
	c.hears(w, n, parts...)
}

// places are a terminal, a private chat, a group, and the channel of a third
// party, where each line of a text counts as one.
func (w *world) places() []chatPlace {
	w.t.Helper()
	p := w.attach()
	bot := "@" + w.telegram.Bot().Username
	return []chatPlace{
		{"terminal", p.say, p.texts},
		{"private", func(text string) { w.telegram.Say(anna, text) }, func() []string { return w.texts(anna) }},
		{"group", func(text string) {
			if name, rest, _ := strings.Cut(text, " "); strings.HasPrefix(name, "/") {
				text = strings.TrimSpace(name + bot + " " + rest)
			} else {
				text = bot + " " + text
			}
			w.telegram.Inject(telegramtest.Incoming{
				Chat: telegramtest.Chat{ID: group, Type: telegramtest.Group, Title: "Family"},
				From: telegramtest.User{ID: boris, FirstName: "Boris"}, Text: text,
			})
		}, func() []string { return w.texts(group) }},
		{"file", func(text string) { w.request("file_channel", "box/in", text) },
			func() []string { return w.lines("file_channel", "box", "out") }},
	}
}

// everywhere is a home with all kinds of places. What begins with "work" keeps
// the model busy until the gate is closed.
func everywhere(t *testing.T) (w *world, gate chan struct{}) {
	t.Helper()
	w = newWorld(t, withTelegram(), withModel)
	w.config(fmt.Sprintf(`channels: {telegram_channel: {allow_from: ["%d", "%d"]}, file_channel: {allow_from: [me]}}`,
		anna, boris))
	gate = make(chan struct{})
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		heard := token.FindString(r.Messages[len(r.Messages)-1].Content.Text)
		a := openaitest.Say("You said " + heard)
		if strings.HasPrefix(heard, "<work") {
			a.Gate = gate
		}
		return a
	})
	w.fileChannel()
	w.probe("lab", "commands", labCommands)
	w.start()
	w.telegramReady()
	w.state(w.control(), "lab", "active")
	w.state(w.control(), "file_channel", "active")
	return w, gate
}

func TestCommandsAreAnsweredDuringARunningTurnOnEveryChannel(t *testing.T) {
	t.Parallel()
	w, gate := everywhere(t)
	places := w.places()
	for i, c := range places {
		c.says("<work_" + c.name + ">")
		w.eventually("a turn on the "+c.name, func() bool { return w.model.Total() == i+1 })
	}
	for _, c := range places {
		for _, tt := range []struct {
			command string
			told    []string
		}{
			{"/shout hey from the " + c.name, []string{"HEY FROM THE " + strings.ToUpper(c.name) + "!"}},
			{"/shout", []string{"Usage: /shout TEXT"}},
			{"/schedules", []string{"Nothing is scheduled"}},
			{"/status", []string{"Telegram: ready"}},
			{"/help", []string{"/stop", "/shout", "/schedules"}},
			{"/help shout", []string{"/shout", "Shouts."}},
			{"/agent", []string{"orchestrator answers here"}},
			{"/agent nobody", []string{`no agent "nobody"`}},
			{"/nonsense", []string{"no command /nonsense"}},
		} {
			c.asks(w, tt.command, tt.told...)
		}
	}
	if n := w.model.Total(); n != len(places) {
		t.Errorf("the model was asked %d times", n)
	}
	// Later inputs are kept when only the answer is stopped, and the stopped call has no
	// effect.
	for _, c := range places {
		c.says("<behind_" + c.name + ">")
	}
	w.eventually("what waits",
		func() bool { return w.query(`SELECT count(*) FROM event WHERE topic LIKE 'agent.input.%'`)[0] == "8" })
	for _, c := range places {
		c.asks(w, "/stop answer", "Stopped")
		c.hears(w, 0, "You said", "<behind_"+c.name+">")
	}
	close(gate)
	for _, c := range places {
		c.asks(w, "/stop", "Nothing is running here")
		c.asks(w, "/new", "New conversation")
		c.asks(w, "<after_"+c.name+">", "You said <after_"+c.name+">")
		if last := transcript(w.model.Requests()[w.model.Total()-1]); strings.Contains(last, "<behind") {
			t.Errorf("on the %s the new conversation knows of the old one:\n%s", c.name, last)
		}
		c.asks(w, "/agent echo", "echo answers here")
		c.asks(w, "<parrot>", "<parrot>")
	}
	w.settled()
	for _, c := range places {
		if all := strings.Join(c.texts(), "\n"); strings.Contains(all, "<work") {
			t.Errorf("on the %s what was stopped is answered:\n%s", c.name, all)
		}
	}
}

// The model asks for tools in a turn that is stopped: none of them has an
// effect, and the next request is one that the model takes.
func TestStopAndNewWhileAToolRunsOnBothChannels(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"/stop", "/new"} {
		for _, channel := range []string{"terminal", "private"} {
			t.Run(command[1:]+"_"+channel, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, withTelegram(), withModel)
				w.config(fmt.Sprintf(`{agents: {default: chief}, channels: {telegram_channel: {allow_from: ["%d"]}}}`, anna))
				w.dropIn("chief", "", chief)
				w.probe("lab", "tools", "provides: {tools: true}")
				w.start()
				w.telegramReady()
				w.state(w.control(), "lab", "active")
				places := w.places()[:2]
				c := places[slices.IndexFunc(places, func(c chatPlace) bool { return c.name == channel })]
				w.model.Queue(openaitest.Answer{Calls: []openaitest.Call{
					openaitest.NewCall("lab__slow", map[string]int{"n": 1}),
					openaitest.NewCall(sendTool, map[string]string{"channel_id": "cli_channel", "text": "<sent>"}),
				}})
				c.says("do it")
				w.line(1, "lab", "calls")
				c.asks(w, command, map[string]string{"/stop": "Stopped", "/new": "New conversation"}[command])
				w.release()
				w.model.Queue(openaitest.Say("Something else."))
				c.asks(w, "do something else", "Something else.")
				w.settled()
				for _, c := range places {
					if all := strings.Join(c.texts(), "\n"); strings.Contains(all, "<sent>") || strings.Contains(all, "slow") {
						t.Errorf("the %s shows what the stopped turn did: %s", c.name, all)
					}
				}
				if n := w.model.Total(); n != 2 {
					t.Errorf("the model was asked %d times", n)
				}
			})
		}
	}
}

func TestCommandsOfStrangersAreNotRead(t *testing.T) {
	t.Parallel()
	w, gate := everywhere(t)
	close(gate)
	w.telegram.Say(clara, "/shout pay me")
	w.told(clara, 1)
	w.read(w.telegram.Inject(telegramtest.Incoming{
		Chat: telegramtest.Chat{ID: group, Type: telegramtest.Group, Title: "Family"},
		From: telegramtest.User{ID: clara, FirstName: "Clara"},
		Text: "/shout@" + w.telegram.Bot().Username + " pay me",
	}))
	w.places()[0].asks(w, "/shout hey", "HEY!")
	w.settled()
	if calls := w.lines("lab", "calls"); len(calls) != 1 || len(w.texts(group)) != 0 ||
		strings.Contains(w.texts(clara)[0], "PAY") {
		t.Errorf("the command ran: %q; the group has %q, she has %q", calls, w.texts(group), w.texts(clara))
	}
}

// A command is answered once, whichever process dies while it runs; one that must not run
// twice does not.
func TestCommandSurvivesTheDeathOfTheKernelAndOfItsExtension(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"kernel", "extension"} {
		for _, tt := range []struct {
			command, told string
			runs          int
		}{
			{"/look", "the result of look", 2},
			{"/slow 1", "/slow was interrupted, so I don't know", 1},
		} {
			t.Run(dies+tt.command[:5], func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, withTelegram())
				w.probe("lab", "commands", labCommands+"\nrestart: {backoff: 100ms}")
				w.start()
				w.telegramReady()
				w.state(w.control(), "lab", "active")
				w.telegram.Say(anna, tt.command)
				w.line(1, "lab", "calls")
				if dies == "kernel" {
					w.crash()
					w.release()
					w.start()
				} else {
					kill(w.extensionProcess("probe lab"), syscall.SIGKILL)
					w.release()
				}
				contains(t, "the answer", w.told(anna, 1).Text, tt.told)
				w.settled()
				if texts, calls := w.texts(anna), w.lines("lab", "calls"); len(texts) != 1 || len(calls) != tt.runs {
					t.Errorf("Telegram has %q; it ran %d times", texts, len(calls))
				}
			})
		}
	}
}

// Many commands in several chats at once, while everything dies: each is
// answered where it was given, once or visibly again.
func TestCommandsInSeveralChatsSurviveKills(t *testing.T) {
	t.Parallel()
	w, gate := everywhere(t)
	close(gate)
	const n = 12
	for i := range n {
		for _, chat := range []int64{anna, boris} {
			w.telegram.Say(chat, fmt.Sprintf("/shout <%d of %d>", i, chat))
		}
		w.request("file_channel", "box/in", fmt.Sprintf("/shout <%d of file>", i))
		switch i {
		case 3:
			kill(w.extensionProcess("probe lab"), syscall.SIGKILL)
		case 7:
			w.eventually("some answers", func() bool { return len(w.texts(anna)) > 2 })
			w.eventually("what was written to the file", func() bool { // a fifo keeps nothing that was read
				return len(w.query(`SELECT seq FROM event WHERE topic = 'user.message' AND source = 'file_channel'`)) == i+1
			})
			w.restart()
		}
	}
	chats := map[string]func() []string{
		fmt.Sprint(anna):  func() []string { return w.texts(anna) },
		fmt.Sprint(boris): func() []string { return w.texts(boris) },
		"file":            func() []string { return w.lines("file_channel", "box", "out") },
	}
	for name, texts := range chats {
		for i := range n {
			answer := strings.ToUpper(fmt.Sprintf("<%d of %s>!", i, name))
			w.eventually("the answer "+answer, func() bool {
				return slices.ContainsFunc(texts(), func(text string) bool { return strings.Contains(text, answer) })
			})
		}
	}
	w.settled()
	for name, texts := range chats {
		seen := map[string]bool{}
		for _, text := range texts() {
			if strings.Contains(text, "OF") && !strings.Contains(text, strings.ToUpper(" of "+name+">")) {
				t.Errorf("%s got the answer of another chat: %q", name, text)
			}
			if seen[text] && !strings.HasPrefix(text, strings.TrimSpace(contract.RepeatMark)) {
				t.Errorf("%s got %q twice", name, text)
			}
			seen[text] = strings.Contains(text, "OF")
		}
	}
}

func TestCommandsThatAnExtensionCannotHaveAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("greedy", "command", "provides: {tools: true, commands: [stop]}\n"+quickly)
	w.probe("silent", "command", "provides: {tools: true}\n"+quickly)
	w.start()
	c := w.control()
	for id, parts := range map[string][]string{
		"greedy": {"/stop is a command of the kernel"},
		"silent": {"/shout", `the manifest lacks`, "provides: {commands: [shout]}"},
	} {
		w.eventually("the refusal of "+id, func() bool {
			e := w.extension(c, id)
			text := e.Detail + e.LastError
			return e.State != "active" && !slices.ContainsFunc(parts,
				func(part string) bool { return !strings.Contains(text, part) })
		})
	}
	p := w.attach()
	contains(t, "the answer", p.ask("/shout hey"), "no command /shout")
	contains(t, "the answer", p.ask("/stop"), "Nothing is running here")
}
