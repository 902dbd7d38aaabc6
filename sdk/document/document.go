// Package document extracts the text of documents that people send: plain text, source,
// HTML, PDF, Word, Excel, PowerPoint and OpenDocument files.
//
// What a file is comes from its bytes. Sizes are bounded before anything is unpacked. A
// Reader with a command extracts in a process of its own, which may hang, crash or use too
// much memory without harm.
package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

const (
	// MaxFile is the largest file, in bytes.
	MaxFile = 50 << 20
	// MaxText is how much text is extracted, in bytes.
	MaxText = 2 << 20
	// Timeout is how long an extraction may take.
	Timeout = 20 * time.Second
	// fetchTimeout is how long it may take to fetch a file.
	fetchTimeout = time.Minute
	// maxReason bounds what a failed process says, in bytes.
	maxReason = 300
)

// ErrPicture means that the file is a picture.
var ErrPicture = errors.New("it is a picture")

// Reader extracts texts. The zero value does it in this process.
type Reader struct {
	// Command is a program that calls Serve or ServeExtract, with its arguments.
	Command []string
	// Extract is used in this process; nil: Text. A program has its own.
	Extract Extract
}

// Extract returns the text of a file.
type Extract func(file []byte) (text string, err error)

// extracting holds a token while a text is extracted.
var extracting = make(chan struct{}, 1)

// Read returns the text of a file. It calls fetch, which writes the file, when it is this
// file's turn. Errors are for people, or of fetch or ctx.
func (r Reader) Read(ctx context.Context, fetch func(io.Writer) error) (string, error) {
	select {
	case extracting <- struct{}{}:
		defer func() { <-extracting }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if len(r.Command) == 0 {
		var file bytes.Buffer
		if err := fetch(&limited{to: &file, left: MaxFile}); err != nil {
			return "", err
		}
		if r.Extract == nil {
			return Text(file.Bytes())
		}
		return r.Extract.bounded(file.Bytes())
	}
	inner, cancel := context.WithTimeout(ctx, fetchTimeout+Timeout)
	defer cancel()
	cmd := exec.CommandContext(inner, r.Command[0], r.Command[1:]...) //nolint:gosec // this program itself
	var out, reason bytes.Buffer
	file, pipe := io.Pipe() // this process doesn't hold the file
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, &out, &reason
	cmd.Env, cmd.WaitDelay = []string{"GOMAXPROCS=1", "GOMEMLIMIT=256MiB"}, time.Second
	fetched := make(chan error, 1)
	go func() {
		err := fetch(&limited{to: pipe, left: MaxFile})
		_ = pipe.CloseWithError(err)
		time.AfterFunc(Timeout, cancel)
		fetched <- err
	}()
	err := cmd.Run()
	_ = file.Close()
	exit := (*exec.ExitError)(nil)
	switch fetchErr := <-fetched; {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case fetchErr != nil && !errors.Is(fetchErr, io.ErrClosedPipe):
		return "", fetchErr
	case err == nil && fetchErr == nil:
		return strings.ToValidUTF8(out.String(), ""), nil
	case inner.Err() != nil:
		return "", fmt.Errorf("reading it took longer than %s", Timeout)
	case errors.As(err, &exit) && exit.ExitCode() == exitPicture:
		return "", ErrPicture
	case errors.As(err, &exit) && exit.ExitCode() == exitReason && reason.Len() <= maxReason:
		return "", errors.New(reason.String())
	case errors.As(err, &exit):
		return "", errors.New("its file is damaged, or takes too much memory to open")
	}
	return "", fmt.Errorf("start the program that reads documents: %w", err)
}

// limited writes the bytes of a file that is not too large.
type limited struct {
	to   io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, fmt.Errorf("its file is larger than %d MiB", MaxFile>>20)
	}
	return l.to.Write(p)
}

// Exit codes of Serve.
const (
	exitReason  = 3 // stderr says why there is no text
	exitPicture = 4
)

// Serve extracts the text of the file in in, as a process of its own, and returns its exit
// code.
func Serve(in io.Reader, out, reason io.Writer) int {
	return ServeExtract(in, out, reason, extractText)
}

// ServeExtract is Serve for another way to extract a text.
func ServeExtract(in io.Reader, out, reason io.Writer, extract Extract) int {
	limit()
	file, err := io.ReadAll(io.LimitReader(in, MaxFile+1))
	if err == nil {
		var text string
		if text, err = extract.bounded(file); err == nil {
			_, err = io.WriteString(out, text)
		}
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrPicture):
		return exitPicture
	}
	_, _ = io.WriteString(reason, err.Error()[:min(len(err.Error()), maxReason)])
	return exitReason
}

// Text returns the text of a file, at most MaxText bytes of it.
func Text(file []byte) (string, error) { return Extract(extractText).bounded(file) }

// bounded returns at most MaxText bytes of text. What makes a library panic is damaged.
func (e Extract) bounded(file []byte) (text string, err error) {
	defer func() {
		if p := recover(); p != nil { // a library's
			text, err = "", errors.New("its file is damaged")
		}
		if len(text) > MaxText {
			text = strings.ToValidUTF8(text[:MaxText], "")
		}
		if text = strings.TrimSpace(text); err == nil && text == "" {
			err = errors.New("there is no text in it")
		}
	}()
	return e(file)
}

// extractText extracts by what the bytes are.
func extractText(file []byte) (string, error) {
	kind := mimetype.Detect(file)
	name, _, _ := strings.Cut(kind.String(), ";")
	switch {
	case name == "application/pdf":
		return pdfText(file)
	case name == "text/html":
		return htmlText(file)
	case officeKinds[name] != nil:
		return officeText(file, officeKinds[name])
	}
	for k := kind; k != nil; k = k.Parent() {
		if k.Is("text/plain") {
			return plain(file), nil
		}
	}
	if strings.HasPrefix(name, "image/") {
		return "", ErrPicture
	}
	return "", fmt.Errorf("files of the type %s cannot be read", name)
}

// plain decodes a text.
func plain(file []byte) string {
	if utf8.Valid(file) {
		return string(bytes.TrimPrefix(file, []byte("\ufeff")))
	}
	decoder := unicode.BOMOverride(charmap.Windows1252.NewDecoder())
	text, err := io.ReadAll(io.LimitReader(decoderReader(file, decoder), MaxText+1))
	if err != nil {
		return strings.ToValidUTF8(string(file), "\ufffd")
	}
	return string(text)
}
