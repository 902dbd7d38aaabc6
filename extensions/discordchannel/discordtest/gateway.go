package discordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// intentContent is the privileged intent for the contents of messages.
const intentContent = 1 << 15

// otherPrivileged are intents that are always off here.
const otherPrivileged = 1<<1 | 1<<8

// session is what a bot resumes: its events, by sequence number from 1.
type session struct {
	id      string
	intents int
	events  [][]byte
	conn    *conn // nil: it is not connected
}

// conn is one connection to the gateway.
type conn struct {
	server *Server
	socket *websocket.Conn
	cancel context.CancelFunc

	// Under the server's mu.
	session *session
	queue   [][]byte
	wake    chan struct{}
	close   int // the code to close with, after the queue; 0: none
	held    bool
	beat    int64 // the sequence number of the last heartbeat
	sent    []time.Time
}

// payload is what a client sends.
type payload struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
}

func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	away := s.away
	s.mu.Unlock()
	if away {
		reset(w)
		return
	}
	if r.URL.Query().Get("v") != "10" || r.URL.Query().Get("encoding") != "json" {
		http.Error(w, "unknown version or encoding", http.StatusBadRequest)
		return
	}
	socket, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &conn{server: s, socket: socket, cancel: cancel, wake: make(chan struct{}, 1)}
	defer cancel()
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.connections++
	c.push(map[string]any{"op": 10, "d": map[string]any{"heartbeat_interval": s.interval.Milliseconds()}})
	s.change()
	s.mu.Unlock()
	var writing sync.WaitGroup
	writing.Go(func() { c.write(ctx) })
	c.read(ctx)
	cancel()
	writing.Wait()
	_ = socket.CloseNow()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
	}
	s.change()
}

// push queues a payload; mu is held.
func (c *conn) push(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("discordtest: a payload does not encode: " + err.Error())
	}
	c.queue = append(c.queue, b)
	c.rouse()
}

func (c *conn) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// end closes the connection after what is queued; mu is held.
func (c *conn) end(code int) {
	if c.close == 0 {
		c.close = code
	}
	c.rouse()
}

