package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// In the edited line a line break and a tab are characters of the private use area,
// so that the line editor, which supports only single lines, does not take them for
// Enter and completion.
const (
	breakRune = '\ue00a'
	tabRune   = '\ue009'
)

// foldAbove is the size in bytes above which a paste is shown as a placeholder.
const foldAbove = 1000

// keys reads a terminal in raw mode and converts the input for the line editor: a
// bracketed paste becomes text, not commands; Alt-Enter and Ctrl-J become line
// breaks; escape sequences and characters are never split; Esc alone does nothing; a
// large paste becomes a placeholder. It answers the editor's query for the cursor position itself, because
// every prompt begins in the first column, and a terminal that does not answer must
// not block the chat.
type keys struct {
	chunks  chan []byte
	answers chan []byte
	done    chan struct{}
	close   sync.Once

	ready   []byte // for the editor
	raw     []byte // not yet parsed
	pasting bool
	paste   bytes.Buffer

	mu    sync.Mutex
	folds map[string]string // placeholder to text
}

func newKeys(in io.Reader) *keys {
	k := &keys{
		chunks: make(chan []byte), answers: make(chan []byte, 16), done: make(chan struct{}),
		folds: map[string]string{},
	}
	go func() {
		defer close(k.chunks)
		for {
			b := make([]byte, 4096)
			n, err := in.Read(b)
			if n > 0 {
				select {
				case k.chunks <- b[:n]:
				case <-k.done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return k
}

// stop ends Read; the goroutine that reads the terminal ends with its next key.
func (k *keys) stop() { k.close.Do(func() { close(k.done) }) }

// answerCursorQuery answers a query for the cursor position: first column.
func (k *keys) answerCursorQuery() {
	select {
	case k.answers <- []byte("\x1b[1;1R"):
	default:
	}
}

func (k *keys) Read(p []byte) (int, error) {
	for len(k.ready) == 0 {
		select {
		case b := <-k.answers:
			k.ready = b
			continue
		default:
		}
		select {
		case b := <-k.answers:
			k.ready = b
		case b, ok := <-k.chunks:
			if !ok {
				return 0, io.EOF
			}
			k.feed(b)
		case <-k.lone():
			k.raw = nil
		case <-k.done:
			return 0, io.EOF
		}
	}
	n := copy(p, k.ready)
	k.ready = k.ready[n:]
	return n, nil
}

// escapeTime is how long the rest of an escape sequence may take: the key that follows
// Esc comes later.
const escapeTime = 50 * time.Millisecond

// lone returns a channel that says that Esc was pressed alone; nil: it was not.
func (k *keys) lone() <-chan time.Time {
	if string(k.raw) != "\x1b" {
		return nil
	}
	return time.After(escapeTime)
}

// feed moves complete characters and sequences from raw to ready.
func (k *keys) feed(b []byte) {
	k.raw = append(k.raw, b...)
	for {
		n := tokenLength(k.raw)
		if n == 0 {
			return
		}
		k.take(string(k.raw[:n]))
		k.raw = k.raw[n:]
	}
}

func (k *keys) take(t string) {
	switch {
	case t == "\x1b[200~":
		k.pasting = true
	case t == "\x1b[201~":
		k.pasting = false
		k.ready = append(k.ready, k.fold(k.paste.String())...)
		k.paste.Reset()
	case k.pasting:
		k.paste.WriteString(t)
	case t == "\n", t == "\x1b\r", t == "\x1b\n":
		k.ready = utf8.AppendRune(k.ready, breakRune)
	case t == "\t":
		k.ready = utf8.AppendRune(k.ready, tabRune)
	default:
		k.ready = append(k.ready, t...)
	}
}

// fold converts pasted text for the line.
func (k *keys) fold(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	if len(s) <= foldAbove {
		return toLine(s)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	name := fmt.Sprintf("[pasted text #%d, %d lines]", len(k.folds)+1, strings.Count(strings.TrimRight(s, "\n"), "\n")+1)
	k.folds[name] = s
	return name
}

// unfold returns the text of a line.
func (k *keys) unfold(line string) string {
	text := fromLine(line)
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, s := range k.folds {
		text = strings.ReplaceAll(text, name, s)
	}
	return text
}

// toLine and fromLine convert between a text and the edited line.
func toLine(s string) string {
	return strings.NewReplacer("\n", string(breakRune), "\t", string(tabRune)).Replace(s)
}

func fromLine(s string) string {
	return strings.NewReplacer(string(breakRune), "\n", string(tabRune), "\t").Replace(s)
}

// paintLine returns the line as displayed.
func paintLine(line []rune, _ int) []rune {
	out := make([]rune, len(line))
	for i, r := range line {
		switch r {
		case breakRune:
			r = '↵'
		case tabRune:
			r = ' '
		}
		out[i] = r
	}
	return out
}

// tokenLength returns the length of the first character or escape sequence of b, or
// 0 if it is incomplete.
func tokenLength(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	if b[0] != 0x1b {
		if !utf8.FullRune(b) {
			return 0
		}
		_, n := utf8.DecodeRune(b)
		return n
	}
	i := 1
	if i < len(b) && b[i] == 0x1b { // Alt and a key that is a sequence itself
		i++
	}
	if i == len(b) {
		return 0
	}
	switch b[i] {
	case '[':
		for j := i + 1; j < len(b); j++ {
			if b[j] >= 0x40 && b[j] <= 0x7e {
				return j + 1
			}
			if b[j] < 0x20 || j-i > 32 { // not a sequence
				return j
			}
		}
		return 0
	case 'O':
		if i+1 == len(b) {
			return 0
		}
		return i + 2
	}
	if !utf8.FullRune(b[i:]) {
		return 0
	}
	_, n := utf8.DecodeRune(b[i:])
	return i + n
}
