package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrGarbage says that a line is no frame.
var ErrGarbage = errors.New("not a frame of the chat protocol")

// Encode returns f as one line, with its newline.
func Encode(f Frame) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(f); err != nil {
		return nil, fmt.Errorf("encode %s frame: %w", f.Type, err)
	}
	if b.Len() > MaxFrame {
		return nil, fmt.Errorf("encode %s frame: %d bytes are more than the %d a line may have", f.Type, b.Len(), MaxFrame)
	}
	return b.Bytes(), nil
}

// Decode reads one line, with or without its newline. A type that it does not
// know is no error: the reader skips such a frame.
func Decode(line []byte) (Frame, error) {
	var f Frame
	if !utf8.Valid(line) {
		return Frame{}, fmt.Errorf("%w: not UTF-8", ErrGarbage)
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	if err := f.check(); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	return f, nil
}

// check refuses a frame that nobody could act on.
func (f Frame) check() error {
	for name, id := range map[string]string{"id": f.ID, "terminal": f.Terminal, "conversation": f.Conversation, "agent": f.Agent, "reply_to": f.ReplyTo} {
		if len(id) > MaxID {
			return fmt.Errorf("%s of a %s frame has %d bytes, at most %d are allowed", name, f.Type, len(id), MaxID)
		}
		if strings.ContainsFunc(id, isControl) {
			return fmt.Errorf("%s of a %s frame contains a control character", name, f.Type)
		}
	}
	switch f.Type {
	case "":
		return errors.New("a frame without type")
	case Hello, Welcome:
		if f.Version < 1 {
			return fmt.Errorf("%s frame without version", f.Type)
		}
	case Message, Shown, Accepted:
		if f.ID == "" {
			return fmt.Errorf("%s frame without id", f.Type)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
