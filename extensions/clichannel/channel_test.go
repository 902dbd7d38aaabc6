package clichannel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk"
)

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func TestAMessageIsAcknowledgedWhenTheKernelHasIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, welcome := r.attach(wire.Frame{Agent: "chief"})
	if welcome.Conversation != "terminal" || welcome.Text != "a test model" || welcome.Hint != "no hint" {
		t.Errorf("welcome %+v", welcome)
	}
	for range 2 { // the second one is a repeat after a lost acknowledgement
		c.write(wire.Frame{Type: wire.Message, ID: "t-1", Text: "привет"})
		if f := c.expect(wire.Accepted); f.ID != "t-1" {
			t.Errorf("accepted %q", f.ID)
		}
	}
	got := r.kernel.received()
	if len(got) != 1 {
		t.Fatalf("the kernel has %+v", got)
	}
	got[0].SentAt = 0
	want := contract.UserMessage{Text: "привет", UserID: LocalUser, ConversationID: "terminal", AgentID: "chief",
		MessageID: "t-1"}
	if d := cmp.Diff(want, got[0]); d != "" {
		t.Error(d)
	}
}

func TestARefusedMessageIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{})
	r.kernel.failWith(fmt.Errorf("no space left: %w", contract.ErrFull))
	c.write(wire.Frame{Type: wire.Message, ID: "1", Text: "x"})
	if f := c.expect(wire.Error); f.ID != "1" || f.Fatal || !strings.Contains(f.Text, "no space left") {
		t.Errorf("got %+v", f)
	}
	c.write(wire.Frame{Type: wire.Message, ID: "2", Text: strings.Repeat("x", wire.MaxText+1)})
	if f := c.expect(wire.Error); f.ID != "2" || !strings.Contains(f.Text, "bytes") {
		t.Errorf("got %+v", f)
	}
	r.kernel.failWith(nil)
	c.write(wire.Frame{Type: wire.Message, ID: "3", Text: "y"})
	if f := c.expect(wire.Accepted); f.ID != "3" {
		t.Errorf("got %+v", f)
	}
}

func TestAMessageThatTheKernelCannotAcceptNowIsRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{Terminal: "t"})
	r.kernel.failWith(contract.ErrGone)
	c.write(wire.Frame{Type: wire.Message, ID: "t-1", Text: "x"})
	if f := c.expectEnd(); f.Type != wire.Error || f.ID != "" || f.Fatal {
		t.Errorf("got %+v: the terminal must come back with the message", f)
	}
	r.kernel.failWith(nil)
	c, _ = r.attach(wire.Frame{Terminal: "t"})
	c.write(wire.Frame{Type: wire.Message, ID: "t-1", Text: "x"})
	c.expect(wire.Accepted)
}

func TestSendIsDoneWhenATerminalShowsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{})
	result := r.send(sdk.Message{ID: "e1", Text: "hello", Conversation: "terminal", ReplyTo: "t-1", Part: 1, Parts: 2})
	want := wire.Frame{Type: wire.Message, ID: "e1", Text: "hello", Conversation: "terminal", ReplyTo: "t-1", Part: 1,
		Parts: 2}
	if d := cmp.Diff(want, c.read()); d != "" {
		t.Error(d)
	}
	select {
	case s := <-result:
		t.Fatalf("done before it was shown: %+v", s)
	default:
	}
	c.write(wire.Frame{Type: wire.Shown, ID: "never sent"})
	c.write(wire.Frame{Type: wire.Shown, ID: "e1"})
	if s := <-result; s.err != nil || s.receipt.ProviderID != "e1" || s.receipt.Conversation != "terminal" {
		t.Errorf("got %+v", s)
	}
	// A repeat after a lost receipt is not shown again.
	if s := <-r.send(sdk.Message{ID: "e1", Text: "hello", Conversation: "terminal", Repeat: true}); s.err != nil {
		t.Errorf("got %+v", s)
	}
}

func TestAMessageWaitsForATerminal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.sendTimeout = little
	m := sdk.Message{ID: "e1", Text: "hello", Conversation: "terminal"}
	if s := <-r.send(m); s.err == nil || !strings.Contains(s.err.Error(), "switchboard chat") {
		t.Fatalf("got %+v with no terminal", s)
	}

	// A terminal of another conversation does not count.
	other, _ := r.attach(wire.Frame{Conversation: "work"})
	if s := <-r.send(m); s.err == nil || !strings.Contains(s.err.Error(), `"terminal"`) {
		t.Fatalf("got %+v", s)
	}

	// A terminal that detaches before it confirms leaves the message waiting.
	r.sendTimeout = time.Hour
	c, _ := r.attach(wire.Frame{})
	result := r.send(m)
	c.expect(wire.Message)
	_ = c.raw.Close()
	c, _ = r.attachWaiting(wire.Frame{})
	c.expect(wire.Message)
	c.write(wire.Frame{Type: wire.Shown, ID: "e1"})
	if s := <-result; s.err != nil {
		t.Errorf("got %+v", s)
	}
	r.Draft(t.Context(), sdk.Draft{Conversation: "work", Text: "nothing else came here"})
	other.expect(wire.Draft)
}