// write writes what is queued.
func (c *conn) write(ctx context.Context) {
	defer c.cancel()
	for {
		c.server.mu.Lock()
		queue, code := c.queue, c.close
		if c.held {
			queue, code = nil, 0
		} else {
			c.queue = nil
		}
		c.server.mu.Unlock()
		for _, b := range queue {
			if c.socket.Write(ctx, websocket.MessageText, b) != nil {
				return
			}
		}
		if code != 0 {
			_ = c.socket.Close(websocket.StatusCode(code), closeText[code])
			return
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
	}
}

var closeText = map[int]string{
	4001: "Unknown opcode.", 4002: "Error while decoding payload.", 4003: "Not authenticated.",
	4004: "Authentication failed.", 4005: "Already authenticated.", 4007: "Invalid seq.", 4008: "Rate limited.",
	4009: "Session timed out.", 4013: "Invalid intent(s).", 4014: "Disallowed intent(s).",
}

// read reads and handles payloads until the connection ends.
func (c *conn) read(ctx context.Context) {
	c.socket.SetReadLimit(4096)
	for {
		_, b, err := c.socket.Read(ctx)
		if err != nil {
			return
		}
		var p payload
		c.server.mu.Lock()
		if json.Unmarshal(b, &p) != nil {
			c.end(4002)
		} else {
			c.handle(p)
		}
		c.server.change()
		c.server.mu.Unlock()
	}
}

// handle handles a payload; mu is held.
func (c *conn) handle(p payload) {
	s, now := c.server, time.Now()
	for len(c.sent) > 0 && now.Sub(c.sent[0]) > time.Minute {
		c.sent = c.sent[1:]
	}
	if c.sent = append(c.sent, now); len(c.sent) > 120 {
		c.end(4008)
		return
	}
	switch p.Op {
	case 1:
		_ = json.Unmarshal(p.Data, &c.beat)
		c.push(map[string]any{"op": 11})
	case 2:
		c.identify(p.Data)
	case 6:
		var d struct {
			Token   string `json:"token"`
			Session string `json:"session_id"`
			Seq     int    `json:"seq"`
		}
		_ = json.Unmarshal(p.Data, &d)
		one := s.sessions[d.Session]
		switch {
		case c.session != nil:
			c.end(4005)
		case d.Token != s.token:
			c.end(4004)
		case one == nil:
			c.push(map[string]any{"op": 9, "d": false})
		case d.Seq > len(one.events) || d.Seq < 0:
			c.end(4007)
		default:
			if one.conn != nil {
				one.conn.session = nil
				one.conn.end(4000)
			}
			c.session, one.conn = one, c
			c.queue = append(c.queue, one.events[d.Seq:]...)
			s.event(one, "RESUMED", map[string]any{})
		}
	default:
		if c.session == nil {
			c.end(4003)
			return
		}
		c.end(4001)
	}
}

// identify begins a session; mu is held.
func (c *conn) identify(data json.RawMessage) {
	s := c.server
	var d struct {
		Token      string            `json:"token"`
		Intents    *int              `json:"intents"`
		Properties map[string]string `json:"properties"`
	}
	err := json.Unmarshal(data, &d)
	s.identifies++
	switch {
	case err != nil || d.Properties["os"] == "":
		c.end(4002)
		return
	case c.session != nil:
		c.end(4005)
		return
	case d.Token != s.token:
		c.end(4004)
		return
	case d.Intents == nil:
		c.end(4013)
		return
	case *d.Intents&intentContent != 0 && !s.content || *d.Intents&otherPrivileged != 0:
		c.end(4014)
		return
	case s.refuse != 0:
		c.end(s.refuse)
		return
	}
	one := &session{id: "session" + s.newID(), intents: *d.Intents, conn: c}
	s.sessions[one.id] = one
	c.session = one
	var guilds []any
	for id := range s.guilds {
		guilds = append(guilds, map[string]any{"id": id, "unavailable": true})
	}
	s.event(one, "READY", map[string]any{
		"v": 10, "user": s.renderUser(BotID), "guilds": guilds, "session_id": one.id,
		"resume_gateway_url": "ws://" + s.port.Addr + "/gateway/resume",
		"application":        map[string]any{"id": BotID, "flags": 0},
	})
	for id, name := range s.guilds {
		var channels []any
		for _, x := range s.channels {
			if x.Guild == id && x.Type != TypeThread {
				channels = append(channels, map[string]any{"id": x.ID, "type": x.Type, "name": x.Name})
			}
		}
		s.event(one, "GUILD_CREATE", map[string]any{"id": id, "name": name, "channels": channels, "threads": []any{}})
	}
}

// event adds an event to a session, and sends it if the session is connected; mu is held.
func (s *Server) event(one *session, kind string, data any) {
	b, err := json.Marshal(map[string]any{"op": 0, "t": kind, "s": len(one.events) + 1, "d": data})
	if err != nil {
		panic("discordtest: an event does not encode: " + err.Error())
	}
	one.events = append(one.events, b)
	if one.conn != nil {
		one.conn.queue = append(one.conn.queue, b)
		one.conn.rouse()
	}
}

// dispatch adds an event to all sessions that have its intent; mu is held.
func (s *Server) dispatch(kind string, c *channel, data any) {
	for _, one := range s.sessions {
		if c != nil {
			intent := 0
			switch kind {
			case "MESSAGE_CREATE", "MESSAGE_UPDATE":
				intent = 1 << 9
			case "MESSAGE_REACTION_ADD":
				intent = 1 << 10
			}
			if c.Guild == "" {
				intent <<= 3
			}
			if one.intents&intent != intent {
				continue
			}
			if d, ok := data.(map[string]any); ok && intent == 1<<9 && one.intents&intentContent == 0 {
				s.event(one, kind, withoutContent(c, d))
				continue
			}
		}
		s.event(one, kind, data)
	}
}

// Reconnect asks all connections to connect again and to resume.
func (s *Server) Reconnect() {
	s.each(func(c *conn) { c.push(map[string]any{"op": 7, "d": nil}) })
}

// InvalidateSessions ends all sessions; the bot has to begin a new one.
func (s *Server) InvalidateSessions() {
	s.mu.Lock()
	s.sessions = map[string]*session{}
	s.mu.Unlock()
	s.each(func(c *conn) { c.push(map[string]any{"op": 9, "d": false}) })
}

// ForgetSessions ends all sessions without telling, as time does while a bot is away.
func (s *Server) ForgetSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = map[string]*session{}
}

// CloseConnections closes all connections with a code.
func (s *Server) CloseConnections(code int) { s.each(func(c *conn) { c.end(code) }) }

// DropConnections breaks all connections to the gateway. Sessions stay.
func (s *Server) DropConnections() { s.each(func(c *conn) { c.cancel() }) }

// Hold keeps everything that the gateway sends until it is called with false.
func (s *Server) Hold(on bool) {
	s.each(func(c *conn) {
		c.held = on
		c.rouse()
	})
}

// Away makes the gateway refuse connections, and breaks those that are open.
func (s *Server) Away(on bool) {
	s.mu.Lock()
	s.away = on
	s.mu.Unlock()
	if on {
		s.DropConnections()
	}
}

// RefuseSessions closes connections that begin a session with a code; 0: no more.
func (s *Server) RefuseSessions(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = code
}

func (s *Server) each(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
	s.change()
}

// AllowSessions sets how many sessions may begin, as Discord tells the bot: a second later
// there may be more.
func (s *Server) AllowSessions(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startsLeft = n
}

// Identifies returns how many sessions the bot has tried to begin.
func (s *Server) Identifies() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identifies
}

// Connections returns how many connections to the gateway there were.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

// Connected reports whether the bot has a session and is connected.
func (s *Server) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.sessions {
		if one.conn != nil {
			return true
		}
	}
	return false
}

// WaitSession waits until the bot has a session: from then on it is told what people
// write, also if it is not connected for a while.
func (s *Server) WaitSession(ctx context.Context) error {
	return s.Wait(ctx, "a session", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.sessions) > 0
	})
}

// WaitConnected waits until the bot has connected at least n times to the gateway, and
// has a session.
func (s *Server) WaitConnected(ctx context.Context, n int) error {
	return s.Wait(ctx, fmt.Sprintf("connection %d to the gateway", n), func() bool {
		return s.Connections() >= n && s.Connected()
	})
}

// Beat returns the sequence number of the last heartbeat.
func (s *Server) Beat() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		n = max(n, c.beat)
	}
	return n
}
