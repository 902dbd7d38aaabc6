// Package terminal is the chat client: it attaches to the chat socket of the
// terminal channel, sends what is typed and shows what comes.
//
// On a terminal it edits lines, keeps a history, renders Markdown and shows
// answers while they are being written; output never destroys what is being
// typed. Anywhere else it is a filter: every line of the input is a message,
// the output is the answers as they are, and Run returns when the last one is
// answered.
//
// Promises. A message counts as sent once the kernel has it on disk; until then
// it is sent again after every reconnect, under the same id, and when Run
// returns before that, the error says so and the text has been shown. A message
// from the kernel is confirmed once it was written to the output, and is shown
// once by one Run. The connection comes back by itself when the kernel does.
// The state of the terminal is restored when Run returns. Run may be called
// once for one In at a time.
package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Options says what to attach to and how.
type Options struct {
	Socket      string // path of the chat socket
	TokenFile   string // with what the channel wants to be shown; empty: nothing
	HistoryFile string // of typed lines, made 0600; empty: none

	Conversation string // also as a session key chan:<channel>:<conversation>; empty: the one that all terminals share
	New          bool   // begin a conversation of its own
	Agent        string // who shall answer; empty: as configured

	Greeting string // after the name, if the channel has nothing to say there
	Hint     string // below it, likewise

	JSON bool // a filter that writes one Answer for each answer and notice

	In  io.Reader // os.Stdin if nil
	Out io.Writer // os.Stdout if nil
	Err io.Writer // for the filter's complaints; os.Stderr if nil

	Color     Color
	NoSuspend bool // Ctrl-Z does nothing: the kernel runs in this process

	// ConnectTimeout is how long the filter waits for a kernel (default 10 s; on
	// a terminal Run waits as long as the user does). AnswerTimeout is how long
	// it waits for one answer (default 15 min).
	ConnectTimeout, AnswerTimeout time.Duration
}

// Color says whether to use escape sequences for looks.
type Color int

const (
	// ColorAuto is color on a terminal, unless NO_COLOR is set.
	ColorAuto Color = iota
	// ColorAlways is color whatever the output is.
	ColorAlways
	// ColorNever is plain text.
	ColorNever
)

// Errors of Run that a caller may want to tell apart.
var (
	// ErrUnsent says that there are messages that the kernel never accepted.
	ErrUnsent = errors.New("not sent")
	// ErrNoKernel says that nothing answered on the socket.
	ErrNoKernel = errors.New("no kernel answers")
	// ErrUnanswered says that the filter gave up waiting for an answer.
	ErrUnanswered = errors.New("no answer")
)

// Run attaches and returns when the user leaves, the input ends or ctx is done.
func Run(ctx context.Context, o Options) error {
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout //nolint:forbidigo // this is the command line's side, not the extension
	}
	if o.Err == nil {
		o.Err = os.Stderr
	}
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 10*time.Second)
	o.AnswerTimeout = cmp.Or(o.AnswerTimeout, 15*time.Minute)
	conversation, err := conversationOf(o.Conversation)
	if err != nil {
		return err
	}
	o.Conversation = conversation
	if o.New && o.Conversation != "" {
		return fmt.Errorf("conversation %q and a new one were both asked for: choose one", o.Conversation)
	}
	if _, in := isTerminal(o.In); in && !o.JSON && o.colorful() != plainOut {
		return chat(ctx, o)
	}
	return filter(ctx, o)
}

// Answer is what a filter writes for each text with Options.JSON, in a line.
type Answer struct {
	Session      string `json:"session,omitempty"` // that says it: to go on with it, give its id
	Conversation string `json:"conversation"`
	Text         string `json:"text"`
	Notice       bool   `json:"notice,omitempty"` // not an answer: a reminder, a message from elsewhere
	Part         int    `json:"part,omitempty"`   // of a text that was split, from 1
	Parts        int    `json:"parts,omitempty"`
}

// looks of the output.
type looks int

const (
	plainOut   looks = iota // not a terminal that can be drawn on
	monochrome              // a terminal, without color
	colored
)

func (o Options) colorful() looks {
	_, tty := isTerminal(o.Out)
	if !tty || os.Getenv("TERM") == "dumb" {
		return plainOut
	}
	if o.Color == ColorAlways || o.Color == ColorAuto && os.Getenv("NO_COLOR") == "" {
		return colored
	}
	return monochrome
}

// isTerminal returns the descriptor of a reader or writer that is a terminal.
func isTerminal(v any) (int, bool) {
	f, ok := v.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	fd := int(f.Fd()) //nolint:gosec // a descriptor is an int
	return fd, term.IsTerminal(fd)
}
