package offline

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

func (h *loop) user(text string) {
	h.messages = append(h.messages, &extensionv1.Message{Role: "user", Content: text})
}

func (h *loop) assistant(m *extensionv1.Message) { h.messages = append(h.messages, m) }

func (h *loop) result(c string, text string) {
	h.messages = append(h.messages, &extensionv1.Message{Role: "tool", CallId: c, Content: text})
}

func TestSeveralMessagesAreAllAnswered(t *testing.T) {
	for name, write := range map[string]func(h *loop){
		"one after the other": func(h *loop) { h.user(`send "hello" to telegram`); h.user("what is love?") },
		"as a backlog":        func(h *loop) { h.user("[Backlog]\nsend \"hello\" to telegram\nwhat is love?") },
	} {
		t.Run(name, func(t *testing.T) {
			h := newLoop(t)
			write(h)
			got := h.say("list channels")
			if !strings.Contains(got, "Telegram") || !slices.ContainsFunc(h.calls,
				func(c string) bool { return strings.HasPrefix(c, "send_to_channel") }) {
				t.Errorf("calls %q, answer %q", h.calls, got)
			}
			if parts := strings.Split(got, "\n\n"); len(parts) < 3 {
				t.Errorf("three messages are answered with %q", got)
			}
			if sent := slices.IndexFunc(h.calls, func(c string) bool {
				return strings.HasPrefix(c,
					"send_to_channel")
			}); sent >= 0 {
				for _, c := range h.calls[sent+1:] {
					if strings.HasPrefix(c, "send_to_channel") {
						t.Errorf("it is sent twice: %q", h.calls)
					}
				}
			}
		})
	}
}

func TestAnInterruptedTurnContinues(t *testing.T) {
	h := newLoop(t)
	h.user(`send "hello" to telegram`)
	first := h.ask() // list_channels
	h.assistant(first)
	h.result(first.GetCalls()[0].GetCallId(), channelsJSON)
	second := h.ask() // send_to_channel
	h.assistant(second)
	h.result(second.GetCalls()[0].GetCallId(), failure+contract.SkippedCall)
	h.calls = nil
	if got := h.say("[Backlog]\nlist reminders"); !strings.Contains(got, "call mom") {
		t.Errorf("the interruption is answered with %q", got)
	}
	if !slices.ContainsFunc(h.calls, func(c string) bool { return strings.HasPrefix(c, "list_schedules") }) {
		t.Errorf("calls %q", h.calls)
	}
	h.calls = nil
	got := h.say("[note from switchboard]\n~~~\nThe newer message was answered. Continue the earlier request now " +
		"(\"send\").\n~~~")
	if len(h.calls) != 1 || !strings.HasPrefix(h.calls[0], "send_to_channel") || !strings.Contains(got, "Telegram") {
		t.Errorf("the turn continues with %q and %q", h.calls, got)
	}
	h.calls = nil
	if got := h.say("list channels"); !strings.Contains(got, "Terminal") || len(h.calls) != 1 {
		t.Errorf("afterwards: %q, %q", h.calls, got)
	}
}
