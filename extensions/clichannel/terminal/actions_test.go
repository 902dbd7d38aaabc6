package terminal

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// actionsOf returns actions with a label and a command each.
func actionsOf(pairs ...string) (all []contract.Action) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, contract.Action{Label: pairs[i], Command: pairs[i+1]})
	}
	return all
}

func TestActionsAreNumbered(t *testing.T) {
	t.Parallel()
	yesNo := actionsOf("Yes", "/approve q7", "No", "/deny q7", "Always\n\x1bhere", "/approve q7 always here")
	for name, tc := range map[string]struct {
		f    wire.Frame
		want []string
	}{
		"none":    {wire.Frame{Text: "hi"}, nil},
		"three":   {wire.Frame{Text: "Delete it?", Actions: yesNo}, []string{"1 Yes   2 No", "3 Always here"}},
		"choices": {wire.Frame{Text: "Which?\n\n1. red\n2. blue", Actions: actionsOf("red", "/a 1", "blue", "/a 2")}, nil},
	} {
		if got := (theme{}).actions(tc.f, 24); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	for line, want := range map[string]string{"1": "/approve q7", "2": "/deny q7", "0": "", "4": "", "yes": "", "1.": "", "": ""} {
		if a, ok := offer(yesNo).pressed(line); a.Command != want || ok != (want != "") {
			t.Errorf("%q presses %q, want %q", line, a.Command, want)
		}
	}
}

func TestChatPressesTheNewestActions(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	offered := func(id, text string, notice bool, actions ...string) {
		p.write(wire.Frame{Type: wire.Message, ID: id, Text: text, Notice: notice, Actions: actionsOf(actions...)})
		p.expect(wire.Shown)
	}
	sent := func(want string) {
		t.Helper()
		m := p.expect(wire.Message)
		if m.Text != want {
			t.Errorf("sent %q, want %q", m.Text, want)
		}
		p.answer(m, "answer to "+want)
	}
	offered("1", "Call mom", true, "Done", "/done 7", "+10 min", "/snooze 7 10m")
	c.see("◆ Call mom", "  1 Done   2 +10 min", "", "›")
	c.press("2\r")
	sent("/snooze 7 10m")
	c.see("› 2", "  +10 min", "● answer to /snooze 7 10m", "", "›")
	c.press("2\r") // pressed already
	sent("2")
	offered("2", "Call mom", true, "Done", "/done 8")
	offered("3", "How many?", false)
	c.press("1\r") // another message is the newest
	sent("1")
	offered("4", "Call dad", true, "Done", "/done 9")
	p.write(wire.Frame{Type: wire.Echo, ID: "e", Text: "1"}) // pressed at another terminal
	c.see("» 1", "  …", "›")
	c.press("1\r")
	sent("1")
}

// What comes while a number is being typed isn't pressed by it.
func TestChatPressesOnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	p.write(wire.Frame{Type: wire.Message, ID: "1", Text: "Delete a?", Actions: actionsOf("Yes", "/approve q1")})
	p.expect(wire.Shown)
	c.press("1")
	c.see("  1 Yes", "", "› 1")
	p.write(wire.Frame{Type: wire.Message, ID: "2", Text: "Delete b?", Actions: actionsOf("Yes", "/approve q2")})
	p.expect(wire.Shown)
	c.press("\r")
	c.await("a warning", func([]string) bool { return strings.Contains(c.bytes.String(), "Type the number again") })
	c.press("1\r")
	if m := p.expect(wire.Message); m.Text != "/approve q2" {
		t.Errorf("sent %q", m.Text)
	}
}

func TestFilterPressesActions(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	var out strings.Builder
	result := make(chan error, 1)
	go func() {
		result <- filter(t.Context(), Options{Socket: s.path, Out: &out, Err: &strings.Builder{},
			ConnectTimeout: patience, AnswerTimeout: patience, In: strings.NewReader("delete it\n1\n1\n")})
	}()
	p := s.attach()
	m := p.expect(wire.Message)
	p.write(wire.Frame{Type: wire.Message, ID: "1", ReplyTo: m.ID, Text: "Really?", Actions: actionsOf("Yes", "/approve q1", "No", "/deny q1")})
	p.expect(wire.Shown)
	for _, want := range []string{"/approve q1", "1"} {
		m := p.expect(wire.Message)
		if m.Text != want {
			t.Errorf("sent %q, want %q", m.Text, want)
		}
		p.answer(m, "ok")
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if want := "Really?\n1 Yes   2 No\nok\nok\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}
