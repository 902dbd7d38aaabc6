package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ergochat/readline"
	"golang.org/x/term"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
)

const (
	enableMode  = "\x1b[?2004h" // bracketed paste
	disableMode = "\x1b[?2004l"
)

// editor edits a line on a terminal.
type editor struct {
	rl     *readline.Instance
	keys   *keys
	screen *screen
	prompt string
	in     int // descriptors
	outFD  int
	out    *rawWriter
	before *term.State
	resize chan os.Signal
	once   sync.Once
	typing bool // the line, when its last key was typed, had text

	commands    atomic.Pointer[[]string] // for completion; nil: not known yet
	showChoices func(choices []string)   // shows what completes the line
	begun       func()                   // called for each key on an empty line, before the key changes the screen
}

// newEditor puts the terminal into raw mode; close restores it.
func newEditor(o Options, past []string) (*editor, error) {
	in, _ := isTerminal(o.In)
	outFD, _ := isTerminal(o.Out)
	e := &editor{
		in: in, outFD: outFD, keys: newKeys(o.In), resize: make(chan os.Signal, 1),
		showChoices: func([]string) {}, begun: func() {},
	}
	e.out = &rawWriter{to: o.Out, onCursorQuery: e.keys.answerCursorQuery}
	size := func() (int, int) { return sizeOf(outFD) }
	e.screen = newScreen(size)

	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, fmt.Errorf("set terminal to raw mode: %w", err)
	}
	e.before = before
	noop := func() error { return nil } // the terminal stays raw between lines
	e.rl, err = readline.NewFromConfig(&readline.Config{
		HistoryLimit:        historyLimit,
		Stdin:               e.keys,
		Stdout:              e.out,
		Stderr:              e.out,
		InterruptPrompt:     "^C",
		EOFPrompt:           "\n",
		Undo:                true,
		Painter:             paintLine,
		Listener:            e.typed,
		FuncFilterInputRune: func(r rune) (rune, bool) { return e.key(r, o.NoSuspend) },
		FuncIsTerminal:      func() bool { return true },
		FuncMakeRaw:         noop,
		FuncExitRaw:         noop,
		FuncGetSize:         size,
		FuncOnWidthChanged: func(changed func()) {
			signal.Notify(e.resize, syscall.SIGWINCH)
			go func() {
				for range e.resize {
					changed()
				}
			}()
		},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start line editor: %w", err), term.Restore(in, before))
	}
	for _, line := range past {
		_ = e.rl.SaveToHistory(toLine(line))
	}
	e.screen.out = writerFunc(func(b []byte) (int, error) {
		end := e.out.batch()
		n, err := e.rl.Write(b)
		return n, errors.Join(err, end())
	})
	_, _ = io.WriteString(o.Out, enableMode)
	return e, nil
}

// setPrompt sets the prompt. Its escape sequences must have no width.
func (e *editor) setPrompt(p string) {
	e.prompt = p
	e.rl.SetPrompt(p)
}

var errInterrupt = errors.New("interrupted")

// readLine returns the next line. The screen is held when it returns: release it
// once the line is final.
func (e *editor) readLine() (string, error) {
	e.typing = false
	line, err := e.rl.ReadLine()
	if errors.Is(err, readline.ErrInterrupt) {
		return "", errInterrupt
	}
	if err != nil {
		return "", err
	}
	return line, nil
}

// key gets every key before the editor. Keys that may end the line or move the
// screen remove the live lines first.
func (e *editor) key(r rune, noSuspend bool) (rune, bool) {
	if !e.typing {
		e.begun()
	}
	switch r {
	case readline.CharEnter, readline.CharInterrupt, readline.CharEOT, readline.CharCtrlL:
		e.screen.hold()
	case readline.CharCtrlZ:
		if !noSuspend {
			e.suspend()
		}
		return r, false
	}
	return r, true
}

// typed is called after each key that did not end the line.
func (e *editor) typed(line []rune, at int, key rune) ([]rune, int, bool) {
	e.typing = len(line) > 0
	e.screen.release()
	if commands := e.commands.Load(); key == tabRune && commands != nil {
		next, choices, changed := complete(line, at, *commands)
		if len(choices) > 0 {
			e.showChoices(choices)
		}
		return next, len(next), changed
	}
	return nil, 0, false
}

// suspend stops the process until it is continued.
func (e *editor) suspend() {
	e.screen.hold()
	defer e.screen.release()
	_, _ = io.WriteString(e.out, disableMode+"\r\n")
	_ = term.Restore(e.in, e.before)
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(os.Getpid(), syscall.SIGTSTP); err == nil {
		<-continued
	}
	_, _ = term.MakeRaw(e.in)
	_, _ = io.WriteString(e.out, enableMode)
}

// rows returns the number of rows of the ended line with its prompt.
func (e *editor) rows(line string) int {
	width, _ := sizeOf(e.outFD)
	rows, column := 1, markdown.Width(stripSequences(e.prompt))
	for _, r := range paintLine([]rune(line), 0) {
		w := markdown.Width(string(r))
		if column+w > width {
			rows, column = rows+1, 0
		}
		column += w
		if column == width {
			rows, column = rows+1, 0
		}
	}
	return rows
}

// close restores the terminal. It interrupts readLine.
func (e *editor) close() {
	e.once.Do(func() {
		e.screen.close()
		e.keys.stop()
		_ = e.rl.Close()
		signal.Stop(e.resize)
		close(e.resize)
		_, _ = io.WriteString(e.out, disableMode)
		_ = term.Restore(e.in, e.before)
	})
}

// sizeOf returns the size of a terminal, or 80 by 24 if it is unknown.
func sizeOf(fd int) (width, height int) {
	width, height, err := term.GetSize(fd)
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// rawWriter writes to a terminal in raw mode: it writes CR LF for each newline,
// answers the editor's query for the cursor position, and joins writes of a batch
// to avoid flicker.
type rawWriter struct {
	mu            sync.Mutex
	to            io.Writer
	onCursorQuery func()
	depth         int
	held          bytes.Buffer
}

var cursorQuery = []byte("\x1b[6n")

func (d *rawWriter) Write(b []byte) (int, error) {
	if bytes.Equal(b, cursorQuery) {
		d.onCursorQuery()
		return len(b), nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")))
	if d.depth > 0 {
		return len(b), nil
	}
	return len(b), d.flush()
}

// batch buffers writes until the function it returns is called.
func (d *rawWriter) batch() func() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.depth++
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.depth--; d.depth == 0 {
			return d.flush()
		}
		return nil
	}
}

func (d *rawWriter) flush() error {
	_, err := d.to.Write(d.held.Bytes())
	d.held.Reset()
	return err
}
