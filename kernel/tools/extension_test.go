package tools_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// call is the effect that calls a tool.
func call(id, tool, arguments string) *busv1.Effect {
	return &busv1.Effect{Kind: &busv1.Effect_Call{Call: &busv1.CallTool{Id: id, Tool: tool, Arguments: []byte(arguments)}}}
}

// probe is an extension that may call the tools of the patterns.
func probe(w *kerneltest.World, patterns ...string) *kerneltest.Extension {
	return w.Extension(bus.Actor{ID: "probe", Tools: patterns}, kerneltest.On("tool.result.probe"))
}

// results takes the results that wait for an extension.
func results(w *kerneltest.World, x *kerneltest.Extension) (all []contract.ToolResult) {
	w.T.Helper()
	for d := x.Next(); d != nil; d = x.Next() {
		all = append(all, kerneltest.Decode[contract.ToolResult](w.T, d.GetEvent()))
		x.Acks(d)
	}
	return all
}

// only is the one result that waits.
func only(w *kerneltest.World, x *kerneltest.Extension) contract.ToolResult {
	w.T.Helper()
	all := results(w, x)
	if len(all) != 1 {
		w.T.Fatalf("results: %+v, want one", all)
	}
	return all[0]
}

func TestAnExtensionCallsATool(t *testing.T) {
	play(t, func(w *world) {
		p := probe(w.World, "notes/*")
		var a attempts
		w.Tool("notes", &extensionv1.Tool{Name: "add"}, a.of(func(int) (*extensionv1.CallResult, error) {
			return &extensionv1.CallResult{Content: "added", Effects: []*busv1.Effect{
				kerneltest.Publish("notes.added", map[string]any{}),
			}}, nil
		}))
		first := p.Must("", call("one", "notes/add", `{"text":"tea"}`))[0]
		if r := only(w.World, p); r != (contract.ToolResult{ID: "one", Tool: "notes/add", Content: "added"}) {
			t.Errorf("result %+v", r)
		}
		again := p.Must("", call("one", "notes/add", `{"text":"coffee"}`))[0]
		if !again.GetDuplicate() || again.GetEventId() != first.GetEventId() || len(results(w.World, p)) != 0 {
			t.Errorf("the second call: %v, the first: %v", again, first)
		}
		if q := a.requests[0]; len(a.requests) != 1 || string(q.GetArguments()) != `{"text":"tea"}` || q.GetSender() != "probe" {
			t.Errorf("requests %v", a.requests)
		}
		asked, added, result := w.Events("tool.call.notes"), w.Events("notes.added"), w.Events("tool.result.probe")
		for _, e := range []*busv1.Event{added[0], result[0]} {
			if e.GetCausationId() != asked[0].GetId() || e.GetCorrelationId() != asked[0].GetId() || e.GetHop() != 1 {
				t.Errorf("%s follows %s of %s after %d hops", e.GetTopic(), e.GetCausationId(), e.GetCorrelationId(), e.GetHop())
			}
		}
	})
}

// The tool sends its own texts where the extension says.
func TestAnExtensionSaysWhereTheTextsOfAToolGo(t *testing.T) {
	play(t, func(w *world) {
		turn := w.hears()
		p := probe(w.World, "notes/add")
		var asked *extensionv1.CallRequest
		w.Tool("notes", &extensionv1.Tool{Name: "add"},
			func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				asked = r
				return text("added")
			})
		var handle string
		w.Read(func(j journal.Reader) error {
			s, err := j.Session(turn.Session())
			handle = s.OutboundTarget
			return err
		})
		e := call("one", "notes/add", "")
		e.GetCall().ReplyTo = handle
		p.Must("", e)
		only(w.World, p)
		if handle == "" || asked.GetReplyTo() != handle || asked.GetChannel() != "telegram" || asked.GetSession() != "" {
			t.Errorf("request %v, want the handle %q", asked, handle)
		}
	})
}

// An extension acts for the household: it sees nothing that is a person's own.
func TestAnExtensionCallsForTheHousehold(t *testing.T) {
	play(t, func(w *world) {
		p := probe(w.World, "notes/list")
		var of contract.Principal
		w.Tool("notes", &extensionv1.Tool{Name: "list"},
			func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				of = contract.PrincipalOf(r.GetPrincipal())
				return text("listed")
			})
		p.Must("", call("one", "notes/list", ""))
		only(w.World, p)
		own := contract.Principal{Person: "anna", Own: true}
		if of.Extension != "probe" || of.Sees(own) || of.SeesOwners() || !of.Sees(contract.Principal{Person: "anna"}) {
			t.Errorf("principal %+v", of)
		}
	})
}

