// Package output turns what the processes of extensions write into log lines, and keeps
// its beginning and its end, which say why a process died.
package output

import (
	"bytes"
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

	"github.com/switchboard-run/switchboard/contract"
)

const (
	keepHead = 8        // first lines that are kept: they usually say why a process did not start
	keepTail = 4        // last lines that are kept
	keepLine = 512      // bytes kept of each of them
	maxCrash = 16 << 10 // bytes kept of a stack trace
)

// Output is what one process writes, line by line: log lines in hclog's JSON
// go unchanged to the log of the extension that they name, all others become such
// lines. It keeps the first lines and the last ones, which say why the process died. It implements
// launch.Output.
//
// Secrets of the process are redacted everywhere: in a URL of an error, at the end
// of a panic.
//
// Lines are parsed here because go-plugin's parser panics, in the kernel, on a log
// line whose message is not a string.
type Output struct {
	sinks map[string]io.Writer
	logs  map[string]hclog.Logger

	secrets atomic.Pointer[strings.Replacer] // nil: none

	mu     sync.Mutex
	given  []string // secrets so far, each followed by redacted
	head   []string // the first lines
	tail   []string // the last lines after them, or a stack trace
	left   bool     // lines between them were left out
	errors string   // the last log line of level error
	panics bool
	trace  int // bytes of the stack trace
}

// New returns the output of a process that serves extensions. Sink returns where the log
// lines of one go, one Write each, also from several goroutines at a time; a Write must
// not block for long.
func New(ids []string, sink func(id string) io.Writer) *Output {
	o := &Output{sinks: map[string]io.Writer{}, logs: map[string]hclog.Logger{}}
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

// Conceal redacts secrets from now on, also in the forms that they have in a URL
// or in JSON.
func (o *Output) Conceal(secrets iter.Seq[string]) {
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

// Clean returns a text with its secrets redacted.
func (o *Output) Clean(text string) string {
	if r := o.secrets.Load(); r != nil {
		return r.Replace(text)
	}
	return text
}

// Line takes a line of stdout or stderr.
func (o *Output) Line(stream string, line []byte) {
	line = bytes.TrimRight(line, "\r\n")
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	line = []byte(o.Clean(string(line)))
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
func (o *Output) logLine(line []byte, module string) {
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
func (o *Output) remember(stream, line string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	ends := strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	if ends && !o.panics && stream == "stderr" {
		o.panics, o.head, o.tail, o.left = true, nil, nil, false
	}
	switch {
	case !o.panics && len(o.head) < keepHead:
		o.head = append(o.head, cut(line))
	case !o.panics:
		o.left = o.left || len(o.tail) == keepTail
		o.tail = append(o.tail[max(0, len(o.tail)-keepTail+1):], cut(line))
	case stream == "stderr" && o.trace < maxCrash:
		o.tail = append(o.tail, line)
		o.trace += len(line) + 1
	}
	return o.panics
}

// Last is why the process ended, as far as its output says so: in one line, and in full: a
// panic with its stack, or the first lines and the last ones.
func (o *Output) Last() (summary, full string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := slices.Clone(o.head)
	if o.left {
		lines = append(lines, "…")
	}
	lines = append(lines, o.tail...)
	full = strings.Join(lines, "\n")
	switch {
	case o.panics:
		return cut(o.tail[0]), full
	case o.errors != "":
		return o.errors, full
	}
	for _, line := range slices.Backward(lines) {
		if namesError(line) {
			return line, full
		}
	}
	if len(lines) > 0 {
		return lines[len(lines)-1], full
	}
	return "", ""
}

// namesError reports whether a line is an exception of Node or Python, such as "TypeError: x is
// undefined". What Node prints after it says less.
func namesError(line string) bool {
	name, _, ok := strings.Cut(line, ": ")
	name, _, _ = strings.Cut(name, " [") // a code
	return ok && !strings.Contains(name, " ") && (strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Exception"))
}

func cut(line string) string { return contract.Truncate(line, keepLine, "…") }
