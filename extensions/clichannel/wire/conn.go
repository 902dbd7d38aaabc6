package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// ErrTooLong says that a line is longer than MaxFrame. The connection cannot be
// used afterwards.
var ErrTooLong = errors.New("line of the chat protocol is too long")

// Conn is a connection that carries frames. One goroutine may read while others
// write.
type Conn struct {
	c net.Conn
	r *bufio.Reader

	writeMu sync.Mutex
	timeout time.Duration
}

// NewConn wraps c. A write that takes longer than timeout fails and makes the
// connection unusable; zero means no timeout.
func NewConn(c net.Conn, timeout time.Duration) *Conn {
	return &Conn{c: c, r: bufio.NewReaderSize(c, 4096), timeout: timeout}
}

// Read returns the next frame. A line that is not a frame is ErrBadFrame, and the
// next Read continues after it; every other error is final. A connection that ends
// between two frames returns io.EOF, one that ends within a frame
// io.ErrUnexpectedEOF.
func (c *Conn) Read() (Frame, error) {
	line, err := c.line()
	if err != nil {
		return Frame{}, err
	}
	return Decode(line)
}

func (c *Conn) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.r.ReadSlice('\n')
		if len(line)+len(part) > MaxFrame {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLong, MaxFrame)
		}
		switch {
		case err == nil && line == nil:
			return part, nil
		case err == nil:
			return append(line, part...), nil
		case errors.Is(err, bufio.ErrBufferFull):
			line = append(line, part...)
		case errors.Is(err, io.EOF) && len(line)+len(part) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// Write sends one frame.
func (c *Conn) Write(f Frame) error {
	b, err := Encode(f)
	if err != nil {
		return err
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.timeout > 0 {
		if err := c.c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
			return err
		}
	}
	_, err = c.c.Write(b)
	return err
}

// SetReadTimeout makes reads fail after d from now; zero removes the limit.
func (c *Conn) SetReadTimeout(d time.Duration) error {
	if d == 0 {
		return c.c.SetReadDeadline(time.Time{})
	}
	return c.c.SetReadDeadline(time.Now().Add(d))
}

// Close closes the connection; a blocked Read returns.
func (c *Conn) Close() error { return c.c.Close() }
