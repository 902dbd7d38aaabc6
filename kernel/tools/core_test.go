package tools_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/coretool"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// sent is the answer for one channel.
type sent struct {
	Status, Detail string
	Channel        string `json:"channel_id"`
}

func read[T any](t *testing.T, r *extensionv1.CallResult) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.GetContent()), &v); err != nil {
		t.Fatalf("the result %q: %v", r.GetContent(), err)
	}
	return v
}

// sends begins a call of send_to_channel and returns what waits for its result.
func sends(turn *kerneltest.Turn, channel, text string) func() (*extensionv1.CallResult, error) {
	arguments, _ := json.Marshal(map[string]string{"channel_id": channel, "text": text})
	return turn.Calls(turn.Asks([2]string{"core/send_to_channel", string(arguments)})[0])
}

func TestListChannels(t *testing.T) {
	play(t, func(w *world) {
		cli := w.Channel("cli")
		cli.IsUnconfigured()
		w.telegram.Change(func(c *directory.Channel) { c.MaxLength = 4096 })
		w.Know(func(s *directory.Snapshot) { s.DefaultChannel = "telegram" })
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"session.ensure"}})
		tasks.Must("", kerneltest.Ensure("orchestrator", "task:1"), kerneltest.Ensure("orchestrator", "link:a:b"))
		got := w.hears().Uses("core/list_channels", map[string]any{}).GetContent()
		want := `{"channels":[` +
			`{"id":"cli","name":"Cli","readiness":"unconfigured","detail":"set TOKEN in the environment"},` +
			`{"id":"telegram","name":"Telegram","readiness":"ready","max_length":4096,"default":true}]}`
		if got != want {
			t.Errorf("the channels are\n%s, want\n%s", got, want)
		}
	})
}

func TestListAgents(t *testing.T) {
	play(t, func(w *world) {
		w.Agent("helper")
		w.Agent("hidden")
		w.Know(func(s *directory.Snapshot) {
			s.EnabledAgents = []string{"orchestrator", "helper"}
			s.Agents[0].Description = "helps"
			s.Agents[2].State = "failed"
		})
		got := w.hears().Uses("core/list_agents", map[string]any{}).GetContent()
		if want := `{"agents":[{"id":"helper","name":"helper","description":"helps","can_be_given_tasks":true},` +
			`{"id":"orchestrator","name":"orchestrator","can_be_given_tasks":false}]}`; got != want {
			t.Errorf("the agents are %s, want %s", got, want)
		}
	})
}

func TestCoreToolsAreDescribed(t *testing.T) {
	t.Parallel()
	var names []string
	for _, tool := range coretool.All() {
		if _, err := coretool.Compile(coretool.Extension, tool); err != nil || tool.GetDescription() == "" {
			t.Errorf("%s: %v", tool.GetName(), err)
		}
		names = append(names, tool.GetName())
	}
	slices.Sort(names)
	if want := []string{
		"ask_user", "find_person", "find_tools", "list_agents", "list_channels", "send_to_all_channels", "send_to_channel",
		"send_to_person", "use_tool",
	}; !slices.Equal(names, want) {
		t.Errorf("the tools are %v", names)
	}
}

func TestSendToChannelIsDelivered(t *testing.T) {
	play(t, func(w *world) {
		cli := w.Channel("cli")
		cli.Admits("*")
		turn := w.hears()
		result := sends(turn, "cli", "it rains")
		w.Wait(3 * time.Second)
		d := cli.Take()
		m := kerneltest.Decode[contract.ChannelSend](t, d.GetEvent())
		if m.Text != "it rains" || m.Kind != contract.SendDirect || m.Session != journal.SessionID(turn.Session()) ||
			m.Call == "" {
			t.Errorf("the channel is to send %+v", m)
		}
		cli.Acks(d, kerneltest.Receipt("r1", "window", ""))
		r, err := result()
		if err != nil || r.GetIsError() || r.GetContent() != `{"status":"delivered","channel_id":"cli"}` {
			t.Errorf("the result is %v, %v", r, err)
		}
		turn.Answers("Sent.")
		w.telegram.Shows("anna: Sent.")
		w.orchestrator.HearsRecord("it rains") // an answer to it will be understood
	})
}

func TestSendToTheChannelOfTheConversationStaysInIt(t *testing.T) {
	play(t, func(w *world) {
		w.telegram.Admits("anna", "boris")
		w.telegram.Says("boris", "go")
		turn := w.orchestrator.Hears("go")
		result := sends(turn, "telegram", "for Boris")
		w.telegram.Shows("boris: for Boris")
		if r, err := result(); err != nil || read[sent](t, r).Status != "delivered" {
			t.Errorf("the result is %v, %v", r, err)
		}
		turn.Answers("")
		// Also in a turn that Boris did not begin.
		tasks := w.Extension(bus.Actor{ID: "tasks", Effects: []string{"input"}})
		tasks.Must("", kerneltest.Input("orchestrator", "chan:telegram:boris", contract.InputNotice, "it is done"))
		result = sends(w.orchestrator.Hears("it is done"), "telegram", "for Boris again")
		w.telegram.Shows("boris: for Boris again")
		if _, err := result(); err != nil {
			t.Error(err)
		}
	})
}

