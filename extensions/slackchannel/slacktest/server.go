package slacktest

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// The first tokens, and the bot of the app.
const (
	DefaultBotToken = "xoxb-1-slacktest"    //nolint:gosec // known to this server alone
	DefaultAppToken = "xapp-1-A1-slacktest" //nolint:gosec // likewise
	Bot             = "UBOT00001"
	BotName         = "switchboard"
	Team            = "T00000001"
	TeamName        = "Test team"
)

// User is a person of the workspace.
type User struct {
	ID     string
	Name   string // as shown to people
	Locale string // such as ru-RU
}

// Server is one workspace with one app. Create it with [New] or [Start].
type Server struct {
	now        func() time.Time
	limited    bool
	ackTimeout time.Duration
	listener   *gate
	http       *http.Server
	served     sync.WaitGroup
	upgrader   websocket.Upgrader
	onAccept   func(Message)

	mu       sync.Mutex
	moved    chan struct{} // closed and replaced at every change
	closed   bool
	tokens   map[string]string // by token: what it is refused with; empty: it is accepted
	botToken string
	appToken string
	users    map[string]User
	convs    map[string]*conversation
	files    map[string]*File
	lastTS   int64
	lastID   int
	tickets  map[string]bool
	sockets  []*socket // oldest first
	opened   int       // connections since the start
	pending  []*envelope
	given    int // envelopes that were given up
	late     int // envelopes that were not acknowledged in time
	repeats  int // envelopes that were sent again
	calls    map[string]int
	refused  []Refusal
	accepted int
	untold   []Message // accepted, and not reported to onAccept
	faults   []planned
	// ephemeral are the messages that only one person sees.
	ephemeral []Ephemeral
	hung      chan struct{}
	rates     rates
}

// Option changes a new [Server].
type Option func(*Server)

// WithLimits switches the rate limits on.
func WithLimits() Option { return func(s *Server) { s.limited = true } }

// WithClock makes rate limits and times of messages follow now.
func WithClock(now func() time.Time) Option { return func(s *Server) { s.now = now } }

// WithAckTimeout changes how long an envelope waits for its acknowledgement, 3 s.
func WithAckTimeout(d time.Duration) Option { return func(s *Server) { s.ackTimeout = d } }

// OnMessage sets f, which is called for each message that the server accepts from the
// bot, and each edit, before the request is answered.
func OnMessage(f func(Message)) Option { return func(s *Server) { s.onAccept = f } }

// New starts a server on a free loopback port. Call Close when done with it.
func New(opts ...Option) (*Server, error) {
	s := &Server{
		now: time.Now, ackTimeout: 3 * time.Second, moved: make(chan struct{}),
		tokens:   map[string]string{DefaultBotToken: "", DefaultAppToken: ""},
		botToken: DefaultBotToken, appToken: DefaultAppToken,
		users: map[string]User{}, convs: map[string]*conversation{}, files: map[string]*File{},
		tickets: map[string]bool{}, calls: map[string]int{}, rates: rates{},
	}
	for _, o := range opts {
		o(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		return nil, fmt.Errorf("slacktest: %w", err)
	}
	s.listener = &gate{Listener: l}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.served.Go(func() { _ = s.http.Serve(s.listener) })
	return s, nil
}

// Start is New for a test: a failure ends the test, and the server is closed with it.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s, err := New(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// URL is the base address of the Web API, such as http://127.0.0.1:40001/api/.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/api/" }

// BotToken and AppToken are the tokens that the server accepts.
func (s *Server) BotToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.botToken
}

// AppToken is the app-level token that the server accepts.
func (s *Server) AppToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.appToken
}

// Revoke refuses both tokens from now on, ends the connections, and returns the tokens
// that replace them.
func (s *Server) Revoke() (botToken, appToken string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[s.botToken], s.tokens[s.appToken] = "token_revoked", "token_revoked"
	s.lastID++
	s.botToken, s.appToken = fmt.Sprintf("xoxb-%d-slacktest", s.lastID), fmt.Sprintf("xapp-1-A%d-slacktest", s.lastID)
	s.tokens[s.botToken], s.tokens[s.appToken] = "", ""
	s.drop()
	s.move()
	return s.botToken, s.appToken
}

// Restore accepts a revoked token again, as if it had been a mistake.
func (s *Server) Restore(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = ""
}

// Down breaks all connections, and resets new ones, until Up.
func (s *Server) Down() {
	s.listener.shut(true)
	s.mu.Lock()
	s.drop()
	s.mu.Unlock()
}

// Up ends Down.
func (s *Server) Up() { s.listener.shut(false) }

// Close closes the server. It may be called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.drop()
	for _, e := range s.pending {
		e.stop()
	}
	s.pending = nil
	if s.hung != nil {
		close(s.hung)
		s.hung = nil
	}
	s.mu.Unlock()
	s.listener.shut(true)
	_ = s.http.Close()
	s.served.Wait()
}

// move wakes the waiters; mu is held.
func (s *Server) move() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// gate is a listener that resets connections while it is shut.
type gate struct {
	net.Listener

	mu    sync.Mutex
	isOff bool
	open  []*gated
}

type gated struct {
	net.Conn
	gate *gate
}

func (c *gated) Close() error {
	c.gate.mu.Lock()
	c.gate.open = slices.DeleteFunc(c.gate.open, func(o *gated) bool { return o == c })
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		if !g.isOff {
			mine := &gated{c, g}
			g.open = append(g.open, mine)
			g.mu.Unlock()
			return mine, nil
		}
		g.mu.Unlock()
		breakOff(c)
	}
}

func (g *gate) shut(off bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOff = off; off {
		for _, c := range g.open {
			breakOff(c.Conn)
		}
		g.open = nil
	}
}

// breakOff closes a connection with an RST.
func breakOff(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
