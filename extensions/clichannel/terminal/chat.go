package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// drainTimeout is how long quitting waits for the kernel to accept the last
// messages.
const drainTimeout = 2 * time.Second

// chat implements Run on a terminal.
func chat(ctx context.Context, o Options) error {
	past, historyErr := history{o.HistoryFile}.load()
	e, err := newEditor(o, past)
	if err != nil {
		return err
	}
	defer e.close()
	c := &chatView{editor: e, screen: e.screen, options: o,
		theme: theme{color: o.outputStyle() == colored, language: o.Language}}
	defer c.next.drop()
	if o.outputStyle() == colored {
		c.graphics = graphicsOf(os.Getenv)
	}
	e.setPrompt(c.theme.prompt(""))
	e.showChoices, e.begun = c.showChoices, c.lineBegun
	l := newLink(o, false, c)
	c.link = l
	c.status()
	if historyErr != nil {
		c.warn(historyErr.Error())
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
	return errors.Join(err, reportUnsent(o, l.unsent()))
}

// loop reads lines until the user leaves.
func (c *chatView) loop(o Options) error {
	defer c.screen.release()
	defer c.leave()
	h := history{o.HistoryFile}
	idle := 0 // interrupts in a row
	for {
		line, err := c.editor.readLine()
		switch {
		case errors.Is(err, errInterrupt):
			if idle++; !c.editor.typing && c.interrupt() {
				idle = 0
			} else if idle == 2 {
				c.screen.print(c.theme.faint("  " + c.say("Ctrl-D or /quit leaves")))
			}
			c.screen.release()
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read terminal: %w", err)
		}
		idle = 0
		text := strings.TrimSpace(c.editor.keys.unfold(line))
		switch {
		case text == "" && len(c.next) == 0:
			c.screen.release()
			continue
		case isQuit(text):
			return nil
		}
		if err := checkText(text); err != nil {
			c.screen.print(c.theme.failure(err.Error()))
			c.screen.release()
			continue
		}
		if strings.ContainsRune(line, breakRune) {
			width, _ := c.screen.size()
			c.screen.replace(c.editor.rows(line), c.theme.ownMessage(text, width))
		}
		if !c.local(text) && !c.press(text) {
			c.submitWithFiles(text)
		}
		c.screen.release()
		if err := h.add(text); err != nil && !c.historyFailed {
			c.historyFailed = true
			c.warn(err.Error())
		}
	}
}

// reportUnsent prints the messages that the kernel has not accepted.
func reportUnsent(o Options, unsent []outgoing) error {
	if len(unsent) == 0 {
		return nil
	}
	fmt.Fprintln(o.Out, words.Say(o.Language, "Not sent:"))
	for _, m := range unsent {
		fmt.Fprintln(o.Out, "  "+m.describe())
	}
	return fmt.Errorf("%w: %s", ErrUnsent, count(len(unsent), "message"))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// chatView connects a link with the screen and the editor.
type chatView struct {
	editor  *editor
	screen  *screen
	theme   theme
	options Options
	link    *link

	historyFailed bool
	graphics      graphics

	mu       sync.Mutex
	welcomed bool // at least once
	online   bool
	failed   bool            // at least one attempt to connect failed
	waiting  map[string]bool // ids that are not accepted yet
	working  bool
	since    time.Time   // when it began to work
	tick     *time.Timer // the next change of the time that is shown; nil: none
	draftID  string      // the current draft; empty: none
	drafting string      // its text
	notReady string
	offline  map[string]bool // ids of messages typed while not connected
	next     attached        // files of the next message; only loop changes it
	offer    offer           // of the newest message
	offers   int             // how often it has changed
	seen     int             // offers when the line was begun
}

// submit sends a message.
func (c *chatView) submit(text string, files ...*file) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setOffer(nil)
	id, online := c.link.send(text, files)
	if c.waiting == nil {
		c.waiting, c.offline = map[string]bool{}, map[string]bool{}
	}
	c.waiting[id] = true
	if !online {
		c.offline[id] = true
	}
	c.render()
}

func (c *chatView) status() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.render()
}

// interrupt stops the answer that the assistant is working on; false: it is not. What
// waits and the tasks of the conversation go on.
func (c *chatView) interrupt() bool {
	c.mu.Lock()
	active := c.online && c.working
	c.mu.Unlock()
	if active {
		c.submit("/stop answer")
	}
	return active
}

// setWorking notes whether the assistant is doing something; c.mu is held.
func (c *chatView) setWorking(working bool) {
	if working && !c.working {
		c.since = time.Now()
	}
	c.working = working
}

// leave ends the updates of the screen that no event causes.
func (c *chatView) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setWorking(false)
	c.render()
}

// thinking is the live line while the assistant works, and when it changes next.
func (c *chatView) thinking(took time.Duration) (line string, next time.Duration) {
	seconds := took.Truncate(time.Second)
	if line = "  …"; seconds > 0 {
		line += " " + c.say("%s, Ctrl-C stops it", words.Translate(c.options.Language, words.Span(seconds)))
	}
	return line, seconds + time.Second - took
}

