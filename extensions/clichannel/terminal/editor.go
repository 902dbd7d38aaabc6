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

// editor is the line being edited and the terminal it is on.
type editor struct {
	rl     *readline.Instance
	keys   *keys
	screen *screen
	prompt string
	in     int // descriptors
	outFD  int
	out    *drawing
	before *term.State
	resize chan os.Signal
	once   sync.Once

	commands atomic.Pointer[[]string] // what can be completed; nil: nothing is known yet
	offer    func(commands []string)  // shows what a tab could mean
}

// newEditor takes over the terminal; close gives it back.
func newEditor(o Options, past []string) (*editor, error) {
	in, _ := isTerminal(o.In)
	outFD, _ := isTerminal(o.Out)
	e := &editor{in: in, outFD: outFD, keys: newKeys(o.In), resize: make(chan os.Signal, 1), offer: func([]string) {}}
	e.out = &drawing{to: o.Out, asked: e.keys.cursorAtStart}
	size := func() (int, int) { return sizeOf(outFD) }
	e.screen = newScreen(size)

	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, fmt.Errorf("take over the terminal: %w", err)
	}
	e.before = before
	nothing := func() error { return nil } // the terminal stays raw between two lines
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
		FuncMakeRaw:         nothing,
		FuncExitRaw:         nothing,
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
		return nil, errors.Join(fmt.Errorf("start the line editor: %w", err), term.Restore(in, before))
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

// setPrompt sets what stands before the line; it has no escape sequences in it
// that take room.
func (e *editor) setPrompt(p string) {
	e.prompt = p
	e.rl.SetPrompt(p)
}

var errInterrupt = errors.New("interrupted")

// readLine returns the next text. The screen is held when it returns:
// release it once the line has found its place.
func (e *editor) readLine() (string, error) {
	line, err := e.rl.ReadLine()
	if errors.Is(err, readline.ErrInterrupt) {
		return "", errInterrupt
	}
	if err != nil {
		return "", err
	}
	return line, nil
}

// key sees every key before the editor obeys it. Those that may end the line,
// or move the screen, find the live lines gone.
func (e *editor) key(r rune, noSuspend bool) (rune, bool) {
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

// typed is called after every key that did not end the line.
func (e *editor) typed(line []rune, at int, key rune) ([]rune, int, bool) {
	e.screen.release()
	if commands := e.commands.Load(); key == tabRune && commands != nil {
		next, choices, changed := completed(line, at, *commands)
		if len(choices) > 0 {
			e.offer(choices)
		}
		return next, len(next), changed
	}
	return nil, 0, false
}

// suspend stops the process until somebody continues it.
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

// rows is the number of rows that the ended line takes on the screen, with the
// prompt.
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

// close gives the terminal back. It interrupts readLine.
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

// sizeOf is the size of a terminal, or the usual one if it does not tell.
func sizeOf(fd int) (width, height int) {
	width, height, err := term.GetSize(fd)
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// drawing is the way to a terminal in raw mode: line ends become whole, the
// editor's question for the cursor position is answered on the spot, and what
// belongs together goes out in one write, so that nothing flickers.
type drawing struct {
	mu    sync.Mutex
	to    io.Writer
	asked func()
	depth int
	held  bytes.Buffer
}

var cursorQuestion = []byte("\x1b[6n")

func (d *drawing) Write(b []byte) (int, error) {
	if bytes.Equal(b, cursorQuestion) {
		d.asked()
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

// batch keeps what is written until the function it returns is called.
func (d *drawing) batch() func() error {
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

func (d *drawing) flush() error {
	_, err := d.to.Write(d.held.Bytes())
	d.held.Reset()
	return err
}