func TestCallsThatAreRefusedAtOnce(t *testing.T) {
	play(t, func(w *world) {
		p := probe(w.World, "notes/*")
		long := strings.Repeat("x", 1001)
		for _, c := range []struct {
			call *busv1.Effect
			err  error
			says string
		}{
			{call("1", "scheduler/schedule_once", "{}"), contract.ErrDenied, "permissions: {tools: [scheduler/schedule_once]}"},
			{call("", "notes/add", "{}"), contract.ErrInvalid, "id of a call of 0 bytes"},
			{call(long, "notes/add", "{}"), contract.ErrInvalid, "1001 bytes"},
			{call("1", "notes", "{}"), contract.ErrDenied, "notes"},
			{call("1", "notes/", "{}"), contract.ErrInvalid, "<extension>/<tool>"},
			{call("1", "notes/add", "{"), contract.ErrInvalid, "not JSON"},
			{call("1", "notes/add", `"`+strings.Repeat("x", contract.MaxPayload)+`"`), contract.ErrTooLarge, "limit"},
		} {
			if _, err := p.Commits("", c.call); !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: %v", c.call.GetCall().GetTool(), err)
			}
		}
		if calls := w.Events("tool.call.notes"); len(calls) != 0 {
			t.Errorf("events %v", calls)
		}
	})
}

func TestCallsWhoseResultIsAnError(t *testing.T) {
	play(t, func(w *world) {
		p := probe(w.World, "notes/*", "core/*")
		schema := []byte(`{"type":"object","properties":{"by":{"type":"integer"}},"required":["by"]}`)
		w.Tool("notes", &extensionv1.Tool{Name: "add", Schema: schema}, nil)
		w.Tool("notes", &extensionv1.Tool{Name: "hidden", Private: true}, nil)
		for tool, says := range map[string]string{
			"notes/add": "by", "notes/nothing": "no tool", "notes/hidden": "notes/hidden", "core/nothing": "no tool",
			"core/find_tools": "only its turns",
		} {
			p.Must("", call(tool, tool, `{"query":"notes"}`))
			if r := only(w.World, p); !r.Error || r.ID != tool || !strings.Contains(r.Content, says) {
				t.Errorf("%s: %+v", tool, r)
			}
		}
	})
}

func TestACallWaitsForTheExtensionOfItsTool(t *testing.T) {
	play(t, func(w *world) {
		p := probe(w.World, "notes/*", "unknown/*")
		w.Tool("notes", &extensionv1.Tool{Name: "add"}, func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
			return text("added")
		})
		w.notes.Dies()
		p.Must("", call("one", "notes/add", "{}"), call("two", "unknown/tool", "{}"))
		w.Wait(time.Hour)
		if all := results(w.World, p); len(all) != 0 {
			t.Errorf("results %+v", all)
		}
		w.Restart()
		w.notes.Dies()
		w.Wait(time.Hour)
		w.notes.Starts()
		w.Know(func(*directory.Snapshot) {})
		if r := only(w.World, p); r.ID != "one" || r.Error {
			t.Errorf("result %+v", r)
		}
		w.Wait(23 * time.Hour)
		if r := only(w.World, p); r.ID != "two" || !r.Error || !strings.Contains(r.Content, "did not run") {
			t.Errorf("result %+v", r)
		}
	})
}

func TestACallOverACrashOfTheKernel(t *testing.T) {
	for name, repeatable := range map[string]bool{"idempotent": true, "once": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				p := probe(w.World, "notes/add")
				var a attempts
				w.Tool("notes", &extensionv1.Tool{Name: "add", Idempotent: repeatable}, a.of(func(n int) (*extensionv1.CallResult, error) {
					if n == 1 {
						<-a.contexts[0].Done()
						return nil, a.contexts[0].Err()
					}
					return text("added")
				}))
				p.Must("", call("one", "notes/add", "{}"))
				w.Settle()
				w.Restart()
				r := only(w.World, p)
				if repeatable && (r.Error || len(a.requests) != 2 || a.requests[0].GetCallId() != a.requests[1].GetCallId()) {
					t.Errorf("result %+v after %v", r, a.requests)
				}
				if !repeatable && (!r.Error || !strings.Contains(r.Content, "unknown whether") || len(a.requests) != 1) {
					t.Errorf("result %+v after %v", r, a.requests)
				}
			})
		})
	}
}

