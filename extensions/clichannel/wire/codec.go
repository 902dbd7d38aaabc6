package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrBadFrame says that a line is not a frame.
var ErrBadFrame = errors.New("not a frame of the chat protocol")

// Encode returns f as one line, with its newline.
func Encode(f Frame) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(f); err != nil {
		return nil, fmt.Errorf("encode %s frame: %w", f.Type, err)
	}
	if b.Len() > MaxFrame {
		return nil, fmt.Errorf("encode %s frame: %d bytes, the limit is %d", f.Type, b.Len(), MaxFrame)
	}
	return b.Bytes(), nil
}

// Decode decodes one line, with or without its newline. An unknown type is not an
// error: the reader skips such a frame.
func Decode(line []byte) (Frame, error) {
	var f Frame
	if !utf8.Valid(line) {
		return Frame{}, fmt.Errorf("%w: not UTF-8", ErrBadFrame)
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrBadFrame, err)
	}
	if err := f.check(); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrBadFrame, err)
	}
	return f, nil
}

// check returns an error for a frame that cannot be handled.
func (f Frame) check() error {
	for name, id := range map[string]string{
		"id": f.ID, "terminal": f.Terminal, "conversation": f.Conversation, "agent": f.Agent, "reply_to": f.ReplyTo,
		"language": f.Language,
	} {
		if len(id) > MaxID {
			return fmt.Errorf("%s of a %s frame has %d bytes, the limit is %d", name, f.Type, len(id), MaxID)
		}
		if strings.ContainsFunc(id, isControl) {
			return fmt.Errorf("%s of a %s frame contains a control character", name, f.Type)
		}
	}
	switch f.Type {
	case "":
		return errors.New("frame without type")
	case Hello, Welcome:
		if f.Version < 1 {
			return fmt.Errorf("%s frame without version", f.Type)
		}
	case Message, Shown, Accepted, Fetch, File:
		if f.ID == "" {
			return fmt.Errorf("%s frame without id", f.Type)
		}
		if len(f.Files) > MaxFiles {
			return fmt.Errorf("%s frame with %d files, the limit is %d", f.Type, len(f.Files), MaxFiles)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