// attachWaiting attaches a terminal while messages wait for it.
func (r *rig) attachWaiting(hello wire.Frame) (*chat, wire.Frame) {
	r.t.Helper()
	c := r.dial()
	hello.Type, hello.Version, hello.Terminal = wire.Hello, wire.Version, wire.NewID()
	c.write(hello)
	return c, c.expect(wire.Welcome)
}

func TestAnUnconfirmedMessageIsNotSentTwiceToOneConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{})
	m := sdk.Message{ID: "e1", Text: "hello", Conversation: "terminal"}
	r.sendTimeout = little
	for range 2 {
		if s := <-r.send(m); s.err == nil {
			t.Fatalf("got %+v", s)
		}
	}
	c.expect(wire.Message)
	c.write(wire.Frame{Type: wire.Shown, ID: "e1"}) // late: no Send is waiting
	c.write(wire.Frame{Type: wire.Message, ID: "1", Text: "x"})
	c.expect(wire.Accepted) // the message is not repeated
	r.sendTimeout = time.Hour
	if s := <-r.send(m); s.err != nil {
		t.Errorf("got %+v", s)
	}
}

func TestAnAnswerIsShownBelowItsMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, _ := r.attach(wire.Frame{})
	b, _ := r.attach(wire.Frame{})
	var answer <-chan sent
	r.kernel.taking = func() {
		answer = r.send(sdk.Message{ID: "e1", Text: "so it is", Conversation: "terminal"})
		b.expect(wire.Echo)
		b.expect(wire.Message)
	}
	a.write(wire.Frame{Type: wire.Message, ID: "a-1", Text: "/agent ghost"})
	a.expect(wire.Message)
	a.expect(wire.Accepted)
	b.write(wire.Frame{Type: wire.Shown, ID: "e1"})
	if s := <-answer; s.err != nil {
		t.Errorf("got %+v", s)
	}
}

func TestTerminalsOfAConversationSeeTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, _ := r.attach(wire.Frame{})
	b, _ := r.attach(wire.Frame{})
	script, _ := r.attach(wire.Frame{Script: true})
	work, _ := r.attach(wire.Frame{Conversation: "work"})

	for range 2 { // shown once although it is sent twice
		a.write(wire.Frame{Type: wire.Message, ID: "a-1", Text: "from a"})
		a.expect(wire.Accepted)
	}
	if f := b.expect(wire.Echo); f.Text != "from a" {
		t.Errorf("got %+v", f)
	}
	r.Draft(t.Context(), sdk.Draft{Conversation: "terminal", Text: "dra"})
	a.expect(wire.Draft)
	b.expect(wire.Draft)

	result := r.send(sdk.Message{ID: "e1", Text: "reply", Conversation: "terminal"})
	for _, c := range []*chat{a, b, script} {
		c.expect(wire.Message)
	}
	b.write(wire.Frame{Type: wire.Shown, ID: "e1"})
	if s := <-result; s.err != nil {
		t.Errorf("got %+v", s)
	}

	result = r.send(sdk.Message{ID: "e2", Text: "for everybody", Notice: true})
	for _, c := range []*chat{a, b, work} {
		if f := c.expect(wire.Message); f.ID != "e2" || !f.Notice {
			t.Errorf("got %+v", f)
		}
	}
	work.write(wire.Frame{Type: wire.Shown, ID: "e2"})
	if s := <-result; s.err != nil || s.receipt.Conversation != "work" {
		t.Errorf("got %+v: the receipt names where it was shown", s)
	}

	result = r.send(sdk.Message{ID: "e3", Text: "end", Conversation: "terminal"})
	if f := script.expect(wire.Message); f.ID != "e3" {
		t.Errorf("a script got %+v", f)
	}
	script.write(wire.Frame{Type: wire.Shown, ID: "e3"})
	<-result
}

func TestNewConversationsAreSeparate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, first := r.attach(wire.Frame{New: true})
	_, second := r.attach(wire.Frame{New: true})
	if first.Conversation == second.Conversation || first.Conversation == wire.DefaultConversation ||
		first.Conversation == "" {
		t.Errorf("%q and %q", first.Conversation, second.Conversation)
	}
}

func TestReadyWhileATerminalIsAttached(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.kernel.awaitState(sdk.Offline)
	a, _ := r.attach(wire.Frame{})
	r.kernel.awaitState(sdk.Ready)
	b, _ := r.attach(wire.Frame{})
	_ = a.raw.Close()
	_ = b.raw.Close()
	r.kernel.awaitState(sdk.Offline)
}

func TestSendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cause := errors.New("the cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := r.Send(ctx, sdk.Message{ID: "e1"}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestARestartOfTheExtensionLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, _ := r.attach(wire.Frame{})
	m := sdk.Message{ID: "e1", Text: "hello", Conversation: "terminal"}
	r.sendTimeout = little
	result := r.send(m)
	c.expect(wire.Message)
	if err := r.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := c.expectEnd(); f.Type != wire.State || f.Ready {
		t.Errorf("the last word was %+v", f)
	}
	if s := <-result; s.err == nil {
		t.Error("an unconfirmed message has a receipt")
	}
	r.begin()
	result = r.send(m)
	c, _ = r.attachWaiting(wire.Frame{})
	c.expect(wire.Message)
	c.write(wire.Frame{Type: wire.Shown, ID: "e1"})
	if s := <-result; s.err != nil {
		t.Errorf("got %+v", s)
	}
}
