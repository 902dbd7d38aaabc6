package supervisor

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
)

const (
	maxLine  = 64 << 10 // a longer line is cut into pieces
	keepTail = 12       // lines kept of what came last
	keepLine = 512      // bytes kept of each of them
	maxCrash = 16 << 10 // bytes kept of a stack trace
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
	tail   []string
	errors string // the last log line of level error
	crash  strings.Builder
	panics bool
}

func newOutput(ids []string, sink func(id string) io.Writer) *output {
	o := &output{sinks: map[string]io.Writer{}, logs: map[string]hclog.Logger{}}
	for _, id := range ids {
		w := &lockedWriter{w: sink(id)}
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
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1 : len(quoted)-1])} {
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

// stream is a writer for one of the process's outputs.
func (o *output) stream(name string) *lineWriter { return &lineWriter{output: o, name: name} }

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
	level := o.remember(stream, string(line))
	for _, log := range o.logs {
		log.Log(level, string(line), "stream", stream)
	}
}

// logLine writes a JSON line to the log of the extension that its module names,
// or, if it names none of them, to all.
func (o *output) logLine(line []byte, module string) {
	id, _, _ := strings.Cut(module, ".")
	whole := append(bytes.Clone(line), '\n')
	if w, ok := o.sinks[id]; ok {
		_, _ = w.Write(whole)
		return
	}
	for _, w := range o.sinks {
		_, _ = w.Write(whole)
	}
}

// remember keeps a plain line and tells how serious it looks.
func (o *output) remember(stream, line string) hclog.Level {
	o.mu.Lock()
	defer o.mu.Unlock()
	if stream == "stderr" {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			o.panics = true
		}
		if o.panics && o.crash.Len() < maxCrash {
			o.crash.WriteString(line + "\n")
		}
	}
	o.tail = append(o.tail, cut(line))
	if len(o.tail) > keepTail {
		o.tail = o.tail[1:]
	}
	if o.panics {
		return hclog.Error
	}
	for _, level := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Warn, hclog.Error} {
		if strings.HasPrefix(line, "["+strings.ToUpper(level.String())+"]") {
			return level
		}
	}
	return hclog.Info
}

// last is what the process had to say at the end: in one line, and in full.
func (o *output) last() (summary, full string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.panics {
		full = o.crash.String()
		summary, _, _ = strings.Cut(full, "\n")
		return cut(summary), full
	}
	full = strings.Join(o.tail, "\n")
	switch {
	case o.errors != "":
		return o.errors, full
	case len(o.tail) > 0:
		return o.tail[len(o.tail)-1], full
	}
	return "", ""
}

func cut(s string) string {
	if len(s) <= keepLine {
		return s
	}
	return strings.ToValidUTF8(s[:keepLine], "") + "…"
}

// lineWriter cuts a stream into lines. It is used by one goroutine.
type lineWriter struct {
	output  *output
	name    string
	pending []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.pending = append(w.pending, p...)
			if len(w.pending) >= maxLine {
				w.flush()
			}
			break
		}
		w.pending = append(w.pending, p[:i]...)
		w.flush()
		p = p[i+1:]
	}
	return n, nil
}

func (w *lineWriter) flush() {
	for len(w.pending) > maxLine {
		w.output.line(w.name, w.pending[:maxLine])
		w.pending = w.pending[maxLine:]
	}
	if len(w.pending) > 0 {
		w.output.line(w.name, w.pending)
	}
	w.pending = w.pending[:0]
}

// lockedWriter lets several streams share a sink.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}
