package e2e

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// People and places of the tests, as Discord numbers them.
const (
	annaDiscord  = "1001" // the owner
	borisDiscord = "1002" // admitted as well
	discordHall  = "4001"
	discordNook  = "4002" // a thread of it
)

// discordWorld is a world with Discord.
type discordWorld struct {
	*world
	discord *discordtest.Server
}

// newDiscordWorld makes a home with Discord, where Anna and Boris are admitted by name,
// and with a model.
func newDiscordWorld(t *testing.T, opts ...discordtest.Option) *discordWorld {
	t.Helper()
	s := discordtest.Start(t, opts...)
	s.AddChannel(discordtest.Channel{ID: discordHall, Guild: "3001", Name: "hall"})
	s.AddChannel(discordtest.Channel{ID: discordNook, Type: discordtest.TypeThread, Guild: "3001", Name: "nook", Parent: discordHall})
	w := &discordWorld{newWorld(t, withModel), s}
	w.env["DISCORD_BOT_TOKEN"], w.env["DISCORD_API_URL"] = s.Token(), s.URL()
	w.admits("")
	w.model.Handle(echo)
	return w
}

// admits writes a configuration in which Anna and Boris are admitted.
func (w *discordWorld) admits(more string) {
	w.t.Helper()
	w.config(fmt.Sprintf("channels: {discord_channel: {allow_from: [%q, %q]}}\n%s", annaDiscord, borisDiscord, more))
}

// ready waits until the channel of the running kernel is ready.
func (w *discordWorld) ready() {
	w.t.Helper()
	w.eventually("Discord to be ready", func() bool {
		select {
		case <-w.kernel.ended:
			return true
		default:
		}
		c, err := admin.Dial(w.ctx(), w.file("run", contract.ControlSocket), w.file(contract.ControlToken))
		if err != nil {
			return false
		}
		defer c.Close()
		known, err := c.Directory(w.ctx(), &adminv1.DirectoryRequest{})
		if err != nil {
			return false
		}
		for _, ch := range admin.Channels(known) {
			if ch.ID == "discord_channel" {
				return ch.Status == "ready"
			}
		}
		return false
	})
}

// begin starts the kernel, and waits for the channel.
func (w *discordWorld) begin() { w.t.Helper(); w.start(); w.ready() }

// told waits for the nth message of the bot in a channel.
func (w *discordWorld) told(channel string, n int) discordtest.Message {
	w.t.Helper()
	m, err := w.discord.WaitMessage(w.ctx(), channel, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// texts returns what the bot has said in a channel.
func (w *discordWorld) texts(channel string) (all []string) {
	for _, m := range w.discord.Messages(channel) {
		all = append(all, m.Text)
	}
	return all
}

// The kernel is killed at each commit of a message and its answer, before and after it is
// on disk. The answer comes once, without a mark: Discord drops the repetition.
func TestDiscordAnswersOnceWhereverTheKernelDies(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before 1", "after 1", "after 2", "after 3", "before 4", "after 4", "before 5", "after 5"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newDiscordWorld(t)
			w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"] = point, "user.message"
			w.begin()
			w.discord.Say(annaDiscord, "<one>")
			w.eventually("the answer, or the death of the kernel", func() bool {
				select {
				case <-w.kernel.ended:
					return true
				default:
					return len(w.discord.Messages(discordtest.DM(annaDiscord))) > 0 && len(w.pending()) == 0
				}
			})
			delete(w.env, "SWITCHBOARD_CRASH")
			select {
			case <-w.kernel.ended:
				w.begin()
			default:
			}
			w.told(discordtest.DM(annaDiscord), 1)
			w.settled()
			if got := w.texts(discordtest.DM(annaDiscord)); len(got) != 1 || got[0] != "You said <one>" || w.count("user.message") != 1 {
				t.Errorf("Anna is told %q, and %d messages were accepted", got, w.count("user.message"))
			}
		})
	}
}

// What people write while the kernel is away is answered, whether Discord keeps the
// session or ends it, and so is what they write while sessions come and go.
func TestDiscordSessionsLoseNothing(t *testing.T) {
	t.Parallel()
	w := newDiscordWorld(t)
	w.begin()
	dm := discordtest.DM(annaDiscord)
	w.discord.Say(annaDiscord, "<one>")
	w.told(dm, 1)
	w.crash()
	w.discord.Say(annaDiscord, "<two>")
	w.begin()
	w.told(dm, 2)
	w.stop()
	w.discord.ForgetSessions()
	w.discord.Miss(discordtest.Incoming{From: annaDiscord, Text: "<three>"})
	w.begin()
	w.told(dm, 3)
	w.discord.Reconnect()
	w.discord.Say(annaDiscord, "<four>")
	w.told(dm, 4)
	n := w.discord.Identifies()
	w.discord.Miss(discordtest.Incoming{From: annaDiscord, Text: "<five>"})
	w.discord.InvalidateSessions()
	w.told(dm, 5)
	w.settled()
	want := "You said <one>|You said <two>|You said <three>|You said <four>|You said <five>"
	if got := strings.Join(w.texts(dm), "|"); got != want || w.count("user.message") != 5 {
		t.Errorf("Anna is told %q", got)
	}
	if w.discord.Identifies() != n+1 {
		t.Errorf("%d sessions after %d", w.discord.Identifies(), n)
	}
}

