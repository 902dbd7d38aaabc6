// Package terminal is the chat client: it attaches to the chat socket of the
// terminal channel, sends the user's messages and shows the answers.
//
// On a terminal it edits lines, keeps a history, renders Markdown and shows answers
// while they are being written, without disturbing the edited line. Otherwise it is
// a filter: each line of the input is a message, the output is the plain answers,
// and Run returns when the last message is answered.
//
// Promises. A message counts as sent when the kernel has it on disk; until then it
// is sent again after each reconnect, under the same id. If Run returns before that,
// it prints the message and returns ErrUnsent. A message from the kernel is
// confirmed once it was written to the output, and is shown once per Run. The
// connection is restored when the kernel restarts, and the state of the terminal
// when Run returns. Only one Run at a time may use an In.
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

	"github.com/switchboard-run/switchboard/contract"
)

// Options configures Run.
type Options struct {
	Socket      string // path of the chat socket
	TokenFile   string // path of the token file; empty: no token
	HistoryFile string // of typed lines, made 0600; empty: none

	Conversation string // name or session key chan:<channel>:<conversation>; empty: the shared one
	New          bool   // begin a new conversation
	Agent        string // agent that answers; empty: as configured
	Language     string // of the person, an IETF tag; empty: English

	Greeting string // first line, if the channel sends none
	Hint     string // second line, likewise

	JSON bool // filter that writes an Answer for each message

	MaxFile int64 // bytes of a file that can be sent; 0: the kernel refuses larger ones

	In  io.Reader // os.Stdin if nil
	Out io.Writer // os.Stdout if nil
	Err io.Writer // for errors and notices of the filter; os.Stderr if nil

	Color     Color
	NoSuspend bool // Ctrl-Z does nothing: the kernel runs in this process

	// ConnectTimeout is how long the filter waits for a kernel (default 10 s; on a
	// terminal there is no limit). AnswerTimeout is how long it waits for an answer
	// (default 15 min).
	ConnectTimeout, AnswerTimeout time.Duration
}

// Color says whether the output has colors and styles.
type Color int

const (
	// ColorAuto is color on a terminal, unless NO_COLOR is set.
	ColorAuto Color = iota
	// ColorAlways is color on any output.
	ColorAlways
	// ColorNever is plain text.
	ColorNever
)

// Errors of Run.
var (
	// ErrUnsent says that the kernel has not accepted all messages.
	ErrUnsent = errors.New("not sent")
	// ErrNoKernel says that nothing answered on the socket.
	ErrNoKernel = errors.New("no kernel answers")
	// ErrUnanswered says that no answer arrived within AnswerTimeout.
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
	conversation, err := parseConversation(o.Conversation)
	if err != nil {
		return err
	}
	o.Conversation = conversation
	if o.New && o.Conversation != "" {
		return fmt.Errorf("conversation %q and a new one exclude each other: choose one", o.Conversation)
	}
	if _, in := isTerminal(o.In); in && !o.JSON && o.outputStyle() != plain {
		return chat(ctx, o)
	}
	return filter(ctx, o)
}

// Answer is the line that a filter writes for each message with Options.JSON.
type Answer struct {
	Session      string `json:"session,omitempty"` // id of the session that sent it
	Conversation string `json:"conversation"`
	Text         string `json:"text"`
	Notice       bool   `json:"notice,omitempty"` // not an answer, but for example a reminder
	Part         int    `json:"part,omitempty"`   // of a text that was split, from 1
	Parts        int    `json:"parts,omitempty"`
	// Attachments came with it; /save and their digits save them.
	Attachments []contract.Attachment `json:"attachments,omitempty"`
	// Actions are commands that it offers.
	Actions []contract.Action `json:"actions,omitempty"`
}

// style is the style of the output.
type style int

const (
	plain      style = iota // not a terminal with cursor control
	monochrome              // a terminal, without color
	colored
)

func (o Options) outputStyle() style {
	_, tty := isTerminal(o.Out)
	if !tty || os.Getenv("TERM") == "dumb" {
		return plain
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
