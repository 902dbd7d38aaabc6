package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/switchboard-run/switchboard/contract"
)

const (
	maxLine  = 64 << 10 // a longer line is cut into pieces
	keepTail = 12       // last lines that are kept
	keepLine = 512      // bytes kept of each of them
	maxCrash = 16 << 10 // bytes kept of a stack trace

	// The rate at which a stream is read: a burst, and bytes per second. A process
	// that writes faster blocks, as on a full pipe.
	outputBurst = 4 << 20
	outputRate  = 512 << 10
)

// output receives the output of a process line by line: log lines in hclog's JSON
// go unchanged to the log of the extension that they name, all others become such
// lines. It keeps the last lines, which say why the process died.
//
// Secrets of the process are redacted everywhere: in a URL of an error, at the end
// of a panic.
//
// Lines are parsed here because go-plugin's parser panics, in the kernel, on a log
// line whose message is not a string.
type output struct {
	sinks map[string]io.Writer
	logs  map[string]hclog.Logger

	secrets atomic.Pointer[strings.Replacer] // nil: none

	mu     sync.Mutex
	given  []string // secrets so far, each followed by redacted
	tail   []string // the last lines, or a stack trace
	errors string   // the last log line of level error
	panics bool
	trace  int // bytes of the stack trace
}

func newOutput(ids []string, sink func(id string) io.Writer) *output {
	o := &output{sinks: map[string]io.Writer{}, logs: map[string]hclog.Logger{}}
	for _, id := range ids {
		w := sink(id)
		o.sinks[id] = w
		o.logs[id] = hclog.New(&hclog.LoggerOptions{Name: id, Output: w, JSONFormat: true, Level: hclog.Trace})
	}
	return o
}

const (
	// minSecret is the least length, in bytes, of a secret that is redacted: shorter
	// ones are part of ordinary words.
	minSecret = 6
	redacted  = "[secret]"
)

// conceal redacts secrets from now on, also in the forms that they have in a URL
// or in JSON.
func (o *output) conceal(secrets iter.Seq[string]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		quoted, _ := json.Marshal(secret)
		escaped := string(quoted[1 : len(quoted)-1])
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), escaped} {
			if !slices.Contains(o.given, form) {
				o.given = append(o.given, form, redacted)
			}
		}
	}
	if len(o.given) > 0 {
		o.secrets.Store(strings.NewReplacer(o.given...))
	}
}

// clean returns a text with its secrets redacted.
func (o *output) clean(text string) string {
	if r := o.secrets.Load(); r != nil {
		return r.Replace(text)
	}
	return text
}

// lines passes on what is written to it line by line, at a limited rate until ctx
// ends.
type lines struct {
	ctx   context.Context
	limit *rate.Limiter
	take  func(line []byte)

	mu     sync.Mutex
	part   []byte // of a line
	closed bool
}

func newLines(ctx context.Context, take func([]byte)) *lines {
	return &lines{ctx: ctx, limit: rate.NewLimiter(outputRate, outputBurst), take: take}
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, io.ErrClosedPipe
	}
	_ = l.limit.WaitN(l.ctx, len(p))
	l.part = append(l.part, p...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if len(line) > maxLine || len(line) == maxLine && !whole {
			line, rest, whole = l.part[:maxLine], l.part[maxLine:], true
		}
		if !whole {
			return len(p), nil
		}
		l.take(line)
		l.part = rest
	}
}

// Close takes the last line, which may not be whole.
func (l *lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && len(l.part) > 0 {
		l.take(l.part)
	}
	l.closed = true
	return nil
}

// copy takes all of a stream.
func (l *lines) copy(r io.Reader) {
	_, _ = io.Copy(l, r)
	_ = l.Close()
}

func (o *output) line(stream string, line []byte) {
	line = bytes.TrimRight(line, "\r\n")
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	line = []byte(o.clean(string(line)))
	var entry struct {
		Level   any `json:"@level"`
		Message any `json:"@message"`
		Module  any `json:"@module"`
		Error   any `json:"error"`
	}
	if line[0] == '{' && json.Unmarshal(line, &entry) == nil && entry.Message != nil {
		o.logLine(line, fmt.Sprint(entry.Module))
		if entry.Level == "error" {
			text := fmt.Sprint(entry.Message)
			if entry.Error != nil {
				text += ": " + fmt.Sprint(entry.Error)
			}
			o.mu.Lock()
			o.errors = cut(text)
			o.mu.Unlock()
		}
		return
	}
	options := &hclog.StandardLoggerOptions{InferLevels: true}
	if o.remember(stream, string(line)) {
		options.ForceLevel = hclog.Error
	}
	for _, log := range o.logs {
		_, _ = log.With("stream", stream).StandardWriter(options).Write(line)
	}
}

// logLine writes a JSON line to the log of the extension that its module names,
// or, if it names none of them, to all.
func (o *output) logLine(line []byte, module string) {
	id, _, _ := strings.Cut(module, ".")
	line = append(line, '\n')
	if w, ok := o.sinks[id]; ok {
		_, _ = w.Write(line)
		return
	}
	for _, w := range o.sinks {
		_, _ = w.Write(line)
	}
}

// remember keeps a plain line, and reports whether the process panics.
func (o *output) remember(stream, line string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	ends := strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	if ends && !o.panics && stream == "stderr" {
		o.panics, o.tail = true, nil
	}
	switch {
	case !o.panics:
		o.tail = append(o.tail[max(0, len(o.tail)-keepTail+1):], cut(line))
	case stream == "stderr" && o.trace < maxCrash:
		o.tail = append(o.tail, line)
		o.trace += len(line) + 1
	}
	return o.panics
}

// last is the end of the output: in one line, and in full.
func (o *output) last() (summary, full string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	full = strings.Join(o.tail, "\n")
	switch {
	case o.panics:
		return cut(o.tail[0]), full
	case o.errors != "":
		return o.errors, full
	case len(o.tail) > 0:
		return o.tail[len(o.tail)-1], full
	}
	return "", ""
}

func cut(line string) string { return contract.Truncate(line, keepLine, "…") }
