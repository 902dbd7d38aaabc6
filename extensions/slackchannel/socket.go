package slackchannel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

const (
	handshakeTimeout = 20 * time.Second
	writeTimeout     = 10 * time.Second
	// drainTime is how long a connection that Slack replaces is read on.
	drainTime = 30 * time.Second
	// maxFrame bounds one message of the WebSocket.
	maxFrame = 8 << 20
	// writeBuffer is larger than an acknowledgement: Slack drops what comes in fragments.
	writeBuffer = 4 << 10
)

// envelope is what Slack sends over a connection. One with an id must be acknowledged.
type envelope struct {
	ID      string          `json:"envelope_id"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
	Reason  string          `json:"reason"`
	from    *socket
}

// socket is one connection of Socket Mode. The library's own client acknowledges events
// that it cannot parse only if asked to, and opens the next connection after the end of
// the last; here the app stays connected, and reads events leniently.
type socket struct {
	conn    *websocket.Conn
	silence time.Duration
	replace chan struct{} // closed when another connection should be opened
	err     error         // why it ended, once replace is closed
}

// openSocket opens a connection and waits for Slack's greeting.
func (a *activation) openSocket(ctx context.Context) (*socket, error) {
	call, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, address, err := a.api.StartSocketModeContext(call)
	if err != nil {
		return nil, err
	}
	dialer := &websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, HandshakeTimeout: handshakeTimeout, WriteBufferSize: writeBuffer,
	}
	conn, resp, err := dialer.DialContext(call, address, nil) //nolint:bodyclose // it needs no closing
	if err != nil {
		if resp != nil {
			err = fmt.Errorf("%w: status %s", err, resp.Status)
		}
		return nil, &httpcall.Error{Err: err}
	}
	conn.SetReadLimit(maxFrame)
	s := &socket{conn: conn, silence: a.set.times.silence, replace: make(chan struct{})}
	conn.SetPingHandler(func(text string) error {
		s.alive()
		err := conn.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(writeTimeout))
		if errors.Is(err, websocket.ErrCloseSent) {
			return nil
		}
		return err
	})
	s.alive()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for {
		_, frame, err := conn.ReadMessage()
		if err != nil {
			_ = conn.Close()
			return nil, &httpcall.Error{Err: fmt.Errorf("wait for Slack's greeting: %w", err)}
		}
		var e envelope
		if json.Unmarshal(frame, &e) == nil && e.Type == "hello" {
			return s, nil
		}
	}
}

// alive prolongs the time until the connection counts as dead.
func (s *socket) alive() { _ = s.conn.SetReadDeadline(time.Now().Add(s.silence)) }

// read hands on envelopes until the connection or ctx ends.
func (s *socket) read(ctx context.Context, into chan<- envelope) {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	defer stop()
	defer func() { _ = s.conn.Close() }()
	leaving := false
	for {
		_, frame, err := s.conn.ReadMessage()
		if err != nil {
			if !leaving {
				s.err = err
				close(s.replace)
			}
			return
		}
		if !leaving {
			s.alive()
		}
		e := envelope{from: s}
		if json.Unmarshal(frame, &e) != nil {
			continue // without an id it cannot be acknowledged either
		}
		switch {
		case e.Type == "disconnect" && !leaving:
			leaving = true
			_ = s.conn.SetReadDeadline(time.Now().Add(drainTime))
			close(s.replace)
		case e.ID != "":
			select {
			case into <- e:
			case <-ctx.Done():
				return
			}
		}
	}
}

// acknowledge tells Slack that an envelope was stored. It is called by one goroutine. If
// it fails, Slack sends the envelope again.
func (s *socket) acknowledge(id string) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	return s.conn.WriteJSON(map[string]string{"envelope_id": id})
}
