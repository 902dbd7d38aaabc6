package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncodeIsOneLineAndDecodesBack(t *testing.T) {
	t.Parallel()
	frames := map[string]Frame{
		"hello":        {Type: Hello, Version: Version, Terminal: "abc", Conversation: "work", Agent: "chief", Script: true},
		"message":      {Type: Message, ID: "1", Text: "two\nlines and a\rreturn"},
		"cyrillic":     {Type: Message, ID: "2", Text: "напомни выключить чайник 你好 🫖"},
		"html":         {Type: Message, ID: "3", Text: "<b>&</b>"},
		"separators":   {Type: Message, ID: "4", Text: "a\u2028b\u2029c\x00d"},
		"part":         {Type: Message, ID: "5", Text: "x", Part: 2, Parts: 3, ReplyTo: "1", Notice: true},
		"largest text": {Type: Message, ID: "6", Text: strings.Repeat("\x01", MaxText)},
		"draft done":   {Type: Draft, Done: true},
		"unknown type": {Type: "later"},
	}
	for name, want := range frames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, err := Encode(want)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(line, []byte("\n")); n != 1 || line[len(line)-1] != '\n' {
				t.Fatalf("not one line: %q", line)
			}
			got, err := Decode(line)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEncodeRefusesInvalidFrames(t *testing.T) {
	t.Parallel()
	if _, err := Encode(Frame{Type: Message, ID: "1", Text: strings.Repeat("x", MaxFrame)}); err == nil {
		t.Error("a frame over MaxFrame was encoded")
	}
}

func TestDecodeRefusesGarbage(t *testing.T) {
	t.Parallel()
	lines := map[string]string{
		"empty":             "",
		"text":              "hello",
		"array":             `["hello"]`,
		"no type":           `{"id":"1"}`,
		"cut off":           `{"type":"message","id":`,
		"two on one line":   `{"type":"shown","id":"1"}{"type":"shown","id":"2"}`,
		"wrong field type":  `{"type":"message","id":7}`,
		"hello, no version": `{"type":"hello"}`,
		"message, no id":    `{"type":"message","text":"x"}`,
		"shown, no id":      `{"type":"shown"}`,
		"long id":           `{"type":"shown","id":"` + strings.Repeat("x", MaxID+1) + `"}`,
		"control in id":     `{"type":"shown","id":"a\u001bb"}`,
		"not UTF-8":         "{\"type\":\"message\",\"id\":\"1\",\"text\":\"\xff\"}",
	}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f, err := Decode([]byte(line)); !errors.Is(err, ErrBadFrame) {
				t.Errorf("got %+v, %v", f, err)
			}
		})
	}
}

func TestDecodeIgnoresUnknownFields(t *testing.T) {
	t.Parallel()
	f, err := Decode([]byte(`{"type":"shown","id":"1","mood":{"level":3}}`))
	if err != nil || f.ID != "1" {
		t.Errorf("got %+v, %v", f, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"hello","version":1}`))
	f.Add([]byte(`{"type":"message","id":"1","text":"\ud800 привет"}`))
	f.Add([]byte(`{"type":"draft","done":true}`))
	f.Add([]byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, line []byte) {
		frame, err := Decode(line)
		if err != nil {
			if !errors.Is(err, ErrBadFrame) {
				t.Fatalf("error without sentinel: %v", err)
			}
			return
		}
		again, err := Encode(frame)
		if err != nil {
			t.Skip("grew over the limit by escaping")
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("%q became %q, which does not decode: %v", line, again, err)
		}
		if d := cmp.Diff(frame, back); d != "" {
			t.Fatal(d)
		}
	})
}
