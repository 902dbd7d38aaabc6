package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// questions asks on a terminal.
type questions struct {
	in *os.File
	p  *printer
}

// errLeft means that the person left: Ctrl-C or Ctrl-D.
var errLeft = errors.New("left")

// text asks for a line. Enter gives the fallback.
func (q *questions) text(ctx context.Context, question, fallback string) (string, error) {
	prompt := question + " "
	if fallback != "" {
		prompt += "[" + fallback + "] "
	}
	answer, err := q.line(ctx, prompt, false)
	if answer == "" {
		answer = fallback
	}
	return answer, err
}

// secret asks for a line that the terminal does not show.
func (q *questions) secret(ctx context.Context, question string) (string, error) {
	answer, err := q.line(ctx, question+" ", true)
	q.p.line("")
	return answer, err
}

// line reads one line. When ctx ends the terminal is as before, and the reading goroutine
// ends with the program.
func (q *questions) line(ctx context.Context, prompt string, hidden bool) (string, error) {
	fd := int(q.in.Fd()) //nolint:gosec // a descriptor is an int
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	_, _ = io.WriteString(q.p.w, prompt)
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		var r result
		if hidden {
			var typed []byte
			typed, r.err = term.ReadPassword(fd)
			r.text = string(typed)
		} else {
			r.text, r.err = readLine(q.in)
		}
		read <- r
	}()
	select {
	case r := <-read:
		if errors.Is(r.err, io.EOF) {
			r.err = errLeft
		}
		return strings.TrimSpace(r.text), r.err
	case <-ctx.Done():
		_ = term.Restore(fd, before)
		return "", errLeft
	}
}

// readLine reads a line byte by byte: what follows is for the next question, which may read
// in another way.
func readLine(in io.Reader) (string, error) {
	var text []byte
	for b := make([]byte, 1); ; {
		n, err := in.Read(b)
		if n > 0 && b[0] == '\n' {
			return string(text), nil
		}
		text = append(text, b[:n]...)
		if err != nil {
			if len(text) > 0 {
				err = nil
			}
			return string(text), err
		}
	}
}
