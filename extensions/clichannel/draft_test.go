package clichannel

import (
	"fmt"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// A terminal that attaches during an answer gets the draft; one that attaches after
// it gets none.
func TestATerminalThatAttachesMidwaySeesTheDraft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, _ := r.attach(wire.Frame{})
	draft := func(id, text string) {
		r.Draft(t.Context(), sdk.Draft{Conversation: "terminal", ID: id, Text: text})
	}
	draft("d1", "Once upon")
	a.expect(wire.Draft)
	b, _ := r.attachWaiting(wire.Frame{})
	if f := b.expect(wire.Draft); f.ID != "d1" || f.Text != "Once upon" {
		t.Errorf("got %+v", f)
	}
	r.attach(wire.Frame{Script: true})         // fails if it is sent anything
	r.attach(wire.Frame{Conversation: "work"}) // likewise
	draft("d2", "Meanwhile")                   // another turn
	for _, c := range []*chat{a, b} {
		if f := c.expect(wire.Draft); f.ID != "d2" {
			t.Errorf("got %+v", f)
		}
	}
	result := r.send(sdk.Message{ID: "e2", Text: "Meanwhile, the end.", Conversation: "terminal", DraftID: "d2"})
	for _, c := range []*chat{a, b} {
		if f := c.expect(wire.Message); f.Draft != "d2" {
			t.Errorf("got %+v", f)
		}
	}
	a.write(wire.Frame{Type: wire.Shown, ID: "e2"})
	if s := <-result; s.err != nil {
		t.Fatal(s.err)
	}
	draft("d2", "Meanwhile, the") // late
	draft("d1", "Once upon a time")
	if f := a.expect(wire.Draft); f.ID != "d1" {
		t.Errorf("a draft came after its message: %+v", f)
	}
	r.Draft(t.Context(), sdk.Draft{Conversation: "terminal", ID: "d1", Done: true})
	if f := a.expect(wire.Draft); f.ID != "d1" || !f.Done {
		t.Errorf("got %+v", f)
	}
	r.attach(wire.Frame{})
}

func TestOnlyAnOlderStateOfADraftIsReplaced(t *testing.T) {
	t.Parallel()
	q := newQueue()
	for i := range 3 {
		for _, id := range []string{"d1", "d1", "d2"} {
			q.put(wire.Frame{Type: wire.Draft, ID: id, Text: fmt.Sprint(i)})
		}
	}
	q.put(wire.Frame{Type: wire.Draft, ID: "d1", Done: true})
	frames, err := q.take()
	if err != nil || len(frames) != 7 {
		t.Fatalf("%d frames, %v: %+v", len(frames), err, frames)
	}
	for i, f := range frames[:6] {
		if want := []string{"d1", "d2"}[i%2]; f.ID != want {
			t.Errorf("frame %d is %+v", i, f)
		}
	}
}

// The kernel's end of a turn without an answer removes the draft.
func TestADraftIsRemoved(t *testing.T) {
	t.Parallel()
	c := newChannel()
	k := sdktest.Start(t, c.extension(), sdktest.Options{Manifest: manifest})
	if err := k.Draft(t.Context(),
		&extensionv1.DraftUpdate{Conversation: "terminal", DraftId: "d1", Text: "Once"}); err != nil {
		t.Fatal(err)
	}
	if n := c.hub.remembered(); n != 1 {
		t.Fatalf("%d drafts are remembered", n)
	}
	k.Hand(contract.TopicChannelSend+ID, contract.ChannelSend{Conversation: "terminal", DraftID: "d1"}).MustAck(t)
	if n := c.hub.remembered(); n != 0 {
		t.Errorf("%d drafts are remembered", n)
	}
}

func (h *hub) remembered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.drafts)
}
