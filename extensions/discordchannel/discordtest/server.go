package discordtest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/internal/loopback"
)

// BotID is the id of the bot and of its application.
const BotID = "900000000000000001"

// DefaultToken is the bot's token until [Server.Revoke].
var DefaultToken = TokenOf("first")

// TokenOf returns a token of the bot.
func TokenOf(secret string) string {
	return base64.RawStdEncoding.EncodeToString([]byte(BotID)) + ".GtEsTs." + secret + "-discordtest-loopback"
}

// BotName is the bot's user name.
const BotName = "switchboard_test"

// User is a person.
type User struct {
	ID         string
	Username   string
	GlobalName string
	Locale     string // of their app, such as en-US
}

// Server is one fake Discord. Create it with [New] or [Start].
type Server struct {
	now      func() time.Time
	limits   Limits
	interval time.Duration // of heartbeats
	onAccept func(Message)

	port     *loopback.Port
	listenMu sync.Mutex
	http     *http.Server
	served   chan struct{}

	mu           sync.Mutex
	moved        chan struct{} // closed at each change; nil: no waiter
	token        string
	content      bool // the intent for contents is on
	lastID       int64
	users        map[string]User
	channels     map[string]*channel
	guilds       map[string]string // names by id
	sessions     map[string]*session
	conns        map[*conn]struct{}
	connections  int
	identifies   int
	startsLeft   int  // sessions that may begin
	refuse       int  // close code for new sessions; 0: none
	away         bool // the gateway takes no connections
	commands     []Command
	interactions map[string]*interaction
	ephemeral    []string // answers that only one person sees
	files        map[string]*storedFile
	nonces       map[string]nonced
	calls        map[string]int
	refused      []Refusal
	accepted     int
	faults       []planned
	hung         chan struct{}
	routes       map[string]*rate
	global       rate
}

// Option changes a new [Server].
type Option func(*Server)

// WithLimits switches rate limits on; [DiscordLimits] are Discord's.
func WithLimits(l Limits) Option { return func(s *Server) { s.limits = l } }

// WithClock makes limits, ids and dates follow now. Heartbeats always take real time.
func WithClock(now func() time.Time) Option { return func(s *Server) { s.now = now } }

// WithHeartbeats sets the interval of heartbeats, 41 seconds by default.
func WithHeartbeats(every time.Duration) Option { return func(s *Server) { s.interval = every } }

// WithoutContentIntent switches the intent for the contents of messages off, as it is for
// a new bot.
func WithoutContentIntent() Option { return func(s *Server) { s.content = false } }

// OnMessage sets f, which is called for each message that the server accepts from the
// bot, and for each change of one, before the request is answered.
func OnMessage(f func(Message)) Option { return func(s *Server) { s.onAccept = f } }

// New starts a server on a free loopback port. Call Close when done with it.
func New(opts ...Option) (*Server, error) {
	s := &Server{
		now: time.Now, interval: 41250 * time.Millisecond, token: DefaultToken, content: true, startsLeft: 1000,
		users: map[string]User{}, channels: map[string]*channel{}, guilds: map[string]string{},
		sessions: map[string]*session{}, conns: map[*conn]struct{}{}, interactions: map[string]*interaction{},
		files: map[string]*storedFile{}, nonces: map[string]nonced{}, calls: map[string]int{}, routes: map[string]*rate{},
	}
	for _, o := range opts {
		o(s)
	}
	var err error
	if s.port, err = loopback.Take(); err != nil {
		return nil, fmt.Errorf("discordtest: %w", err)
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

// URL is the address of the API to give to a bot. It stays the same over Down and Up.
func (s *Server) URL() string { return s.base() + "/api/v10" }

func (s *Server) base() string { return "http://" + s.port.Addr }

// Up restarts a server that is down, on the same address.
func (s *Server) Up() error {
	l, err := s.port.Listen()
	if err != nil {
		return fmt.Errorf("discordtest: %w", err)
	}
	s.listenMu.Lock()
	defer s.listenMu.Unlock()
	if s.http != nil {
		_ = l.Close()
		return errors.New("discordtest: already listening")
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	s.http, s.served = srv, done
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	return nil
}

// Down takes the server down: open connections break, new ones are refused. It keeps its
// port, its channels and its sessions.
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
	s.DropConnections()
}

// Close closes the server. It may be called more than once.
func (s *Server) Close() {
	s.Release()
	s.Down()
	s.port.Release()
}

// Token returns the bot's token.
func (s *Server) Token() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// Revoke gives the bot a new token. The old one becomes unknown, and its sessions end.
func (s *Server) Revoke(token string) {
	s.mu.Lock()
	s.token = token
	s.sessions = map[string]*session{}
	s.mu.Unlock()
	s.CloseConnections(4004)
}

// AllowContent switches the intent for the contents of messages on or off.
func (s *Server) AllowContent(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content = on
}

// AddUser names a person, who is otherwise called "user" and their id.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// user returns a person; mu is held.
func (s *Server) user(id string) User {
	u, ok := s.users[id]
	if !ok {
		u = User{ID: id, Username: "user" + id, Locale: "en-US"}
		s.users[id] = u
	}
	return u
}

// change wakes the waiters; mu is held.
func (s *Server) change() {
	if s.moved != nil {
		close(s.moved)
		s.moved = nil
	}
}

// Wait waits until done reports true. It calls done after every change; done may call any
// method of the server.
func (s *Server) Wait(ctx context.Context, what string, done func() bool) error {
	for {
		s.mu.Lock()
		if s.moved == nil {
			s.moved = make(chan struct{})
		}
		moved := s.moved
		s.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("discordtest: waiting for %s: %w (refused: %+v)", what, ctx.Err(), s.Refused())
		}
	}
}

// discordEpoch is the time from which ids count.
const discordEpoch = 1420070400000 // Unix milliseconds

// newID returns an id; mu is held.
func (s *Server) newID() string {
	s.lastID = max(s.lastID+1, (s.now().UnixMilli()-discordEpoch)<<22)
	return strconv.FormatInt(s.lastID, 10)
}