// say is a text in the language of the person.
func (c *chatView) say(text string, args ...any) string {
	return words.Say(c.options.Language, text, args...)
}

// render updates the live lines and adds permanent lines; c.mu is held.
func (c *chatView) render(lines ...string) {
	width, height := c.screen.size()
	if c.tick != nil {
		c.tick.Stop()
		c.tick = nil
	}
	var live []string
	if c.drafting != "" {
		live = c.theme.draft(c.drafting, width, max(3, height/2))
	}
	if len(c.next) > 0 {
		live = append(live, c.theme.faint("  "+c.say("attached: %s (Enter sends it, /detach removes it)", c.next.describe())))
	}
	switch {
	case !c.online && len(c.waiting) > 0:
		n := len(c.waiting)
		live = append(live, c.theme.faint("  "+words.Count(c.options.Language, "waiting for the kernel to send %d message",
			"waiting for the kernel to send %d messages", n, n)))
	case !c.online && !c.welcomed && !c.failed:
	case !c.online && !c.welcomed:
		live = append(live, c.theme.faint("  "+c.say("connecting …")))
	case !c.online:
		live = append(live, c.theme.faint("  "+c.say("not connected: your messages will be sent later")))
	case c.notReady != "":
		live = append(live, c.theme.faint("  "+c.notReady))
	case len(c.waiting) > 0:
		live = append(live, c.theme.faint("  "+c.say("sending …")))
	case c.working && c.drafting == "":
		line, next := c.thinking(time.Since(c.since))
		live = append(live, c.theme.faint(line))
		c.tick = time.AfterFunc(next, c.status)
	}
	c.screen.update(c.theme.truncate(live, width), lines...)
}

func (c *chatView) welcome(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	commands := append(strings.Fields(f.Commands), localCommands...)
	c.editor.commands.Store(&commands)
	width, _ := c.screen.size()
	var lines []string
	if c.welcomed {
		lines = append(lines, c.theme.faint("  "+c.say("reconnected")))
	} else {
		f.Text, f.Hint = cmp.Or(f.Text, c.options.Greeting), cmp.Or(f.Hint, c.options.Hint)
		lines = c.theme.welcome(f, width)
		if f.Conversation != wire.DefaultConversation {
			c.editor.setPrompt(c.theme.prompt(f.Conversation))
		}
	}
	c.welcomed, c.online, c.notReady = true, true, ""
	c.render(lines...)
}

func (c *chatView) accepted(m outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, m.id)
	c.setWorking(true)
	if c.offline[m.id] {
		delete(c.offline, m.id)
		c.render(c.theme.faint("  " + c.say("sent: %s", m.describe())))
		return
	}
	c.render()
}

func (c *chatView) refused(m outgoing, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, m.id)
	delete(c.offline, m.id)
	c.render(c.theme.failure(c.say("not sent: %q: %s", m.describe(), words.Translate(c.options.Language, reason))))
}

func (c *chatView) message(f wire.Frame) (bool, error) {
	c.print(f)
	err := c.screen.waitWritten()
	if errors.Is(err, errLeft) {
		return false, nil
	}
	return err == nil, err
}

func (c *chatView) print(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	width, _ := c.screen.size()
	defer c.showImages(f.Attachments)
	c.setOffer(f.Actions)
	if f.Notice {
		c.screen.alert(c.theme.notice(f, width)...)
		return
	}
	// A message that does not replace the draft, such as the answer to a command, keeps it.
	if c.draftID == "" || c.draftID == f.Draft {
		c.draftID, c.drafting = "", ""
		if f.Last() {
			c.setWorking(false)
		}
	}
	c.render(c.theme.answer(f, width)...)
}

func (c *chatView) confirmed(wire.Frame) {}

func (c *chatView) echo(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	width, _ := c.screen.size()
	c.setWorking(true)
	c.setOffer(nil)
	c.render(c.theme.echo(f, width)...)
}

func (c *chatView) draft(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !f.Done:
		c.setWorking(true)
		c.draftID, c.drafting = f.ID, f.Text
	case c.draftID == f.ID:
		c.setWorking(false)
		c.draftID, c.drafting = "", ""
	}
	c.render()
}

func (c *chatView) state(f wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notReady = ""
	if !f.Ready {
		c.notReady = f.Text
	}
	c.render()
}

// showChoices lists what completes the line.
func (c *chatView) showChoices(choices []string) {
	width, _ := c.screen.size()
	var lines []string
	for _, l := range markdown.Text(strings.Join(choices, " "), width-2) {
		lines = append(lines, c.theme.faint("  "+l))
	}
	c.screen.print(lines...)
}

func (c *chatView) warn(text string) { c.screen.print(c.theme.failure(text)) }

func (c *chatView) disconnected(error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
	if c.online {
		c.setWorking(false)
		c.online, c.draftID, c.drafting = false, "", ""
	}
	c.render()
}
