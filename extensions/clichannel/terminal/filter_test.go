package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// filtering is a running filter.
type filtering struct {
	*stub
	out, err bytes.Buffer
	result   chan error
}

func runFilter(t *testing.T, input string, change func(*Options)) *filtering {
	t.Helper()
	f := &filtering{stub: newStub(t), result: make(chan error, 1)}
	o := Options{Socket: f.path, In: strings.NewReader(input), Out: &f.out, Err: &f.err}
	if change != nil {
		change(&o)
	}
	go func() { f.result <- Run(t.Context(), o) }()
	return f
}

func TestFilterPrintsTheAnswersAndReturns(t *testing.T) {
	t.Parallel()
	f := runFilter(t, "first\n\n  \nвторой\n", nil)
	p := f.attach()
	if !p.hello.Script {
		t.Error("hello has no Script")
	}
	m := p.expect(wire.Message)
	if m.Text != "first" {
		t.Errorf("got %q", m.Text)
	}
	p.answer(m, "**one**\n")
	m = p.expect(wire.Message)
	p.write(wire.Frame{Type: wire.Draft, Text: "tw"})
	p.answer(m, "two")
	if err := <-f.result; err != nil {
		t.Fatal(err)
	}
	if got := f.out.String(); got != "**one**\ntwo\n" {
		t.Errorf("printed %q", got)
	}
}

func TestFilterSendsOneAtATime(t *testing.T) {
	t.Parallel()
	f := runFilter(t, "first\nsecond\n", nil)
	p := f.attach()
	m := p.expect(wire.Message)
	p.write(wire.Frame{Type: wire.Accepted, ID: m.ID})
	p.write(wire.Frame{Type: wire.Message, ID: "a", ReplyTo: m.ID, Text: "part one", Part: 1, Parts: 2})
	p.expect(wire.Shown) // no second message before the last part
	p.write(wire.Frame{Type: wire.Message, ID: "b", ReplyTo: m.ID, Text: "part two", Part: 2, Parts: 2})
	p.expect(wire.Shown)
	p.answer(p.expect(wire.Message), "done")
	if err := <-f.result; err != nil {
		t.Fatal(err)
	}
	if got := f.out.String(); got != "part one\npart two\ndone\n" {
		t.Errorf("printed %q", got)
	}
}

// Messages that answer nothing here must not block the following answers.
func TestFilterShowsOtherMessagesOnStderr(t *testing.T) {
	t.Parallel()
	f := runFilter(t, "hi\n", nil)
	p := f.attach()
	m := p.expect(wire.Message)
	p.write(wire.Frame{Type: wire.Message, ID: "1", Notice: true, Text: "a reminder"})
	p.expect(wire.Shown)
	p.write(wire.Frame{Type: wire.Message, ID: "2", ReplyTo: "another-1", Text: "for another terminal"})
	p.expect(wire.Shown)
	p.write(wire.Frame{Type: wire.Echo, ID: "another-2", Text: "typed elsewhere"})
	p.answer(m, "hello")
	if err := <-f.result; err != nil {
		t.Fatal(err)
	}
	if got := f.out.String(); got != "hello\n" {
		t.Errorf("printed %q", got)
	}
	if got := f.err.String(); got != "a reminder\nfor another terminal\n" {
		t.Errorf("printed aside: %q", got)
	}
}

func TestFilterSendsAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	f := runFilter(t, "hi\n", nil)
	first := f.attach()
	m := first.expect(wire.Message)
	_ = first.conn.Close() // never acknowledged

	second := f.attach()
	if second.hello.Terminal != first.hello.Terminal {
		t.Error("another terminal after a reconnect")
	}
	again := second.expect(wire.Message)
	if again.ID != m.ID || again.Text != m.Text {
		t.Fatalf("sent %+v, then %+v", m, again)
	}
	second.write(wire.Frame{Type: wire.Accepted, ID: m.ID})
	second.write(wire.Frame{Type: wire.Message, ID: "r", ReplyTo: m.ID, Text: "once", Part: 1, Parts: 2})
	second.expect(wire.Shown)
	_ = second.conn.Close() // the confirmation may not have been recorded

	third := f.attach()
	third.write(wire.Frame{Type: wire.Message, ID: "r", ReplyTo: m.ID, Text: "once", Part: 1, Parts: 2, Repeat: true})
	third.expect(wire.Shown)
	third.write(wire.Frame{Type: wire.Message, ID: "s", ReplyTo: m.ID, Text: "end", Part: 2, Parts: 2})
	third.expect(wire.Shown)
	if err := <-f.result; err != nil {
		t.Fatal(err)
	}
	if got := f.out.String(); got != "once\nend\n" {
		t.Errorf("printed %q", got)
	}
}

