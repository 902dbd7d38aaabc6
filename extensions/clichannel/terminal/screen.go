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

// screen writes above the line that is being edited: lines that stay, and below
// them live lines that the next write replaces (a draft, a status).
//
// What is written goes through the line editor, which takes its line off the
// screen, lets the text through and draws its line again. While the editor ends
// a line (hold), the order of things on the screen is unknown, so writes wait.
type screen struct {
	mu   sync.Mutex
	out  io.Writer // the line editor's
	size func() (width, height int)

	live   []string // on the screen, above the line
	next   []string // what live shall be
	lines  []string // that stay, not yet written
	bell   bool
	held   bool
	closed bool
	moved  *sync.Cond // held or closed has changed
	err    error      // of the first write that failed
}

// errLeft says that the user has left before a line could be written.
var errLeft = errors.New("the terminal was left")

func newScreen(size func() (width, height int)) *screen {
	s := &screen{size: size}
	s.moved = sync.NewCond(&s.mu)
	return s
}

// settled waits until all that was printed is on the screen, or never will be.
func (s *screen) settled() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.held && !s.closed {
		s.moved.Wait()
	}
	if len(s.lines) > 0 && s.err == nil {
		return errLeft
	}
	return s.err
}

// print adds lines that stay.
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

// update replaces the live lines, and adds lines that stay above them.
func (s *screen) update(live []string, lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = live
	s.lines = append(s.lines, lines...)
	s.flush()
}

// hold takes the live lines off the screen and keeps all writes back.
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

// release writes what was kept back.
func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		s.held = false
		s.flush()
		s.moved.Broadcast()
	}
}

// replace takes n rows above the cursor off the screen, once the editor has
// ended its line, and writes lines in their place. The screen is held.
func (s *screen) replace(n int, lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "\x1b[%dA\r\x1b[J%s\n", n, strings.Join(lines, "\n"))
}

// close writes what stays and nothing from then on.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.next = false, nil
	s.flush()
	s.closed = true
	s.moved.Broadcast()
}

// flush brings the screen up to date; s.mu is held.
func (s *screen) flush() {
	if s.held || s.closed || len(s.lines) == 0 && slices.Equal(s.live, s.next) {
		return
	}
	var b strings.Builder
	width, height := s.size()
	if rows := rowsOf(s.live, width); rows > 0 {
		// The editor takes all from the first escape to an m for color, and what
		// is not for text in front of its line: hence the m.
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
		s.err = fmt.Errorf("write to the terminal: %w", err)
	}
}

// rowsOf is the number of rows that lines take: more than their number when the
// terminal has become narrower since they were laid out.
func rowsOf(lines []string, width int) int {
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
