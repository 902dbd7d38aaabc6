package terminal

import (
	"errors"
	"io"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
)

// fileError marks an error of a file, not of the connection.
type fileError struct{ error }

func (e fileError) Unwrap() error { return e.error }

var (
	errTakesNoFiles = words.Errorf("the running kernel is older and takes no files: restart it")
	errNotConnected = words.Errorf("there is no connection to the kernel now: try again later")
	errInterrupted  = words.Errorf("the connection to the kernel broke: try again")
)

// sendFile writes a file as frames.
func (l *link) sendFile(conn *wire.Conn, f *file, id string) error {
	l.mu.Lock()
	attach := l.attach
	l.mu.Unlock()
	if !attach {
		return fileError{errTakesNoFiles}
	}
	from := io.NewSectionReader(f.content, 0, 1<<62)
	chunk := make([]byte, wire.Chunk)
	for name := f.name; ; name = "" {
		n, err := io.ReadFull(from, chunk)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fileError{unreadable(markdown.Clean(f.name), err)}
		}
		if err := conn.Write(wire.Frame{Type: wire.File, ID: id, Name: name, Data: chunk[:n], Done: last}); err != nil {
			return err
		}
		if last {
			return nil
		}
	}
}

// receiver takes a file of the conversation. Calls come one after the other: begin, then
// Write for its parts, and at the end end, also if there was no beginning.
type receiver interface {
	begin(a contract.Attachment) error
	io.Writer
	end(err error)
}

// fetch asks for a file of the conversation.
func (l *link) fetch(reference string, to receiver) {
	l.mu.Lock()
	ready := l.ready
	if ready {
		id := l.nextID()
		l.fetches[id] = to
		l.enqueue(queued{Frame: wire.Frame{Type: wire.Fetch, ID: id, Text: reference}})
	}
	l.mu.Unlock()
	if !ready {
		to.end(errNotConnected)
	}
}

// receive handles a part of a file.
func (l *link) receive(f wire.Frame) {
	l.mu.Lock()
	to := l.fetches[f.ID]
	l.mu.Unlock()
	if to == nil {
		return
	}
	var err error
	for _, a := range f.Attachments {
		err = to.begin(a)
	}
	if err == nil {
		_, err = to.Write(f.Data)
	}
	if err != nil || f.Done {
		l.endFetch(f.ID, err)
	}
}

func (l *link) endFetch(id string, err error) {
	l.mu.Lock()
	to := l.fetches[id]
	delete(l.fetches, id)
	l.mu.Unlock()
	if to != nil {
		to.end(err)
	}
}

// endFetches ends what the connection can't finish.
func (l *link) endFetches() {
	l.mu.Lock()
	var ids []string
	for id := range l.fetches {
		ids = append(ids, id)
	}
	l.mu.Unlock()
	for _, id := range ids {
		l.endFetch(id, errInterrupted)
	}
}