func TestDiscordTokenIsReplacedWhileRunning(t *testing.T) {
	t.Parallel()
	w := newDiscordWorld(t)
	delete(w.env, "DISCORD_BOT_TOKEN")
	secret := func(token string) { w.write("DISCORD_BOT_TOKEN="+token+"\n", 0o600, "secrets.env") }
	w.start() // not a process more without a token
	secret(w.discord.Token())
	w.ready()
	dm := discordtest.DM(annaDiscord)
	w.discord.Say(annaDiscord, "<one>")
	w.told(dm, 1)
	w.discord.Revoke(discordtest.TokenOf("second"))
	w.discord.Say(annaDiscord, "<two>")
	c := w.control()
	w.eventually("the channel to complain about its token", func() bool {
		e := w.extension(c, "discord_channel")
		return e.Readiness == "degraded" && strings.Contains(e.Detail, "token")
	})
	secret(w.discord.Token())
	if got := w.told(dm, 2).Text; got != "You said <two>" {
		t.Errorf("after the new token: %q", got)
	}
	w.settled()
	if text := w.log("discord_channel") + w.kernel.output.String(); strings.Contains(text, discordtest.DefaultToken) {
		t.Error("the token is in a log")
	}
}

// In a server the assistant answers mentions, in the channel and in a thread, each a
// conversation of its own.
func TestDiscordServerAndThread(t *testing.T) {
	t.Parallel()
	w := newDiscordWorld(t)
	w.begin()
	w.discord.Inject(discordtest.Incoming{From: annaDiscord, Channel: discordHall, Text: "<among us>"})
	asked := w.discord.Inject(discordtest.Incoming{From: annaDiscord, Channel: discordHall, Text: discordtest.Mention + " <one>"})
	contains(t, "the first message", w.told(discordHall, 1).Text, "/household")
	if m := w.told(discordHall, 2); m.Text != "You said <one>" || m.ReplyTo != asked.ID {
		t.Errorf("in the channel: %+v", m)
	}
	w.discord.Inject(discordtest.Incoming{From: borisDiscord, Channel: discordNook, Text: discordtest.Mention + " <two>"})
	if m := w.told(discordNook, 1); m.Text != "You said <two>" {
		t.Errorf("in the thread: %+v", m)
	}
	w.settled()
	if n := len(w.discord.Messages(discordHall)); n != 2 {
		t.Errorf("%d messages in the channel", n)
	}
	if last := transcript(w.model.Requests()[1]); strings.Contains(last, "<one>") {
		t.Errorf("the thread knows what was said in the channel:\n%s", last)
	}
}

// A button is pressed twice, and the kernel dies at a commit of the press: the tool runs
// at most once, and the buttons are gone.
func TestDiscordButtonsAreAppliedOnce(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "before 1", "after 1", "after 2"} {
		t.Run("crash "+point, func(t *testing.T) {
			t.Parallel()
			w := newDiscordWorld(t)
			w.admits("agents: {default: chief}\napprove: [lab/*]")
			w.dropIn("chief", "", chief)
			w.probe("lab", "tools", "provides: {tools: true}")
			w.begin()
			w.state(w.control(), "lab", "active")
			w.release()
			w.model.Handle(func(r openaitest.Request) openaitest.Answer {
				if len(r.Results()) == 0 {
					return openaitest.CallTool("lab__slow", `{"n": 1}`)
				}
				return openaitest.Say("It is done.")
			})
			dm := discordtest.DM(annaDiscord)
			w.discord.Say(annaDiscord, "do it")
			asked := w.told(dm, 1)
			if len(asked.Buttons) < 2 {
				t.Fatalf("asked %+v", asked)
			}
			w.settledBut("agent.input.chief")
			if point != "" {
				w.crash()
				w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"] = point, "user.message"
				w.begin()
			}
			w.discord.PressID(dm, asked.ID, annaDiscord, asked.Buttons[0].ID)
			w.discord.PressID(dm, asked.ID, annaDiscord, asked.Buttons[0].ID)
			if point != "" {
				w.eventually("the death of the kernel", func() bool {
					select {
					case <-w.kernel.ended:
						return true
					default:
						return false
					}
				})
				delete(w.env, "SWITCHBOARD_CRASH")
				w.begin()
			}
			w.eventually("the answer", func() bool { return strings.Contains(strings.Join(w.texts(dm), "|"), "It is done.") })
			w.eventually("the buttons to go", func() bool { return len(w.discord.Messages(dm)[0].Buttons) == 0 })
			w.settled()
			if n := strings.Count(w.text("data", "lab", "calls"), "slow"); n > 1 || n == 0 && point == "" {
				t.Errorf("the tool ran %d times", n)
			}
			if n := strings.Count(strings.Join(w.texts(dm), "|"), "It is done."); n != 1 {
				t.Errorf("Anna is told %q", w.texts(dm))
			}
		})
	}
}

