package terminal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

const (
	minBackoff     = 25 * time.Millisecond
	maxBackoff     = time.Second
	writeTimeout   = 10 * time.Second
	welcomeTimeout = 10 * time.Second
	keepShown      = 4096 // ids
)

// view displays the events of a link. One goroutine calls its methods, in the order
// of the events; another may call refused.
type view interface {
	welcome(f wire.Frame)
	accepted(m outgoing)
	refused(m outgoing, reason string)
	// message shows f; false leaves it unconfirmed, an error ends the link.
	message(f wire.Frame) (bool, error)
	// confirmed is called after the confirmation was queued.
	confirmed(f wire.Frame)
	echo(f wire.Frame)
	draft(f wire.Frame)
	state(f wire.Frame)
	warn(text string)
	disconnected(err error)
}

// outgoing is a message that the kernel has not accepted yet.
type outgoing struct {
	id, text string
	files    []*file
}

// queued is a frame to be written, after the files that it names.
type queued struct {
	wire.Frame
	files []*file
}

// link keeps a connection to the channel, and reconnects when it breaks.
type link struct {
	socket string
	token  string // path of the token file
	hello  wire.Frame
	view   view
	shown  *wire.Recent

	mu      sync.Mutex
	outbox  []outgoing // not accepted, in order
	ready   bool       // welcomed: frames may be queued
	attach  bool       // the channel takes files
	queue   []queued   // to be written
	queued  chan struct{}
	busy    int           // frames being handled and batches being written
	changed chan struct{} // one of the fields above changed
	counter int
	fetches map[string]receiver // by the id of the request
}

func newLink(o Options, script bool, v view) *link {
	return &link{
		socket:  o.Socket,
		token:   o.TokenFile,
		view:    v,
		shown:   wire.NewRecent(keepShown),
		queued:  make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
		fetches: map[string]receiver{},
		hello: wire.Frame{
			Type: wire.Hello, Version: wire.Version, Terminal: wire.NewID(),
			Conversation: o.Conversation, New: o.New, Agent: o.Agent, Language: o.Language, Script: script,
		},
	}
}

// send queues a text with files for the kernel and reports its id and whether there is a
// connection to send it on. The link closes the files.
func (l *link) send(text string, files []*file) (id string, online bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := outgoing{id: l.nextID(), text: text, files: files}
	l.outbox = append(l.outbox, m)
	if l.ready {
		l.enqueue(m.queued())
	}
	return m.id, l.ready
}

// nextID returns a new id; l.mu is held.
func (l *link) nextID() string {
	l.counter++
	return fmt.Sprintf("%s-%d", l.hello.Terminal, l.counter)
}

func (m outgoing) queued() queued {
	return queued{wire.Frame{Type: wire.Message, ID: m.id, Text: m.text}, m.files}
}

// describe is the message in a line about it.
func (m outgoing) describe() string {
	if len(m.files) == 0 {
		return shorten(m.text)
	}
	return strings.TrimSpace(shorten(m.text) + " [" + attached(m.files).describe() + "]")
}

// unsent returns what the kernel has not accepted.
func (l *link) unsent() []outgoing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]outgoing(nil), l.outbox...)
}

