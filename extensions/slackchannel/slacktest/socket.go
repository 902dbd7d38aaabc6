package slacktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// maxSockets is how many connections an app may have.
const maxSockets = 10

// pingEvery is the time between pings.
const pingEvery = 10 * time.Second

// retryAfter are the pauses before an envelope is sent again.
var retryAfter = []time.Duration{0, time.Minute, 5 * time.Minute}

// socket is a connection of Socket Mode.
type socket struct {
	conn    *websocket.Conn
	writing sync.Mutex
	leaving bool // it was told to disconnect
}

func (c *socket) write(v any) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.conn.WriteJSON(v)
}

// envelope is what the app must acknowledge.
type envelope struct {
	id      string
	kind    string
	payload json.RawMessage
	attempt int // from 0
	on      *socket
	timer   *time.Timer
}

func (e *envelope) stop() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

func (s *Server) openConnection(r *http.Request) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	ticket := fmt.Sprint(s.lastID)
	s.tickets[ticket] = true
	return map[string]any{"url": "ws://" + r.Host + "/socket?ticket=" + ticket + "&app_id=A1"}, nil
}

// serveSocket serves one connection until it ends.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	known := s.tickets[ticket] && !s.closed && len(s.sockets) < maxSockets
	delete(s.tickets, ticket) // it opens one connection
	if known {
		s.served.Add(1) // before Close waits
		defer s.served.Done()
	}
	s.mu.Unlock()
	if !known {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	c := &socket{conn: conn}
	s.mu.Lock() // the app must not see the greeting of a connection that is not counted yet
	hello := map[string]any{
		"type": "hello", "num_connections": len(s.sockets) + 1, "connection_info": map[string]any{"app_id": "A1"},
		"debug_info": map[string]any{"host": "applink-1", "approximate_connection_time": 18060},
	}
	if s.closed || c.write(hello) != nil {
		s.mu.Unlock()
		return
	}
	s.opened++
	s.sockets = append(s.sockets, c)
	for _, e := range s.pending {
		if e.on == nil {
			s.send(e)
		}
	}
	s.move()
	s.mu.Unlock()
	ended := make(chan struct{})
	defer close(ended)
	s.served.Go(func() { c.ping(ended) })
	for {
		var ack struct {
			EnvelopeID string `json:"envelope_id"`
		}
		_, raw, err := conn.ReadMessage()
		if err != nil {
			break
		}
		if len(raw) < 20<<10 && json.Unmarshal(raw, &ack) == nil { // larger ones are dropped silently
			s.acknowledged(c, ack.EnvelopeID)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone(c)
}

// ping shows the app that the connection is alive.
func (c *socket) ping(ended <-chan struct{}) {
	every := time.NewTicker(pingEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			_ = c.conn.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(pingEvery))
		case <-ended:
			return
		}
	}
}

// gone sends what the connection did not acknowledge on another one; mu is held.
func (s *Server) gone(c *socket) {
	s.sockets = slices.DeleteFunc(s.sockets, func(o *socket) bool { return o == c })
	for _, e := range s.pending {
		if e.on == c {
			e.on = nil
			e.stop()
			e.attempt++
			s.send(e)
		}
	}
	s.move()
}

// drop ends all connections; mu is held.
func (s *Server) drop() {
	for _, c := range slices.Clone(s.sockets) {
		_ = c.conn.Close()
		s.gone(c)
	}
}

// push queues an envelope; mu is held.
func (s *Server) push(kind string, payload any) string {
	raw, ok := payload.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(payload); err != nil {
			panic("slacktest: a payload does not encode: " + err.Error())
		}
	}
	s.lastID++
	e := &envelope{id: fmt.Sprintf("envelope-%d", s.lastID), kind: kind, payload: raw}
	s.pending = append(s.pending, e)
	s.send(e)
	s.move()
	return e.id
}

// send sends an envelope on the newest connection; without one it waits. mu is held.
func (s *Server) send(e *envelope) {
	i := len(s.sockets) - 1
	for i >= 0 && s.sockets[i].leaving {
		i--
	}
	if i < 0 || s.closed {
		return
	}
	c := s.sockets[i]
	e.on = c
	e.timer = time.AfterFunc(s.ackTimeout, func() { s.unacknowledged(e, c) })
	if e.attempt > 0 {
		s.repeats++
	}
	frame := map[string]any{
		"envelope_id": e.id, "type": e.kind, "payload": e.payload, "accepts_response_payload": e.kind != "events_api",
	}
	if e.kind == "events_api" {
		frame["retry_attempt"], frame["retry_reason"] = e.attempt, ""
		if e.attempt > 0 {
			frame["retry_reason"] = "timeout"
		}
	}
	_ = c.write(frame) // a broken connection is noticed by its reader
}

// unacknowledged repeats an envelope after its time.
func (s *Server) unacknowledged(e *envelope, c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.on != c || !slices.Contains(s.pending, e) {
		return
	}
	s.late++
	s.move()
	if e.attempt++; e.attempt > len(retryAfter) {
		s.given++
		s.pending = slices.DeleteFunc(s.pending, func(o *envelope) bool { return o == e })
		return
	}
	e.on = nil
	e.timer = time.AfterFunc(retryAfter[e.attempt-1], func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.on == nil && slices.Contains(s.pending, e) {
			s.send(e)
		}
	})
}

func (s *Server) acknowledged(c *socket, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(e *envelope) bool {
		mine := e.id == id && e.on == c
		if mine {
			e.stop()
		}
		return mine
	})
	s.move()
}

// RepeatUnacknowledged sends every envelope again that is not acknowledged yet, as after
// three seconds.
func (s *Server) RepeatUnacknowledged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.pending {
		e.stop()
		e.attempt++
		s.send(e)
	}
}

// Disconnect announces the end of all connections, as Slack does every few hours. With
// warning the connections live on until the app ends them, or break; without they end
// at once.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Clone(s.sockets) {
		c.leaving = true
		_ = c.write(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-1"}})
		if reason != "warning" {
			_ = c.conn.Close()
			s.gone(c)
		}
	}
}

// Break ends all connections without a word.
func (s *Server) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
}

// InjectRaw sends an envelope of a kind (events_api, interactive, slash_commands or any
// other) with any payload, and returns its id.
func (s *Server) InjectRaw(kind, payload string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.push(kind, json.RawMessage(payload))
}

// InjectFrame writes any text to all connections.
func (s *Server) InjectFrame(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sockets {
		c.writing.Lock()
		_ = c.conn.WriteMessage(websocket.TextMessage, []byte(strings.ToValidUTF8(text, "?")))
		c.writing.Unlock()
	}
}

// GiveUp drops what is not acknowledged, as Slack does after six minutes.
func (s *Server) GiveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.pending {
		e.stop()
		s.given++
	}
	s.pending = nil
	s.move()
}

// Unacknowledged returns how many envelopes the app has not acknowledged.
func (s *Server) Unacknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Late returns how many envelopes were not acknowledged in time.
func (s *Server) Late() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late
}

// Repeats returns how many envelopes were sent again.
func (s *Server) Repeats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repeats
}

// GivenUp returns how many envelopes will never be sent again.
func (s *Server) GivenUp() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// Connections returns how many connections there are, and how many there have been.
func (s *Server) Connections() (now, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sockets), s.opened
}