// The owner is asked, wherever the extension wants the tool to send its texts.
func TestTheOwnerApprovesACallOfAnExtension(t *testing.T) {
	play(t, func(w *world) {
		w.Know(func(s *directory.Snapshot) { s.DefaultChannel, s.Approve = "telegram", []string{"notes/*"} })
		p := probe(w.World, "notes/add")
		w.Tool("notes", &extensionv1.Tool{Name: "add"}, func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
			return text("added")
		})
		p.Must("", call("one", "notes/add", `{"text":"tea"}`))
		question := w.telegram.ShowsOne()
		if !strings.Contains(question.Text, "probe wants to run notes/add") || !strings.Contains(question.Text, "tea") {
			t.Errorf("question %+v", question)
		}
		w.Restart() // it goes on waiting for the same question
		w.telegram.Says("anna", "no")
		if r := only(w.World, p); !r.Error || !strings.Contains(r.Content, "declined") {
			t.Errorf("result %+v", r)
		}
	})
}

// Two extensions that call each other's tools from their handlers end at the limit of
// hops.
func TestCallsThatFollowEachOtherEnd(t *testing.T) {
	play(t, func(w *world) {
		p := probe(w.World, "notes/add")
		w.Tool("notes", &extensionv1.Tool{Name: "add"}, func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
			return text("added")
		})
		p.Must("", call("0", "notes/add", ""))
		n := 0
		for d := p.Next(); d != nil; d = p.Next() {
			n++
			p.Acks(d, call(d.GetEvent().GetId(), "notes/add", ""))
		}
		if n != contract.MaxHops/2 {
			t.Errorf("%d results, want %d", n, contract.MaxHops/2)
		}
		if dead := w.Dead("tool.result.probe"); len(dead) != 1 || !strings.Contains(dead[0], "without a turn of a model") {
			t.Errorf("dead letters %q", dead)
		}
	})
}

// The tools of two extensions that call each other end there as well.
func TestToolsThatCallEachOtherEnd(t *testing.T) {
	play(t, func(w *world) {
		ping := w.Extension(bus.Actor{ID: "ping", Tools: []string{"pong/play"}})
		w.Extension(bus.Actor{ID: "pong", Tools: []string{"ping/play"}})
		runs := 0
		for id, other := range map[string]string{"ping": "pong", "pong": "ping"} {
			w.Tool(id, &extensionv1.Tool{Name: "play"}, func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				runs++
				next := call(fmt.Sprint(runs), other+"/play", "")
				return &extensionv1.CallResult{Content: "played", Effects: []*busv1.Effect{next}}, nil
			})
		}
		ping.Must("", call("0", "pong/play", ""))
		last := ""
		for _, e := range append(w.Events("tool.result.ping"), w.Events("tool.result.pong")...) {
			if r := kerneltest.Decode[contract.ToolResult](t, e); r.Error {
				last += r.Content
			}
		}
		if runs != contract.MaxHops || !strings.Contains(last, "without a turn of a model") {
			t.Errorf("%d runs, want %d; the last result: %q", runs, contract.MaxHops, last)
		}
	})
}

func TestAnExtensionSendsByACoreTool(t *testing.T) {
	play(t, func(w *world) {
		p := probe(w.World, "core/send_to_*", "core/list_channels")
		p.Must("", call("list", "core/list_channels", ""))
		if r := only(w.World, p); r.Error || !strings.Contains(r.Content, `"telegram"`) {
			t.Errorf("channels: %+v", r)
		}
		p.Must("", call("send", "core/send_to_channel", `{"channel_id":"telegram","text":"Hello"}`))
		if m := w.telegram.ShowsOne(); m.Text != "Hello" || m.Session != "" {
			t.Errorf("message %+v", m)
		}
		if r := only(w.World, p); r.Error || !strings.Contains(r.Content, "delivered") {
			t.Errorf("send: %+v", r)
		}
		w.telegram.Says("anna", "hi")
		p.Must("", call("person", "core/send_to_person", `{"person":"anna","text":"Hello"}`))
		if m := w.telegram.ShowsOne(); m.Text != "From probe: Hello" {
			t.Errorf("message %+v", m)
		}
	})
}

func TestACallIsNotWithdrawn(t *testing.T) {
	play(t, func(w *world) {
		p := w.Extension(bus.Actor{ID: "probe", Tools: []string{"notes/add"}, Effects: []string{"withdraw"}},
			kerneltest.On("tool.result.probe"))
		w.notes.Dies()
		e := p.Must("", call("one", "notes/add", ""))[0].GetEventId()
		withdraw := &busv1.Effect{Kind: &busv1.Effect_Withdraw{Withdraw: &busv1.Withdraw{EventId: e}}}
		if r := p.Must("", withdraw)[0]; !r.GetTooLate() {
			t.Errorf("withdrawn: %v", r)
		}
	})
}