// addBusy changes busy, for drain.
func (l *link) addBusy(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy += n
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// drain waits until all messages are accepted and confirmed, the connection breaks,
// or the limit has passed.
func (l *link) drain(ctx context.Context, limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		l.mu.Lock()
		done := len(l.outbox)+len(l.queue)+l.busy == 0 || !l.ready
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-l.changed:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// put queues a frame; l.mu is held.
func (l *link) enqueue(f queued) {
	l.queue = append(l.queue, f)
	select {
	case l.queued <- struct{}{}:
	default:
	}
}

// take removes a message from the outbox.
func (l *link) take(id string) (outgoing, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, m := range l.outbox {
		if m.id == id {
			l.outbox = append(l.outbox[:i:i], l.outbox[i+1:]...)
			for _, f := range m.files {
				f.close()
			}
			return m, true
		}
	}
	return outgoing{}, false
}

// fatalError marks errors after which reconnecting does not help.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// run connects, and reconnects, until ctx is done or an error is fatal.
func (l *link) run(ctx context.Context) error {
	wait := minBackoff
	defer l.addBusy(0)
	for {
		welcomed, err := l.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if fatal, ok := errors.AsType[fatalError](err); ok {
			return fatal.error
		}
		l.view.disconnected(err)
		if welcomed {
			wait = minBackoff
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// connect runs one connection.
func (l *link) connect(ctx context.Context) (welcomed bool, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", l.socket)
	if err != nil {
		return false, err
	}
	conn := wire.NewConn(c, writeTimeout)
	ctx, cancel := context.WithCancel(ctx)
	var writer sync.WaitGroup
	defer func() {
		l.mu.Lock()
		l.ready, l.queue = false, nil
		l.mu.Unlock()
		l.endFetches()
		l.addBusy(0)
		cancel()
		writer.Wait()
	}()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()

	hello := l.hello
	if hello.Token, err = readToken(l.token); err != nil {
		return false, err
	}
	if err := conn.Write(hello); err != nil {
		return false, err
	}
	if err := l.awaitWelcome(conn); err != nil {
		return false, err
	}
	writer.Go(func() { l.write(ctx, conn) })
	for {
		f, err := conn.Read()
		if errors.Is(err, wire.ErrBadFrame) {
			l.view.warn(err.Error())
			continue
		}
		if err != nil {
			return true, err
		}
		if err := l.handle(f); err != nil {
			return true, err
		}
	}
}

// readToken reads the token that the channel requires.
func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read terminal token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

func (l *link) awaitWelcome(conn *wire.Conn) error {
	if err := conn.SetReadTimeout(welcomeTimeout); err != nil {
		return err
	}
	f, err := conn.Read()
	switch {
	case err != nil:
		return err
	case f.Type == wire.Error && f.Fatal:
		return fatalError{errors.New(f.Text)}
	case f.Type == wire.Error:
		return errors.New(f.Text)
	case f.Type != wire.Welcome:
		return fatalError{fmt.Errorf("connect to %s: got a %s frame instead of welcome", l.socket, f.Type)}
	}
	if err := conn.SetReadTimeout(0); err != nil {
		return err
	}
	l.view.welcome(f)
	l.mu.Lock()
	defer l.mu.Unlock()
	// The next connection continues this conversation.
	l.hello.Conversation, l.hello.New = f.Conversation, false
	l.ready, l.attach, l.queue = true, f.Attach, nil
	for _, m := range l.outbox {
		l.enqueue(m.queued())
	}
	return nil
}

// write writes queued frames; an error ends the connection.
func (l *link) write(ctx context.Context, conn *wire.Conn) {
	for {
		l.mu.Lock()
		batch := l.queue
		l.queue = nil
		l.busy += min(len(batch), 1)
		l.mu.Unlock()
		for _, f := range batch {
			if err := l.writeQueued(conn, f); err != nil {
				l.addBusy(-1)
				_ = conn.Close()
				return
			}
		}
		if len(batch) > 0 {
			l.addBusy(-1)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-l.queued:
		}
	}
}

// writeQueued writes the files of a frame, and the frame. A message with a file that
// can't be read is not sent.
func (l *link) writeQueued(conn *wire.Conn, q queued) error {
	for i, f := range q.files {
		id := fmt.Sprintf("%s-file-%d", q.ID, i+1)
		err := l.sendFile(conn, f, id)
		if unreadable, ok := errors.AsType[fileError](err); ok {
			if m, ok := l.take(q.ID); ok { // otherwise an answer has come
				l.view.refused(m, unreadable.Error())
			}
			return nil
		}
		if err != nil {
			return err
		}
		q.Files = append(q.Files, id)
	}
	return conn.Write(q.Frame)
}

func (l *link) handle(f wire.Frame) error {
	l.addBusy(1)
	defer l.addBusy(-1)
	switch f.Type {
	case wire.Accepted:
		if m, ok := l.take(f.ID); ok {
			l.view.accepted(m)
		}
	case wire.Message:
		if m, ok := l.take(f.ReplyTo); ok { // an answer implies acceptance
			l.view.accepted(m)
		}
		known := l.shown.Has(f.ID)
		if known {
			l.view.draft(wire.Frame{Type: wire.Draft, ID: f.Draft, Done: true})
		} else {
			confirmed, err := l.view.message(f)
			if err != nil {
				return fatalError{err}
			}
			if !confirmed {
				return nil
			}
			l.shown.Put(f.ID, "")
		}
		l.mu.Lock()
		l.enqueue(queued{Frame: wire.Frame{Type: wire.Shown, ID: f.ID}})
		l.mu.Unlock()
		if !known {
			l.view.confirmed(f)
		}
	case wire.File:
		l.receive(f)
	case wire.Echo:
		l.view.echo(f)
	case wire.Draft:
		l.view.draft(f)
	case wire.State:
		l.view.state(f)
	case wire.Error:
		if f.Fatal {
			return fatalError{errors.New(f.Text)}
		}
		if m, ok := l.take(f.ID); ok {
			l.view.refused(m, f.Text)
		} else if f.ID == "" {
			l.view.warn(f.Text)
		} else {
			l.endFetch(f.ID, errors.New(f.Text))
		}
	}
	return nil
}
