package terminal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// console is a chat on a pseudo-terminal with an emulated screen.
type console struct {
	*stub
	keyboard *os.File
	result   chan error
	cancel   context.CancelFunc
	history  string

	mu      sync.Mutex
	changed *sync.Cond
	screen  vt10x.Terminal
	bytes   strings.Builder
	gone    bool
}

const (
	columns, rows = 60, 20
	patience      = 2 * time.Minute // limit of a wait for the screen
)

func openConsole(t *testing.T, change func(*Options)) *console {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal here:", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	c := &console{stub: newStub(t), keyboard: master, result: make(chan error, 1),
		history: filepath.Join(t.TempDir(), "history")}
	c.changed = sync.NewCond(&c.mu)
	c.screen = vt10x.New(vt10x.WithSize(columns, rows))
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			c.mu.Lock()
			_, _ = c.screen.Write(b[:n])
			c.bytes.Write(b[:n])
			c.gone = err != nil
			c.changed.Broadcast()
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	o := Options{Socket: c.path, HistoryFile: c.history, In: slave, Out: slave, Color: ColorNever}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = cancel
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.result <- chat(ctx, o)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = slave.Close()
		_ = master.Close()
	})
	return c
}

// attach sends a welcome and waits until the screen shows it.
func (c *console) attach() *peer {
	c.t.Helper()
	p := c.stub.attach()
	c.await("a welcome", func([]string) bool {
		all := c.bytes.String()
		return strings.Contains(all, "a test model") || strings.Contains(all, "reconnected")
	})
	return p
}

