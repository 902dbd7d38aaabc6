package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// drainTimeout is how long a user who leaves waits for the kernel to accept what
// was typed last.
const drainTimeout = 2 * time.Second

// chat is Run on a terminal.
func chat(ctx context.Context, o Options) error {
	past, historyErr := history{o.HistoryFile}.load()
	e, err := newEditor(o, past)
	if err != nil {
		return err
	}
	defer e.close()
	c := &chatView{editor: e, screen: e.screen, theme: theme{color: o.colorful() == colored}, options: o}
	e.setPrompt(c.theme.prompt(""))
	e.offer = c.choices
	l := newLink(o, false, c)
	c.link = l
	c.status()
	if historyErr != nil {
		c.complaint(historyErr.Error())
	}

	ctx, cancel := context.WithCancel(ctx)
	down := make(chan error, 1)
	go func() {
		err := l.run(ctx)
		cancel()
		down <- err
	}()
	stop := context.AfterFunc(ctx, e.close)
	defer stop()

	err = c.loop(o)
	l.drain(ctx, drainTimeout)
	cancel()
	err = errors.Join(err, <-down)
	e.close()
	return errors.Join(err, reportUnsent(o.Out, l.unsent()))
}

// loop reads lines until the user leaves.
func (c *chatView) loop(o Options) error {
	defer c.screen.release()
	h := history{o.HistoryFile}
	idle := 0 // interrupts in a row
	for {
		line, err := c.editor.readLine()
		switch {
		case errors.Is(err, errInterrupt):
			if idle++; idle == 2 {
				c.screen.print(c.theme.faint("  Ctrl-D or /quit leaves, /stop interrupts the assistant"))
			}
			c.screen.release()
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the terminal: %w", err)
		}
		idle = 0
		text := strings.TrimSpace(c.editor.keys.unfold(line))
		switch {
		case text == "":
			c.screen.release()
			continue
		case isQuit(text):
			return nil
		}
		if err := checkText(text); err != nil {
			c.screen.print(c.theme.trouble(err.Error()))
			c.screen.release()
			continue
		}
		if strings.ContainsRune(line, breakRune) {
			width, _ := c.screen.size()
			c.screen.replace(c.editor.rows(line), c.theme.own(text, width))
		}
		c.submit(text)
		c.screen.release()
		if err := h.add(text); err != nil && !c.historyFailed {
			c.historyFailed = true
			c.complaint(err.Error())
		}
	}
}

// reportUnsent says what the kernel never accepted.
func reportUnsent(out io.Writer, unsent []outgoing) error {
	if len(unsent) == 0 {
		return nil
	}
	fmt.Fprintln(out, "The kernel never accepted:")
	for _, m := range unsent {
		fmt.Fprintln(out, "  "+shorten(m.text))
	}
	return fmt.Errorf("%w: %s", ErrUnsent, count(len(unsent), "message"))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// chatView is what a link and the user see of each other.
type chatView struct {
	editor  *editor
	screen  *screen
	theme   theme
	options Options
	link    *link

	historyFailed bool

	mu       sync.Mutex
	known    bool // welcomed once
	online   bool
	failed   bool            // to connect, at least once
	waiting  map[string]bool // ids not accepted while online is or was
	working  bool
	draftID  string // the draft that came last and has not ended
	drafting string // its text
	notReady string
	late     map[string]bool // typed while there was no connection
}

// submit sends a text.
func (c *chatView) submit(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, online := c.link.send(text)
	if c.waiting == nil {
		c.waiting, c.late = map[string]bool{}, map[string]bool{}
	}
	c.waiting[id] = true
	if !online {
		c.late[id] = true
	}
	c.show()
}

func (c *chatView) status() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.show()
}

// show brings the live lines up to date and adds lines that stay; c.mu is held.
func (c *chatView) show(lines ...string) {
	width, height := c.screen.size()
	var live []string
	if c.drafting != "" {
		live = c.theme.draft(c.drafting, width, max(3, height/2))
	}
	switch {
	case !c.online && len(c.waiting) > 0:
		live = append(live, c.theme.faint("  not sent yet, waiting for the kernel: "+count(len(c.waiting), "message")))
	case !c.online && !c.known && !c.failed:
	case !c.online && !c.known:
		live = append(live, c.theme.faint("  connecting …"))
	case !c.online:
		live = append(live, c.theme.faint("  not connected: what you write is sent later"))
	case c.notReady != "":
		live = append(live, c.theme.faint("  "+c.notReady))
	case len(c.waiting) > 0:
		live = append(live, c.theme.faint("  sending …"))
	case c.working && c.drafting == "":
		live = append(live, c.theme.faint("  …"))
	}
	c.screen.update(c.theme.cut(live, width), lines...)
}

func (c *chatView) welcome(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	commands := strings.Fields(f.Commands)
	c.editor.commands.Store(&commands)
	width, _ := c.screen.size()
	var lines []string
	if c.known {
		lines = append(lines, c.theme.faint("  connected again"))
	} else {
		f.Text, f.Hint = cmp.Or(f.Text, c.options.Greeting), cmp.Or(f.Hint, c.options.Hint)
		lines = c.theme.welcome(f, width)
		if f.Conversation != wire.DefaultConversation {
			c.editor.setPrompt(c.theme.prompt(f.Conversation))
		}
	}
	c.known, c.online, c.notReady = true, true, ""
	c.show(lines...)
}

func (c *chatView) accepted(m outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, m.id)
	c.working = true
	if c.late[m.id] {
		delete(c.late, m.id)
		c.show(c.theme.faint("  sent: " + shorten(m.text)))
		return
	}
	c.show()
}

func (c *chatView) refused(m outgoing, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, m.id)
	delete(c.late, m.id)
	c.show(c.theme.trouble(fmt.Sprintf("not sent: %q: %s", shorten(m.text), reason)))
}

func (c *chatView) message(f wire.Frame) (bool, error) {
	c.print(f)
	err := c.screen.settled()
	if errors.Is(err, errLeft) {
		return false, nil
	}
	return err == nil, err
}

func (c *chatView) print(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	width, _ := c.screen.size()
	if f.Notice {
		c.screen.alert(c.theme.notice(f, width)...)
		return
	}
	// What answers something else, such as a command, leaves the draft alone.
	if c.draftID == "" || c.draftID == f.Draft {
		c.draftID, c.drafting = "", ""
		if f.Last() {
			c.working = false
		}
	}
	c.show(c.theme.answer(f, width)...)
}

func (c *chatView) confirmed(wire.Frame) {}

func (c *chatView) echo(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	width, _ := c.screen.size()
	c.working = true
	c.show(c.theme.elsewhere(f.Text, width)...)
}

func (c *chatView) draft(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !f.Done:
		c.working, c.draftID, c.drafting = true, f.ID, f.Text
	case c.draftID == f.ID:
		c.working, c.draftID, c.drafting = false, "", ""
	}
	c.show()
}

func (c *chatView) state(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notReady = ""
	if !f.Ready {
		c.notReady = f.Text
	}
	c.show()
}

// choices are the commands that somebody may be about to write.
func (c *chatView) choices(commands []string) {
	width, _ := c.screen.size()
	var lines []string
	for _, l := range markdown.Text("/"+strings.Join(commands, " /"), width-2) {
		lines = append(lines, c.theme.faint("  "+l))
	}
	c.screen.print(lines...)
}

func (c *chatView) complaint(text string) { c.screen.print(c.theme.trouble(text)) }

func (c *chatView) disconnected(error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
	if c.online {
		c.online, c.working, c.draftID, c.drafting = false, false, "", ""
	}
	c.show()
}