func TestSendToChannelThatCannotBeReachedSendsNothing(t *testing.T) {
	play(t, func(w *world) {
		cli := w.Channel("cli")
		cli.IsUnconfigured()
		turn := w.hears()
		for channel, words := range map[string][]string{
			"pigeon": {`there is no channel "pigeon"`, "cli, telegram", "Nothing was sent"},
			"cli":    {"Cli (cli) is not set up yet: set TOKEN in the environment.", "Nothing was sent"},
		} {
			r := turn.Uses("core/send_to_channel", map[string]string{"channel_id": channel, "text": "it rains"})
			for _, word := range words {
				if !r.GetIsError() || !strings.Contains(r.GetContent(), word) {
					t.Errorf("to %s: %v, want %q", channel, r, word)
				}
			}
		}
		if r := turn.Uses(
			"core/send_to_channel",
			map[string]string{"channel_id": "telegram", "text": " \n"},
		); !r.GetIsError() {
			t.Errorf("a blank text: %v", r)
		}
		cli.IsSilent()
		w.telegram.IsSilent()
		// Nothing was sent, so a job still says what it has to say.
		if turns := w.Session("orchestrator", "chan:telegram:anna").Stack; len(turns) != 1 {
			t.Fatal(turns)
		}
		w.Read(func(j journal.Reader) error {
			turn, err := j.Turn(1)
			if turn.UsedSend {
				t.Error("the turn is said to have sent something")
			}
			return err
		})
	})
}

func TestSendToChannelThatIsDownIsQueued(t *testing.T) {
	play(t, func(w *world) {
		cli := w.Channel("cli")
		cli.GoesOffline()
		began := time.Now()
		r := w.hears().Uses("core/send_to_channel", map[string]string{"channel_id": "cli", "text": "it rains"})
		if got := read[sent](
			t,
			r,
		); r.GetIsError() || got.Status != "queued" ||
			!strings.Contains(got.Detail, "Cli is offline now") {
			t.Errorf("the result is %v", r)
		}
		if time.Since(began) > 0 {
			t.Error("a receipt was waited for that cannot come")
		}
		w.Wait(time.Hour)
		w.Detours() // what was asked for by name goes nowhere else
		w.telegram.IsSilent()
		cli.IsBack()
		cli.Shows(": it rains")
	})
}

func TestSendToChannelWithoutAWordFromThePlatform(t *testing.T) {
	play(t, func(w *world) {
		cli := w.Channel("cli")
		began := time.Now()
		r := w.hears().Uses("core/send_to_channel", map[string]string{"channel_id": "cli", "text": "it rains"})
		if got := read[sent](t, r); r.GetIsError() || got.Status != "queued" || time.Since(began) != 10*time.Second {
			t.Errorf("the result is %v after %s", r, time.Since(began))
		}
		cli.Shows(": it rains") // a receipt that comes later harms nobody
		w.Settle()
	})
}

func TestSendToChannelThatFails(t *testing.T) {
	play(t, func(w *world) {
		cli := w.Channel("cli")
		turn := w.hears()
		result := sends(turn, "cli", "it rains")
		cli.Drops(cli.Take(), "the text is not allowed")
		r, err := result()
		if err != nil || !r.GetIsError() {
			t.Fatalf("the result is %v, %v", r, err)
		}
		if got := read[sent](t, r); got.Status != "failed" || !strings.Contains(got.Detail, "not allowed") {
			t.Errorf("the result is %v", r)
		}
	})
}

func TestALongTextIsDeliveredWhenItsLastPartIs(t *testing.T) {
	for name, fails := range map[string]bool{"all": false, "one is not": true} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				cli := w.Channel("cli")
				cli.Change(func(c *directory.Channel) { c.MaxLength = 20 })
				result := sends(w.hears(), "cli", strings.Repeat("word ", 10))
				var parts []string
				for d := cli.Next(); d != nil; d = cli.Next() {
					m := kerneltest.Decode[contract.ChannelSend](t, d.GetEvent())
					parts = append(parts, m.Text)
					if fails && m.Part == 2 {
						cli.Drops(d, "no")
					} else {
						cli.Confirms(d)
					}
				}
				want := map[bool]string{false: "delivered", true: "failed"}[fails]
				if r, err := result(); err != nil || read[sent](t, r).Status != want || len(parts) != 3 {
					t.Errorf("the result is %v, %v for %q", r, err, parts)
				}
			})
		})
	}
}

