package terminal

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal/markdown"
)

// screen writes above the edited line: permanent lines, and below them live lines
// that the next write replaces (a draft, a status).
//
// All output goes through the line editor, which removes its line from the screen,
// writes the output and draws its line again. While the editor ends a line (hold),
// the state of the screen is unknown, so writes wait.
type screen struct {
	mu   sync.Mutex
	out  io.Writer // the line editor's
	size func() (width, height int)

	live   []string // on the screen, above the line
	next   []string // the next live lines
	lines  []string // permanent lines, not yet written
	bell   bool
	held   bool
	closed bool
	cond   *sync.Cond // signals changes of held and closed
	err    error      // of the first failed write
}

// errLeft says that the user left before a line was written.
var errLeft = errors.New("the user left the chat")

func newScreen(size func() (width, height int)) *screen {
	s := &screen{size: size}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// waitWritten waits until all printed lines are written; it fails if they never will be.
func (s *screen) waitWritten() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.held && !s.closed {
		s.cond.Wait()
	}
	if len(s.lines) > 0 && s.err == nil {
		return errLeft
	}
	return s.err
}

// print adds permanent lines.
func (s *screen) print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, lines...)
	s.flush()
}

// alert is print with a bell.
func (s *screen) alert(lines ...string) {
	s.mu.Lock()
	s.bell = true
	s.mu.Unlock()
	s.print(lines...)
}

// update replaces the live lines, and adds permanent lines above them.
func (s *screen) update(live []string, lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = live
	s.lines = append(s.lines, lines...)
	s.flush()
}

// hold removes the live lines from the screen and defers all writes.
func (s *screen) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		return
	}
	next := s.next
	s.next = nil
	s.flush()
	s.next, s.held = next, true
}

// release performs the deferred writes.
func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		s.held = false
		s.flush()
		s.cond.Broadcast()
	}
}

// replace replaces n rows above the cursor with lines, after the editor has ended
// its line. The screen must be held.
func (s *screen) replace(n int, lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\x1b[%dA\r\x1b[J%s\n", n, strings.Join(lines, "\n"))
}

// close writes the remaining permanent lines; later writes are dropped.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.next = false, nil
	s.flush()
	s.closed = true
	s.cond.Broadcast()
}

// flush updates the screen; s.mu is held.
func (s *screen) flush() {
	if s.held || s.closed || len(s.lines) == 0 && slices.Equal(s.live, s.next) {
		return
	}
	var b strings.Builder
	width, height := s.size()
	if rows := rowCount(s.live, width); rows > 0 {
		// The editor takes everything from the first escape to an m for a color, and
		// the rest for text before its line: hence the m.
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J\x1b[m", min(rows, height-1))
	}
	if s.bell {
		b.WriteByte('\a')
		s.bell = false
	}
	for _, l := range s.lines {
		b.WriteString(l + "\n")
	}
	for _, l := range s.next {
		b.WriteString(l + "\n")
	}
	s.live, s.lines = s.next, nil
	if _, err := io.WriteString(s.out, b.String()); err != nil && s.err == nil {
		s.err = fmt.Errorf("write to terminal: %w", err)
	}
}

// rowCount returns the number of rows of lines, which is more than their number if
// the terminal has become narrower since they were laid out.
func rowCount(lines []string, width int) int {
	rows := 0
	for _, l := range lines {
		rows += max(1, (markdown.Width(stripSequences(l))+width-1)/max(width, 1))
	}
	return rows
}

func stripSequences(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		j := strings.IndexByte(s[i:], 'm')
		if j < 0 {
			return b.String()
		}
		s = s[i+j+1:]
	}
}
