package telegramtest

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/internal/loopback"
)

// DefaultToken is the token of a server's first bot unless [WithToken] names another.
const DefaultToken = "100001:AAtelegramtestDefaultTokenForLoopback00" //nolint:gosec // known to this server alone

// User is a person, or a bot.
type User struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name,omitempty"`
	Username  string `json:"username,omitempty"`
	Language  string `json:"language_code,omitempty"`
}

// Server is one fake Bot API server. Create it with [New] or [Start].
type Server struct {
	now    func() time.Time
	limits Limits

	port     *loopback.Port
	listenMu sync.Mutex
	http     *http.Server
	served   chan struct{}

	botMu sync.RWMutex
	bot   *bot            // the bot that injected updates go to
	bots  map[string]*bot // by token; a revoked token is not in it

	chatMu sync.RWMutex
	chats  map[int64]*chat
	global bucket

	fileMu sync.Mutex
	files  map[string]*storedFile // by id; nil: deleted

	faults   faults
	book     book
	onAccept func(Message)
}

// Option changes a new [Server].
type Option func(*Server)

// WithToken sets the token of the first bot. The bot's id is the number before its colon.
func WithToken(token string) Option {
	return func(s *Server) {
		b := newBot(token, s.bot.user.Username)
		s.bot, s.bots = b, map[string]*bot{token: b}
	}
}

// WithUsername sets the username of the first bot (default: switchboard_test_bot).
func WithUsername(name string) Option {
	return func(s *Server) { s.bot.user.Username = name }
}

// WithLimits switches rate limits on; [TelegramLimits] are Telegram's.
func WithLimits(l Limits) Option { return func(s *Server) { s.limits = l } }

// WithClock makes limits and message dates follow now, such as [Clock.Now].
// Long polls always wait in real time.
func WithClock(now func() time.Time) Option { return func(s *Server) { s.now = now } }

// OnMessage sets f, which is called for each message that the server accepts from a
// bot, before the request is answered, on the request's goroutine.
func OnMessage(f func(Message)) Option { return func(s *Server) { s.onAccept = f } }

// New starts a server on a free loopback port. Call Close when done with it.
func New(opts ...Option) (*Server, error) {
	b := newBot(DefaultToken, "switchboard_test_bot")
	s := &Server{
		now:   time.Now,
		bot:   b,
		bots:  map[string]*bot{DefaultToken: b},
		chats: map[int64]*chat{},
		files: map[string]*storedFile{},
	}
	s.book.init()
	for _, o := range opts {
		o(s)
	}
	var err error
	if s.port, err = loopback.Take(); err != nil {
		return nil, err
	}
	if err := s.Up(); err != nil {
		s.Close()
		return nil, err
	}
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

// Up restarts a server that is down, on the same address.
func (s *Server) Up() error {
	l, err := s.port.Listen()
	if err != nil {
		return err
	}
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	if s.http != nil {
		_ = l.Close()
		return errors.New("telegramtest: already listening")
	}
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: time.Minute,
		ConnState: func(_ net.Conn, st http.ConnState) {
			if st == http.StateNew {
				s.book.connected()
			}
		},
	}
	s.http = srv
	s.served = make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		_ = srv.Serve(l)
	}(s.served)
	return nil
}

// URL is the base address to give to a bot, such as http://127.0.0.1:40001.
// It stays the same over Down and Up.
func (s *Server) URL() string { return "http://" + s.port.Addr }

// Down takes the server down: open connections break, new ones are refused. It keeps
// its port, chats, messages and unconfirmed updates.
func (s *Server) Down() {
	s.listenMu.Lock()
	srv, served := s.http, s.served
	s.http = nil
	s.listenMu.Unlock()
	if srv == nil {
		return
	}
	_ = srv.Close()
	<-served
}

// Close closes the server. It may be called more than once.
func (s *Server) Close() {
	s.Down()
	s.port.Release()
}

// Clock is a clock that a test advances. The zero value starts at the
// beginning of 2030.
type Clock struct {
	mu      sync.Mutex
	elapsed time.Duration
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(c.elapsed)
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elapsed += d
}
