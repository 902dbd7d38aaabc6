package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine is the longest message of a client.
const maxLine = 4 << 20

// Stdio is the transport over the standard streams: a message is a line. A line that is not
// JSON, or too long, is answered with an error, and the next one is read.
func Stdio(in io.ReadCloser, out io.WriteCloser) mcp.Transport {
	w := &lockedWriter{WriteCloser: out}
	return &mcp.IOTransport{
		Reader: &messages{in: bufio.NewReader(in), closer: in, out: w}, Writer: w, MaxLineLength: 2 * maxLine,
	}
}

// lockedWriter writes whole messages.
type lockedWriter struct {
	io.WriteCloser
	mu sync.Mutex
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}

// messages reads lines that hold JSON.
type messages struct {
	in     *bufio.Reader
	closer io.Closer
	out    io.Writer
	rest   []byte // of the current line
}

func (m *messages) Close() error { return m.closer.Close() }

func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, whole, err := m.line()
		trimmed := bytes.TrimSpace(line)
		switch {
		case whole && (len(trimmed) == 0 || json.Valid(trimmed)):
		case err != nil && len(trimmed) == 0:
			return 0, err
		default:
			m.refuse(whole)
			line = nil
		}
		if len(trimmed) > 0 && line != nil {
			m.rest = append(bytes.Clone(trimmed), '\n')
		}
		if err != nil && len(m.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// line reads a line; whole is false if it is longer than maxLine.
func (m *messages) line() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := m.in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			whole = false
		}
		if whole {
			line = append(line, part...)
		} else {
			line = line[:0]
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}

// refuse answers a line that is no message.
func (m *messages) refuse(whole bool) {
	message := "the line is not JSON: a message is one line of JSON"
	if !whole {
		message = "the message is longer than 4 MiB"
	}
	answer, _ := json.Marshal(map[string]any{ //nolint:errchkjson // texts
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32700, "message": message},
	})
	_, _ = m.out.Write(append(answer, '\n'))
}
