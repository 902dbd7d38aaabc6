package terminal

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// filter sends the lines of the input, each after the answer to the previous one,
// and writes the answers.
func filter(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := &filterView{o: o, style: o.outputStyle(), welcomed: make(chan struct{}), answered: make(chan error, 1)}
	l := newLink(o, true, v)
	down := make(chan error, 1)
	go func() { down <- l.run(ctx) }()
	defer func() {
		l.drain(ctx, drainTimeout)
		cancel()
		<-down //nolint:errcheck // the error was returned below
	}()

	lines, ended := readLines(ctx, o.In)
	online := time.NewTimer(o.ConnectTimeout)
	defer online.Stop()
	select {
	case <-v.welcomed:
	case err := <-down:
		down <- nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-online.C:
		return fmt.Errorf("%w on %s within %s: start it with `switchboard run`", ErrNoKernel, o.Socket, o.ConnectTimeout)
	}

	r := &script{o: o, view: v, link: l, down: down}
	defer r.next.drop()
	for {
		var line string
		select {
		case text, more := <-lines:
			if !more {
				var err error
				if len(r.next) > 0 {
					err = r.ask(ctx, "")
				}
				return errors.Join(r.failures, err, <-ended)
			}
			line = text
		case err := <-down:
			down <- nil
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if isQuit(line) {
			return r.failures
		}
		if err := r.run(ctx, line); err != nil {
			return err
		}
	}
}

// script runs the lines of the input.
type script struct {
	o        Options
	view     *filterView
	link     *link
	down     chan error // the link has ended
	next     attached   // files of the next message
	failures error      // of lines after which the others go on
}

// run runs one line. An error ends the script.
func (r *script) run(ctx context.Context, line string) error {
	if err := checkText(line); err != nil {
		return errors.Join(r.failures, err)
	}
	switch command, arguments := parseLocal(strings.TrimSpace(line)); command {
	case "attach":
		if problems := r.next.add(arguments, r.o.MaxFile); len(problems) > 0 {
			return errors.Join(append([]error{r.failures}, problems...)...)
		}
		return nil
	case "detach":
		r.next.drop()
		return nil
	case "save":
		return r.save(ctx, arguments)
	}
	return r.ask(ctx, line)
}

// ask sends a message and waits for the answer. A command takes no files.
func (r *script) ask(ctx context.Context, line string) error {
	var files []*file
	if line = r.view.press(line); !strings.HasPrefix(line, "/") {
		files = r.next.take()
	}
	r.view.ask(r.link, line, files)
	late := time.NewTimer(r.o.AnswerTimeout)
	defer late.Stop()
	select {
	case err := <-r.view.answered:
		r.failures = errors.Join(r.failures, err)
		return nil
	case err := <-r.down:
		r.down <- nil
		return err
	case <-late.C:
		return fmt.Errorf("%w to %q within %s", unanswered(r.link), shorten(line), r.o.AnswerTimeout)
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%w to %q", unanswered(r.link), shorten(line)), ctx.Err())
	}
}

// save saves a file and writes its path. It is asked for again if the connection breaks.
func (r *script) save(ctx context.Context, arguments string) error {
	s, err := parseSave(arguments)
	if err != nil {
		return errors.Join(r.failures, err)
	}
	late := time.NewTimer(r.o.AnswerTimeout)
	defer late.Stop()
	for {
		saved := make(chan error, 1)
		r.link.fetch(s.reference, &saving{save: s, done: func(path string, _ int64, err error) {
			if err == nil {
				_, err = fmt.Fprintln(r.o.Out, path)
			}
			saved <- err
		}})
		select {
		case err = <-saved:
		case err := <-r.down:
			r.down <- nil
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("save %s: %w", s.reference, err)
		if !errors.Is(err, errInterrupted) && !errors.Is(err, errNotConnected) {
			r.failures = errors.Join(r.failures, err)
			return nil
		}
		select {
		case <-time.After(minBackoff):
		case err := <-r.down:
			r.down <- nil
			return err
		case <-late.C:
			return errors.Join(r.failures, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func unanswered(l *link) error {
	if len(l.unsent()) > 0 {
		return ErrUnsent
	}
	return ErrUnanswered
}

// readLines reads lines until the end of the input or of ctx; then lines is closed
// and ended has the error.
func readLines(ctx context.Context, in io.Reader) (lines <-chan string, ended <-chan error) {
	out, end := make(chan string), make(chan error, 1)
	go func() {
		s := bufio.NewScanner(in)
		s.Buffer(nil, wire.MaxText+1)
		for s.Scan() {
			select {
			case out <- s.Text():
			case <-ctx.Done():
				end <- nil
				close(out)
				return
			}
		}
		err := s.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("read input: a line has more than %d bytes, the limit of a message", wire.MaxText)
		}
		end <- err
		close(out)
	}()
	return out, end
}

// checkText returns an error for a text that the channel would refuse.
func checkText(s string) error {
	switch {
	case len(s) > wire.MaxText:
		return fmt.Errorf("%w: the message has %d bytes; the limit is %d", ErrUnsent, len(s), wire.MaxText)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: the message %q is not UTF-8", ErrUnsent, shorten(s))
	}
	return nil
}

// isQuit reports whether a line is a command that ends the chat.
func isQuit(s string) bool {
	switch strings.TrimSpace(s) {
	case "/quit", "/exit":
		return true
	}
	return false
}

// shorten returns the beginning of a text, for messages about it.
func shorten(s string) string {
	s = strings.Join(strings.Fields(markdown.Clean(s)), " ")
	if r := []rune(s); len(r) > 40 {
		return string(r[:39]) + "…"
	}
	return s
}

// filterView prints the answers to one question at a time.
type filterView struct {
	o        Options
	style    style
	once     sync.Once
	welcomed chan struct{}
	answered chan error

	mu      sync.Mutex
	offer   offer
	current string // id of the unanswered message; empty: none
	asked   map[string]bool
}

func (v *filterView) ask(l *link, text string, files []*file) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asked == nil {
		v.asked = map[string]bool{}
	}
	v.current, _ = l.send(text, files)
	v.asked[v.current] = true
}

func (v *filterView) answer(id string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if id != "" && id == v.current {
		v.current = ""
		v.answered <- err
	}
}

func (v *filterView) welcome(wire.Frame) { v.once.Do(func() { close(v.welcomed) }) }

// message prints the answers to messages of this filter. Other messages (a reminder,
// an answer to another terminal) go to the error output, away from scripts: if they
// were not shown, they would block the following answers.
func (v *filterView) message(f wire.Frame) (bool, error) {
	if v.o.JSON {
		return v.object(f)
	}
	v.setOffer(f)
	t := theme{language: v.o.Language}
	names := strings.Join(append(t.files(f.Attachments), t.actions(f, lineWidth)...), "\n")
	if v.question(f) == "" {
		_, err := fmt.Fprintln(v.o.Err, join(f.Text, names))
		return err == nil, err
	}
	text := f.Text
	if v.style != plain {
		fd, _ := isTerminal(v.o.Out)
		width, _ := sizeOf(fd)
		text = strings.Join(markdown.Render(f.Text, width, v.style == colored), "\n")
	}
	text = join(text, names)
	if _, err := io.WriteString(v.o.Out, strings.TrimRight(text, "\n")+"\n"); err != nil {
		return false, fmt.Errorf("write the answer: %w", err)
	}
	return true, nil
}

// lineWidth is the length of a line that lists actions.
const lineWidth = 120

// join puts the names of files and actions below a text.
func join(text, names string) string {
	return strings.Trim(strings.TrimRight(text, "\n")+"\n"+names, "\n")
}

func (v *filterView) setOffer(f wire.Frame) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.offer = f.Actions
}

// press returns the command for a line that is the number of an action.
func (v *filterView) press(line string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	a, _ := v.offer.pressed(line)
	v.offer = nil
	return cmp.Or(a.Command, line)
}

// object prints a message as a JSON object on one line.
func (v *filterView) object(f wire.Frame) (bool, error) {
	e := json.NewEncoder(v.o.Out)
	e.SetEscapeHTML(false)
	if err := e.Encode(Answer{
		Session: f.Session, Conversation: f.Conversation, Text: f.Text, Part: f.Part, Parts: f.Parts,
		Notice: f.Notice || v.question(f) == "", Attachments: f.Attachments,
		Actions: f.Actions,
	}); err != nil {
		return false, fmt.Errorf("write the answer: %w", err)
	}
	return true, nil
}

func (v *filterView) confirmed(f wire.Frame) {
	if f.Last() {
		v.answer(v.question(f), nil)
	}
}

// question returns the id of the message that f answers; empty: not from this filter.
func (v *filterView) question(f wire.Frame) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := f.ReplyTo
	if id == "" && !f.Notice {
		id = v.current
	}
	if !v.asked[id] {
		return ""
	}
	return id
}

func (v *filterView) refused(m outgoing, reason string) {
	v.answer(m.id, fmt.Errorf("%w: %q: %s", ErrUnsent, m.describe(), reason))
}

func (v *filterView) warn(text string) { fmt.Fprintln(v.o.Err, "switchboard chat:", text) }

func (v *filterView) accepted(outgoing)  {}
func (v *filterView) echo(wire.Frame)    {}
func (v *filterView) draft(wire.Frame)   {}
func (v *filterView) state(wire.Frame)   {}
func (v *filterView) disconnected(error) {}