// The kernel dies before the platform's word.
func TestAfterARestartASendIsNotMadeTwice(t *testing.T) {
	play(t, func(w *world) {
		cli := w.Channel("cli")
		turn := w.hears()
		id := turn.Asks([2]string{"core/send_to_channel", `{"channel_id":"cli","text":"it rains"}`})[0]
		turn.Calls(id)
		w.Restart()
		turn = w.orchestrator.Hears("go")
		r, err := turn.Call(id)
		if err != nil || r.GetIsError() || read[sent](t, r).Status != "queued" {
			t.Fatalf("the result is %v, %v", r, err)
		}
		d := cli.Take()
		if !d.GetUncertain() {
			t.Error("the repeated send is not marked as one")
		}
		cli.Confirms(d)
		cli.IsSilent()
	})
}

// The platform's word was there before the kernel died.
func TestAfterARestartADeliveredSendStaysDelivered(t *testing.T) {
	play(t, func(w *world) {
		cli := w.Channel("cli")
		turn := w.hears()
		id := turn.Asks([2]string{"core/send_to_channel", `{"channel_id":"cli","text":"it rains"}`})[0]
		turn.Calls(id)
		cli.Shows(": it rains")
		w.Restart()
		turn = w.orchestrator.Hears("go")
		if r, err := turn.Call(id); err != nil || read[sent](t, r).Status != "delivered" {
			t.Fatalf("the result is %v, %v", r, err)
		}
		cli.IsSilent()
	})
}

func TestSendToAllChannels(t *testing.T) {
	play(t, func(w *world) {
		cli, matrix, pager := w.Channel("cli"), w.Channel("matrix"), w.Channel("pager")
		pager.IsUnconfigured()
		matrix.GoesOffline()
		turn := w.hears()
		began := time.Now()
		result := turn.Calls(turn.Asks([2]string{"core/send_to_all_channels", `{"text":"fire"}`})[0])
		w.telegram.ShowsOne("wants to run core/send_to_all_channels", "on every channel, only when asked to.\n\n```\ntext: fire\n```", "Reply yes or no.")
		cli.IsSilent()
		w.telegram.Says("anna", "yes")
		cli.Drops(cli.Take(), "no")
		if told := w.telegram.Sends(); len(told) != 1 || told[0].Text != "fire" { // of the terminal, the result tells
			t.Errorf("Telegram shows %+v", told)
		}
		r, err := result()
		if err != nil || !r.GetIsError() || time.Since(began) > 0 {
			t.Fatalf("the result is %v, %v after %s", r, err, time.Since(began))
		}
		got := read[struct{ Sent []sent }](t, r).Sent
		status := map[string]string{}
		for _, s := range got {
			status[s.Channel] = s.Status
		}
		if len(got) != 3 || status["cli"] != "failed" || status["matrix"] != "queued" || status["telegram"] != "delivered" {
			t.Errorf("the result is %+v", got)
		}
		matrix.IsBack()
		matrix.Shows(": fire")
	})
}

func TestSendToAllChannelsWithoutAny(t *testing.T) {
	play(t, func(w *world) {
		turn := w.hears()
		result := turn.Calls(turn.Asks([2]string{"core/send_to_all_channels", `{"text":"fire"}`})[0])
		w.telegram.Sends()
		w.telegram.IsUnconfigured()
		w.telegram.Says("anna", "yes")
		r, err := result()
		if err != nil || !r.GetIsError() || !strings.Contains(r.GetContent(), "Nothing was sent") {
			t.Errorf("the result is %v", r)
		}
	})
}

func TestTheCommandLineSends(t *testing.T) {
	play(t, func(w *world) {
		cli := w.Channel("cli")
		type outcome struct {
			d   *coretool.Sent
			err error
		}
		done := make(chan outcome, 1)
		go func() {
			d, err := w.Tools.Send(w.T.Context(), "cli", "it rains")
			done <- outcome{d, err}
		}()
		cli.Shows(": it rains")
		if o := <-done; o.err != nil || o.d.Status != "delivered" || !slices.Equal(o.d.ProviderIDs, []string{"r1"}) ||
			len(o.d.Events) != 1 {
			t.Errorf("%+v, %v", o.d, o.err)
		}
		cli.GoesOffline()
		if d, err := w.Tools.Send(
			w.T.Context(),
			"cli",
			"later",
		); err != nil || d.Status != "queued" ||
			!strings.Contains(d.Detail, "offline") {
			t.Errorf("%+v, %v", d, err)
		}
		for _, channel := range []string{"pigeon", "cli"} {
			cli.IsUnconfigured()
			if d, err := w.Tools.Send(w.T.Context(), channel, "never"); err == nil {
				t.Errorf("to %s: %+v", channel, d)
			}
		}
	})
}
