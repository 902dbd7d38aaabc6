package router_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/markdown"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/router"
)

// TestARepetitionBearsTheMark ends a channel, or the kernel, between a send and its
// acknowledgement.
func TestARepetitionBearsTheMark(t *testing.T) {
	type world struct {
		*kerneltest.World
		telegram *kerneltest.Channel
	}
	ends := map[string]func(w world){
		"the process": func(w world) { w.telegram.Dies(); w.telegram.Starts(); w.Wait(2 * time.Second) },
		"the kernel":  func(w world) { w.Restart(); w.Settle() },
	}
	for name, end := range ends {
		for dedupe, then := range map[time.Duration][]bool{ // is it marked after the end, and 6 minutes later?
			0:               {true, true},
			5 * time.Minute: {false, true},
		} {
			t.Run(name+", dedupe "+dedupe.String(), func(t *testing.T) {
				kerneltest.Run(t, func(w *kerneltest.World) {
					telegram := w.Channel("telegram")
					telegram.Dedupes(dedupe)
					w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "dinner", ChannelID: "telegram"})
					first := telegram.Take()
					if m := kerneltest.Decode[contract.ChannelSend](t, first.GetEvent()); m.Text != "dinner" || first.GetUncertain() {
						t.Errorf("the first attempt is %+v", m)
					}
					for attempt, marked := range then {
						w.Wait(time.Duration(attempt) * 6 * time.Minute)
						end(world{w, telegram})
						d := telegram.Take()
						m := kerneltest.Decode[contract.ChannelSend](t, d.GetEvent())
						want := contract.ChannelSend{Text: "dinner"}
						if marked {
							want = contract.ChannelSend{Text: contract.RepeatMark + "dinner", Unmarked: "dinner"}
						}
						if m.Text != want.Text || m.Unmarked != want.Unmarked || !d.GetUncertain() ||
							d.GetEvent().GetId() != first.GetEvent().GetId() {
							t.Errorf("repetition %d is %+v, want the text %q", attempt+1, m, want.Text)
						}
					}
				})
			})
		}
	}
}

// TestTheTimeOfDedupeBeginsWithTheFirstAttempt has a send wait for its channel, and
// fail for sure, before an attempt is uncertain.
func TestTheTimeOfDedupeBeginsWithTheFirstAttempt(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		telegram.Dedupes(5 * time.Minute)
		telegram.GoesOffline()
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "dinner", ChannelID: "telegram"})
		w.Wait(10 * time.Minute)
		telegram.IsBack()
		telegram.Fails(telegram.Take(), "the network is down")
		w.Wait(2 * time.Second)
		for _, want := range []string{"dinner", "dinner", contract.RepeatMark + "dinner"} { // after 0, 3 and 6 minutes
			if m := kerneltest.Decode[contract.ChannelSend](t, telegram.Take().GetEvent()); m.Text != want {
				t.Errorf("got %q, want %q", m.Text, want)
			}
			w.Wait(3 * time.Minute)
			w.Restart()
		}
	})
}

// TestAHeldChannelIsNotHeldWhileItDedupes: with uncertain: hold, what the platform
// drops is repeated, and what people may see twice is not.
func TestAHeldChannelIsNotHeldWhileItDedupes(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		telegram := w.Channel("telegram")
		telegram.Holds()
		telegram.Dedupes(5 * time.Minute)
		w.Emits(contract.TopicUserNotify, contract.UserNotify{Text: "dinner", ChannelID: "telegram"})
		telegram.Take()
		w.Restart()
		telegram.Take()
		w.Wait(6 * time.Minute)
		w.Restart()
		if d := telegram.Next(); d != nil {
			t.Errorf("repeated: %v", d)
		}
		if dead := w.Dead(
			contract.TopicChannelSend + "telegram",
		); len(dead) != 1 ||
			!strings.Contains(dead[0], "not to repeat it") {
			t.Errorf("dead letters: %q", dead)
		}
	})
}

// TestAMarkFitsTheLimit splits texts for a channel with a limit, and repeats each part.
func TestAMarkFitsTheLimit(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{
		"word ",
		"\n",
		"\n\n",
		"```go\n",
		"\n```\n",
		"~~~~\n",
		"- item\n",
		"👨‍👩‍👧",
		"e\u0301",
		"# head\n",
		"a. b! ",
		strings.Repeat("x", 60),
	})
	seed.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(contract.MinChannelLength, 200).Draw(t, "limit")
		text := strings.Join(rapid.SliceOfN(piece, 1, 60).Draw(t, "pieces"), "")
		if strings.TrimSpace(text) == "" {
			return
		}
		parts := markdown.Parts(text, limit)
		for _, later := range []int{limit, contract.MinChannelLength} { // the limit may be lowered until then
			for _, part := range parts {
				m := marked(t, part, later)
				if n := len(utf16.Encode([]rune(m.Text))); n > later {
					t.Fatalf("%q has %d units, more than %d", m.Text, n, later)
				}
				rest, ok := strings.CutPrefix(m.Text, "(possibly sent before)")
				if rest = strings.TrimLeft(
					rest,
					" \n",
				); !ok || m.Unmarked != part ||
					later == limit && rest != strings.TrimLeft(part, " \n") {
					t.Fatalf("%q became %q, without its mark %q", part, m.Text, m.Unmarked)
				}
			}
		}
	})
}

func TestAMarkLeavesMarkdownItsLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"hello":         "(possibly sent before) hello",
		"```\nx\n```":   "(possibly sent before)\n\n```\nx\n```",
		"---":           "(possibly sent before)\n\n---",
		"| a |\n|---|":  "(possibly sent before)\n\n| a |\n|---|",
		"1. one":        "(possibly sent before)\n\n1. one",
		"Привет":        "(possibly sent before) Привет",
		"👋 hello there": "(possibly sent before) 👋 hello there",
	} {
		if got := marked(t, text, 0).Text; got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestWhatHasNoTextHasNoMark(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{`{"draft_id":"d","text":""}`, `7`, ``} {
		if e := (&busv1.Event{Payload: []byte(payload)}); router.Marked(e, 0) != e {
			t.Errorf("%s was changed", payload)
		}
	}
}

func marked(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string, limit int,
) contract.ChannelSend {
	t.Helper()
	e := router.Marked(&busv1.Event{Payload: encode(contract.ChannelSend{Text: text})}, limit)
	var m contract.ChannelSend
	if err := json.Unmarshal(e.GetPayload(), &m); err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

func encode(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}