func TestFilterReportsErrors(t *testing.T) {
	t.Parallel()
	t.Run("no kernel", func(t *testing.T) {
		t.Parallel()
		err := Run(t.Context(),
			Options{Socket: t.TempDir() + "/none", In: strings.NewReader("hi\n"), Out: io.Discard,
				ConnectTimeout: time.Millisecond})
		if !errors.Is(err, ErrNoKernel) || !strings.Contains(err.Error(), "switchboard run") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		f := runFilter(t, "hi\nagain\n", nil)
		p := f.attach()
		p.write(wire.Frame{Type: wire.Error, ID: p.expect(wire.Message).ID, Text: "the store accepts nothing"})
		p.answer(p.expect(wire.Message), "ok") // the remaining lines are still sent
		if err := <-f.result; !errors.Is(err, ErrUnsent) || !strings.Contains(err.Error(), "the store accepts nothing") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another version", func(t *testing.T) {
		t.Parallel()
		f := runFilter(t, "hi\n", nil)
		f.accept().write(wire.Frame{Type: wire.Error, Text: "version 1 is too old", Fatal: true})
		if err := <-f.result; err == nil || !strings.Contains(err.Error(), "too old") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not the chat socket", func(t *testing.T) {
		t.Parallel()
		f := runFilter(t, "hi\n", nil)
		f.accept().write(wire.Frame{Type: wire.Draft})
		if err := <-f.result; err == nil {
			t.Error("no error")
		}
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		err := ErrUnsent
		for patience := 50 * time.Millisecond; errors.Is(err, ErrUnsent); patience *= 2 { // the acceptance came too late
			f := runFilter(t, "hi\n", func(o *Options) { o.AnswerTimeout = patience })
			p := f.attach()
			id := p.expect(wire.Message).ID
			_ = p.conn.Write(wire.Frame{Type: wire.Accepted, ID: id})
			err = <-f.result
		}
		if !errors.Is(err, ErrUnanswered) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		s := newStub(t)
		result := make(chan error, 1)
		go func() {
			result <- Run(ctx, Options{Socket: s.path, In: strings.NewReader("hi\n"), Out: io.Discard, Err: io.Discard})
		}()
		s.attach().expect(wire.Message)
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnsent) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("line too long", func(t *testing.T) {
		t.Parallel()
		f := runFilter(t, strings.Repeat("x", wire.MaxText+10)+"\n", nil)
		f.attach()
		if err := <-f.result; err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not UTF-8", func(t *testing.T) {
		t.Parallel()
		f := runFilter(t, "a\xffb\n", nil)
		f.attach()
		if err := <-f.result; !errors.Is(err, ErrUnsent) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("output closed", func(t *testing.T) {
		t.Parallel()
		f := runFilter(t, "hi\n", func(o *Options) {
			r, w := io.Pipe()
			_ = r.Close()
			o.Out = w
		})
		p := f.attach()
		m := p.expect(wire.Message)
		p.write(wire.Frame{Type: wire.Message, ID: "1", ReplyTo: m.ID, Text: "lost?"})
		if err := <-f.result; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v", err)
		}
		if frame, err := p.conn.Read(); err == nil {
			t.Errorf("confirmed a message that could not be written: %+v", frame)
		}
	})
}

func TestFilterQuitsOnQuit(t *testing.T) {
	t.Parallel()
	f := runFilter(t, "/quit\nnever\n", nil)
	f.attach()
	if err := <-f.result; err != nil {
		t.Fatal(err)
	}
}

func TestConversationOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "work": "work", "chan:cli_channel:work": "work", "chan:cli_channel:my%20work": "my work",
	} {
		if got, err := parseConversation(in); err != nil || got != want {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"chan:cli_channel:", "chan:x", "chan:a:b:c", "chan:a:%zz",
		strings.Repeat("x", wire.MaxID+1)} {
		if got, err := parseConversation(in); err == nil {
			t.Errorf("%q: got %q", in, got)
		}
	}
	if err := Run(t.Context(),
		Options{Conversation: "a", New: true, In: strings.NewReader(""), Out: io.Discard}); err == nil {
		t.Error("a named conversation that shall be new")
	}
}

// The JSON output has the session of each text.
func TestFilterWritesJSON(t *testing.T) {
	t.Parallel()
	f := runFilter(t, "first\n", func(o *Options) { o.JSON = true })
	p := f.attach()
	m := p.expect(wire.Message)
	p.write(wire.Frame{Type: wire.Message, ID: "n", Text: "Tea!", Notice: true})
	p.expect(wire.Shown)
	p.write(wire.Frame{Type: wire.Accepted, ID: m.ID})
	p.write(wire.Frame{Type: wire.Message, ID: "a", ReplyTo: m.ID, Session: "s7", Conversation: "terminal",
		Text: "<one>\ntwo"})
	p.expect(wire.Shown)
	if err := <-f.result; err != nil {
		t.Fatal(err)
	}
	want := `{"conversation":"","text":"Tea!","notice":true}` + "\n" +
		`{"session":"s7","conversation":"terminal","text":"<one>\ntwo"}` + "\n"
	if got := f.out.String(); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if f.err.Len() > 0 {
		t.Errorf("complained %q", f.err.String())
	}
}