func (c *console) press(keys string) {
	c.t.Helper()
	if _, err := c.keyboard.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// workingFor is the time that the live line of a working assistant shows.
var workingFor = regexp.MustCompile(`^(  …) .*`)

// lines returns the lines of the screen, without empty lines at the end, and without
// the time that the assistant has worked.
func (c *console) lines() []string {
	var out []string
	for l := range strings.SplitSeq(c.screen.String(), "\n") {
		out = append(out, workingFor.ReplaceAllString(strings.TrimRight(l, " \x00"), "$1"))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// await waits until the screen is as wanted, and fails the test with its lines after
// the limit.
func (c *console) await(what string, wanted func(lines []string) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !wanted(c.lines()) {
		if c.gone || ctx.Err() != nil {
			c.t.Fatalf("the screen never showed %s:\n%s", what, strings.Join(c.lines(), "\n"))
		}
		c.changed.Wait()
	}
}

// see waits for a screen that ends with these lines.
func (c *console) see(end ...string) {
	c.t.Helper()
	c.await(strings.Join(end, " | "), func(lines []string) bool {
		if len(lines) < len(end) {
			return false
		}
		for i, l := range lines[len(lines)-len(end):] {
			if l != end[i] {
				return false
			}
		}
		return true
	})
}

func TestChatShowsAConversation(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	if p.hello.Script {
		t.Error("hello has Script set")
	}
	c.see("Switchboard · a test model", "", "›")
	c.press("привет, **мир**\r")
	m := p.expect(wire.Message)
	if m.Text != "привет, **мир**" {
		t.Errorf("sent %q", m.Text)
	}
	c.see("› привет, **мир**", "  sending …", "›")
	p.write(wire.Frame{Type: wire.Accepted, ID: m.ID})
	c.see("› привет, **мир**", "  …", "›")
	p.write(wire.Frame{Type: wire.Draft, Text: "I see"})
	c.see("› привет, **мир**", "● I see", "›")
	p.write(wire.Frame{Type: wire.Draft, Text: "I see a **lot**\n\n- of"})
	c.see("● I see a lot", "", "  • of", "›")
	p.write(wire.Frame{Type: wire.Message, ID: "1", ReplyTo: m.ID, Text: "I saw a **lot**\n\n- of it"})
	c.see("› привет, **мир**", "● I saw a lot", "", "  • of it", "", "›")
	p.expect(wire.Shown)
	c.press("/quit\r")
	if err := <-c.result; err != nil {
		t.Error(err)
	}
}

func TestChatKeepsTheLineWhileMessagesArrive(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	typed := "a line that is long enough to be wrapped at the edge of the screen"
	c.press(typed + "\x1b[D\x1b[D") // the cursor is in the middle
	c.see("› "+typed[:columns-2], typed[columns-2:])
	for i, text := range []string{"one", "**two**\n\nlines", strings.Repeat("word ", 30)} {
		p.write(wire.Frame{Type: wire.Draft, Text: text + " …"})
		p.write(wire.Frame{Type: wire.Message, ID: string(rune('a' + i)), Text: text})
		p.expect(wire.Shown)
		c.see("", "› "+typed[:columns-2], typed[columns-2:])
	}
	c.press("XX\r")
	if m := p.expect(wire.Message); m.Text != typed[:len(typed)-2]+"XX"+typed[len(typed)-2:] {
		t.Errorf("sent %q", m.Text)
	}
}

func TestChatPastesSeveralLinesAsOneMessage(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	c.press("\x1b[200~one\ntwo\r\n\tthree\x1b[31m\x1b[201~!")
	c.see("› one↵two↵ three[31m!")
	c.press("\r")
	if m := p.expect(wire.Message); m.Text != "one\ntwo\n\tthree[31m!" {
		t.Errorf("sent %q", m.Text)
	}
	c.see("› one", "  two", "      three[31m!", "  sending …", "›")
	c.press("\x1b[A") // from the history
	c.see("› one↵two↵ three[31m!")
	c.press("\x15a\x1b\rb\nc\r") // Alt-Enter and Ctrl-J
	if m := p.expect(wire.Message); m.Text != "a\nb\nc" {
		t.Errorf("sent %q", m.Text)
	}
	long := strings.Repeat("много строк\n", 200)
	c.press("\x1b[200~" + long + "\x1b[201~what is this?")
	c.see("› [pasted text #1, 200 lines]what is this?")
	c.press("\r")
	if m := p.expect(wire.Message); m.Text != long+"what is this?" {
		t.Errorf("sent %q", m.Text)
	}
}

func TestChatAcceptsInputTypedAhead(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	c.press("one\rдва\rthree\rfour")
	for _, want := range []string{"one", "два", "three"} {
		if m := p.expect(wire.Message); m.Text != want {
			t.Errorf("sent %q, want %q", m.Text, want)
		}
	}
	c.see("› one", "› два", "› three", "  sending …", "› four")
}

// Ctrl-C stops the assistant while it works, but only clears a line that has text.
func TestChatInterruptStopsTheAssistant(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	c.press("a story\r")
	p.write(wire.Frame{Type: wire.Accepted, ID: p.expect(wire.Message).ID})
	c.see("› a story", "  …", "›")
	c.press("not this\x03")
	c.see("› not this^C", "  …", "›")
	c.press("\x03")
	stop := p.expect(wire.Message)
	if stop.Text != "/stop answer" {
		t.Fatalf("Ctrl-C sent %q", stop.Text)
	}
	p.answer(stop, "Stopped.")
	c.see("● Stopped.", "", "›")
	c.press("\x03\x03") // nothing to stop
	c.see("› ^C", "› ^C", "  Ctrl-D or /quit leaves", "›")
}

// The mark of a working assistant moves, and says how to stop it.
func TestChatShowsHowLongTheAssistantWorks(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	c.press("a story\r")
	p.write(wire.Frame{Type: wire.Accepted, ID: p.expect(wire.Message).ID})
	c.await("two times", func([]string) bool {
		all := c.bytes.String()
		return strings.Contains(all, "  … 1 s, Ctrl-C stops it") && strings.Contains(all, "  … 2 s, Ctrl-C stops it")
	})
	p.write(wire.Frame{Type: wire.Message, ID: "m1", Text: "The end."})
	p.expect(wire.Shown)
	c.see("› a story", "● The end.", "", "›")
}

func TestThinking(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]struct {
		line string
		next time.Duration
	}{
		0:                       {"  …", time.Second},
		999 * time.Millisecond:  {"  …", time.Millisecond},
		1500 * time.Millisecond: {"  … 1 s, Ctrl-C stops it", 500 * time.Millisecond},
		83 * time.Second:        {"  … 1 min 23 s, Ctrl-C stops it", time.Second},
	} {
		if line, next := (&chatView{}).thinking(took); line != want.line || next != want.next {
			t.Errorf("after %s: %q, next in %s", took, line, next)
		}
	}
}

func TestChatInterruptClearsTheLine(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	c.see("Switchboard · a test model", "", "›")
	c.press("never\x03")
	c.see("› never^C", "›")
	c.press("\x03")
	c.see("› never^C", "› ^C", "  Ctrl-D or /quit leaves", "›")
	c.press("sent\r")
	if m := p.expect(wire.Message); m.Text != "sent" {
		t.Errorf("sent %q", m.Text)
	}
	p.write(wire.Frame{Type: wire.Accepted, ID: "x"})
	c.press("\x04")
	if err := <-c.result; !errors.Is(err, ErrUnsent) { // not accepted
		t.Errorf("got %v", err)
	}
	c.see("Not sent:", "  sent")
}

func TestChatSurvivesAKernelRestart(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	c.see("Switchboard · a test model", "", "›")
	c.press("half a line")
	c.see("› half a line")
	_ = c.l.Close()
	_ = p.conn.Close()
	c.see("  not connected: your messages will be sent later", "› half a line")
	c.press(" and the rest\r")
	c.see("› half a line and the rest", "  waiting for the kernel to send 1 message", "›")
	c.open()
	p = c.attach()
	m := p.expect(wire.Message)
	p.write(wire.Frame{Type: wire.Accepted, ID: m.ID})
	c.see("› half a line and the rest", "  reconnected", "  sent: half a line and the rest", "  …", "›")
	if m.Text != "half a line and the rest" {
		t.Errorf("sent %q", m.Text)
	}
}

func TestChatShowsAMessageOnce(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	for range 2 {
		p.write(wire.Frame{Type: wire.Message, ID: "1", Text: "only once"})
		if f := p.expect(wire.Shown); f.ID != "1" {
			t.Fatalf("confirmed %q", f.ID)
		}
	}
	_ = p.conn.Close()
	p = c.attach()
	p.write(wire.Frame{Type: wire.Message, ID: "1", Text: "only once", Repeat: true})
	p.expect(wire.Shown)
	p.write(wire.Frame{Type: wire.Message, ID: "2", Notice: true, Text: "end"})
	p.expect(wire.Shown)
	c.see("● only once", "", "  reconnected", "◆ end", "", "›")
	c.await("one bell, for the notice", func([]string) bool { return strings.Count(c.bytes.String(), "\a") == 1 })
}

func TestChatShowsOthersRefusalsAndStates(t *testing.T) {
	t.Parallel()
	c := openConsole(t, nil)
	p := c.attach()
	p.write(wire.Frame{Type: wire.Echo, ID: "other-1", Text: "typed elsewhere"})
	c.see("» typed elsewhere", "  …", "›")
	p.write(wire.Frame{Type: wire.Draft, Done: true})
	c.see("» typed elsewhere", "›")
	c.press("too much\r")
	p.write(wire.Frame{Type: wire.Error, ID: p.expect(wire.Message).ID, Text: "the store\x1b[2J is full"})
	c.see("› too much", `✗ not sent: "too much": the store[2J is full`, "›")
	p.write(wire.Frame{Type: wire.State, Text: "the disk is full"})
	c.see("  the disk is full", "›")
	p.write(wire.Frame{Type: wire.State, Ready: true})
	p.write(wire.Frame{Type: wire.Error, Text: "what was that?"})
	c.see("✗ what was that?", "›")
}

func TestChatRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(c *console, p *peer){
		"quit":      func(c *console, _ *peer) { c.press("/exit\r") },
		"cancelled": func(c *console, _ *peer) { c.cancel() },
		"fatal":     func(_ *console, p *peer) { p.write(wire.Frame{Type: wire.Error, Text: "go away", Fatal: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := openConsole(t, nil)
			p := c.attach()
			c.see("Switchboard · a test model", "", "›")
			leave(c, p)
			err := <-c.result
			if (name == "fatal") != (err != nil) {
				t.Errorf("got %v", err)
			}
			c.await("that bracketed paste is off", func([]string) bool {
				all := c.bytes.String()
				return strings.LastIndex(all, disableMode) > strings.LastIndex(all, enableMode)
			})
		})
	}
}

func TestChatKeepsAPrivateHistory(t *testing.T) {
	t.Parallel()
	c := openConsole(t, func(o *Options) {
		if err := os.WriteFile(o.HistoryFile, []byte("from before\n"), 0o644); err != nil { //nolint:gosec // to be repaired
			t.Fatal(err)
		}
	})
	p := c.attach()
	c.press("\x1b[A")
	c.see("› from before")
	c.press("\r")
	p.answer(p.expect(wire.Message), "ok")
	c.press("/quit\r")
	if err := <-c.result; err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(c.history)
	if err != nil || string(b) != "from before\nfrom before\n" {
		t.Errorf("history is %q, %v", b, err)
	}
	if info, err := os.Stat(c.history); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("history is %v, %v", info.Mode(), err)
	}
}

func TestChatShowsTheNameOfItsConversation(t *testing.T) {
	t.Parallel()
	c := openConsole(t, func(o *Options) { o.Conversation, o.Agent = "work", "chief" })
	p := c.attach()
	if p.hello.Conversation != "work" || p.hello.Agent != "chief" {
		t.Errorf("hello %+v", p.hello)
	}
	c.see("Switchboard · a test model", "", "work ›")
}