// A photo comes in, and the model sends it back; the answer to that request is lost.
func TestDiscordFilesBothWays(t *testing.T) {
	t.Parallel()
	w := newDiscordWorld(t)
	file := discordtest.File{Name: "cat.jpg", MIME: "image/jpeg", Data: []byte("\xff\xd8\xff\xe0a cat")}
	reference := fmt.Sprintf("[image %.3x: cat.jpg]", sha256.Sum256(file.Data))
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if len(r.Results()) > 0 {
			return openaitest.Say("done")
		}
		return openaitest.CallTool(sendTool, map[string]any{
			"channel_id": "discord_channel", "text": "here it is", "attachments": []string{reference},
		})
	})
	w.begin()
	w.discord.Fail("createMessage", 1, discordtest.Fault{Break: discordtest.BreakAfter})
	w.discord.Inject(discordtest.Incoming{From: annaDiscord, Text: "send it back", Files: []discordtest.File{file}})
	dm := discordtest.DM(annaDiscord)
	w.told(dm, 2)
	w.settled()
	contains(t, "the request", transcript(w.model.Requests()[0]), "send it back\n"+reference)
	photos := 0
	for _, m := range w.discord.Messages(dm) {
		if len(m.Files) > 0 {
			photos++
			if m.Text != "here it is" || string(m.Files[0].Data) != string(file.Data) || m.Files[0].Name != "cat.jpg" {
				t.Errorf("sent %+v", m)
			}
		}
	}
	if photos != 1 {
		t.Errorf("the photo was sent %d times: %q", photos, w.texts(dm))
	}
}

func TestDiscordSetup(t *testing.T) {
	t.Parallel()
	w := newDiscordWorld(t, discordtest.WithoutContentIntent())
	token := w.env["DISCORD_BOT_TOKEN"]
	delete(w.env, "DISCORD_BOT_TOKEN")
	w.write(token+"\n", 0o600, "token.txt")
	contains(t, "setup", w.must("setup", "--yes", "--discord-token-file", w.file("token.txt")),
		"✓ The Discord bot is @"+discordtest.BotName, "https://discord.com/oauth2/authorize?client_id="+discordtest.BotID,
		"Turn on Message Content Intent", "Saved: Discord.")
	w.begin()
	if e := w.extension(w.control(), "discord_channel"); !strings.Contains(e.Detail, "Message Content Intent") {
		t.Errorf("the readiness is %q", e.Detail)
	}
	w.write(discordtest.TokenOf("wrong"), 0o600, "token.txt")
	out, complaints, code := w.cli("setup", "--yes", "--discord-token-file", w.file("token.txt"))
	if code != 1 || !strings.Contains(out+complaints, "the token is unknown to Discord") {
		t.Errorf("with a wrong token: exit status %d, %s%s", code, out, complaints)
	}
}

// A stranger is paired by a code, as on every channel.
func TestDiscordPairing(t *testing.T) {
	t.Parallel()
	w := newDiscordWorld(t)
	w.config("")
	w.begin()
	dm := discordtest.DM("1003")
	w.discord.Say("1003", "hello")
	code := pairingCode.FindStringSubmatch(w.told(dm, 1).Text)
	if code == nil {
		t.Fatalf("there is no code in %q", w.texts(dm))
	}
	w.must("pairing", "approve", code[1])
	contains(t, "the greeting", w.told(dm, 2).Text, "You are connected")
	w.discord.Command("", "1003", "status", "")
	contains(t, "the answer to /status", w.told(dm, 3).Text, "orchestrator")
	contains(t, "the list of commands", w.told(dm, 3).Text, "Discord")
	if len(w.discord.Commands()) == 0 {
		t.Error("no slash commands are registered")
	}
}
