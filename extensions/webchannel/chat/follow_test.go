package chat

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// followed pulls the frames of a conversation one by one.
type followed struct {
	t    *testing.T
	next func() (Frame, error, bool)
}

func (b *bed) follow(conversation string, after int64) *followed {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	next, stop := iter.Pull2(b.Follow(ctx, anna, conversation, after))
	b.t.Cleanup(func() { cancel(); stop() })
	return &followed{b.t, next}
}

func (f *followed) line(want string) Line {
	f.t.Helper()
	for {
		frame, err, ok := f.next()
		if err != nil || !ok {
			f.t.Fatalf("instead of %q: %v, %v", want, err, ok)
		}
		if frame.Line == nil {
			continue
		}
		if frame.Line.Text != want {
			f.t.Fatalf("got %+v, want %q", frame.Line, want)
		}
		return *frame.Line
	}
}

func (f *followed) draft(want string, done bool) {
	f.t.Helper()
	frame, err, ok := f.next()
	if err != nil || !ok || frame.Draft == nil || frame.Draft.Text != want || frame.Draft.Done != done {
		f.t.Fatalf("got %+v, %v, %v, want the draft %q", frame, err, ok, want)
	}
}

func TestAFollowerSeesEachLineOnce(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.say(Message{ID: "m1", Text: "one"})
	f := b.follow("", 0)
	f.line("one")
	b.answer("", "two")
	b.say(Message{ID: "m3", Text: "three"})
	seen := f.line("two")
	f.line("three")

	late := b.follow("", seen.Seq)
	late.line("three")
	b.again()
	back := b.follow("", seen.Seq)
	back.line("three")
	b.answer("", "four")
	back.line("four")
}

func TestASlowFollowerMissesNoLine(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.say(Message{ID: "0", Text: "0"})
	f := b.follow("", 0)
	f.line("0")
	for i := 1; i < 3*tailLines; i++ {
		b.say(Message{ID: fmt.Sprint(i), Text: fmt.Sprint(i)})
	}
	for i := 1; i < 3*tailLines; i++ {
		f.line(fmt.Sprint(i))
	}
}

func TestALineReplacesItsDraft(t *testing.T) {
	t.Parallel()
	b := start(t)
	draft := func(text string, done bool) {
		b.Chat.Draft(t.Context(), sdk.Draft{Conversation: "anna", Thread: "x", ID: "d1", Text: text, Done: done})
	}
	b.say(Message{ID: "m1", Conversation: "x", Text: "hi"})
	f := b.follow("x", 1)
	draft("Well", false)
	f.draft("Well", false)
	late := b.follow("x", 1)
	late.draft("Well", false)
	draft("Well, hel", false)
	draft("Well, hello", false)
	f.draft("Well, hello", false) // the newest of them
	b.Kernel.Send(contract.ChannelSend{Kind: contract.SendReply, Text: "Well, hello!", Conversation: "anna", Thread: "x",
		DraftID: "d1"}).MustAck(t)
	if l := f.line("Well, hello!"); l.Draft != "d1" {
		t.Errorf("line %+v", l)
	}
	draft("Well, he", false) // came too late
	b.answer("x", "end")
	frame, err, _ := f.next()
	if err != nil || frame.Line == nil || frame.Line.Text != "end" {
		t.Errorf("got %+v, %v", frame, err)
	}
}

func TestADraftWithoutALineEnds(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.say(Message{ID: "m1", Text: "hi"})
	f := b.follow("", 1)
	b.Chat.Draft(t.Context(), sdk.Draft{Conversation: "anna", ID: "d1"})
	f.draft("", false)
	b.Chat.Draft(t.Context(), sdk.Draft{Conversation: "anna", ID: "d1", Done: true})
	f.draft("", true)
}

func TestWatchTellsWhatChanges(t *testing.T) {
	t.Parallel()
	b := start(t)
	next, stop := iter.Pull2(b.Watch(t.Context(), anna))
	defer stop()
	began := make(chan struct{})
	go func() {
		defer close(began)
		b.WaitUntil("it watches", func() bool {
			p, err := b.of(t.Context(), "anna")
			if err != nil {
				return false
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.watchers) == 1
		})
		b.answer("trip", "hello")
	}()
	change, err, ok := next()
	<-began
	if err != nil || !ok || change.Name != "trip" || change.Unread != 1 || change.Last.Text != "hello" {
		t.Errorf("got %+v, %v", change, err)
	}
	if err := b.Delete(t.Context(), anna, "trip"); err != nil {
		t.Fatal(err)
	}
	if change, err, _ = next(); err != nil || !change.Deleted {
		t.Errorf("got %+v, %v", change, err)
	}
}

func TestAFollowerEndsWithTheExtension(t *testing.T) {
	t.Parallel()
	b := start(t)
	f := b.follow("", 0)
	b.say(Message{ID: "m1", Text: "hi"})
	f.line("hi")
	b.Kernel.Stop()
	if _, err, ok := f.next(); err == nil || !ok {
		t.Errorf("got %v, %v", err, ok)
	}
}
