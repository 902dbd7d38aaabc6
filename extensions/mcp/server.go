package mcp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract/mcpfile"
)

// How failed starts are repeated.
const (
	backoff     = time.Second
	maxBackoff  = 30 * time.Second
	maxFailures = 5
	failWindow  = 5 * time.Minute
	stopGrace   = 2 * time.Second
)

// How long a server may take until it answers. A program that is installed first takes
// longer.
const (
	startTimeout   = 30 * time.Second
	installTimeout = 3 * time.Minute
	// probeTimeout is how long a server may take for the question of the newest protocol,
	// which older ones may leave unanswered.
	probeTimeout = 10 * time.Second
)

// server is one server of mcp.json.
type server struct {
	mcpfile.Launch
	e    *extension
	hash string
	logs logins

	mu       sync.Mutex
	session  *session
	starting chan struct{} // closed when a start has ended; nil: none is under way
	users    int           // calls that use the session
	idle     *time.Timer   // stops it
	failures []time.Time
	retryAt  time.Time
	lastErr  error
	failed   bool // too often: only a person starts it again
	closed   bool
	// unstarted: the last start failed
	unstarted bool
}

func newServer(e *extension, l mcpfile.Launch) *server {
	return &server{Launch: l, e: e, hash: l.Hash()}
}

// session is a connection to a running server.
type session struct {
	*mcp.ClientSession
	link  link
	calls calls
}

// state returns what the owner decided; empty: nothing yet.
func (s *server) state() string {
	if slices.ContainsFunc(s.e.setup.Allow, func(name string) bool { return mcpfile.ID(name) == s.ID }) {
		return mcpfile.Allowed
	}
	if r := s.e.book.get(s.ID); r.Hash == s.hash {
		return r.Decision
	}
	return ""
}

func (s *server) readOnly(tool string) bool { return slices.Contains(s.ReadOnly, tool) }

// errNotAllowed is why a server does not start.
func (s *server) refusal() error {
	switch s.state() {
	case mcpfile.Allowed:
		return nil
	case mcpfile.Refused:
		return fmt.Errorf("the owner refused the MCP server %s", s.Name)
	}
	return fmt.Errorf("the MCP server %s waits for the owner's consent: they were asked, "+
		"or run `switchboard extensions allow mcp/%s`", s.Name, s.ID)
}

// use returns the running session, and starts the server if it does not run. The caller
// calls release.
func (s *server) use(ctx context.Context) (*session, func(), error) {
	for {
		if err := s.refusal(); err != nil {
			return nil, nil, err
		}
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, nil, errors.New("the kernel is stopping")
		case s.session != nil:
			x := s.session
			s.users++
			if s.idle != nil {
				s.idle.Stop()
			}
			s.mu.Unlock()
			return x, sync.OnceFunc(s.release), nil
		case s.failed:
			err := s.failure()
			s.mu.Unlock()
			return nil, nil, err
		}
		ended := s.starting
		if ended == nil {
			ended = make(chan struct{})
			s.starting = ended
			wait := time.Until(s.retryAt)
			go s.begin(wait, ended)
		}
		failures := len(s.failures)
		s.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		s.mu.Lock()
		err := s.lastErr
		again := s.session != nil || len(s.failures) == failures
		s.mu.Unlock()
		if err != nil && !again {
			return nil, nil, fmt.Errorf("the MCP server %s doesn't start: %w", s.Name, err)
		}
	}
}

// failure says why the server is not started; the caller holds s.mu.
func (s *server) failure() error {
	return fmt.Errorf("the MCP server %s failed %d times and isn't started again: %w; /mcp restart %s tries again",
		s.Name, len(s.failures), s.lastErr, s.ID)
}

// release ends one use. The last one begins the idle time.
func (s *server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 || s.session == nil || s.closed {
		return
	}
	x := s.session
	s.idle = time.AfterFunc(s.e.idle, func() {
		s.mu.Lock()
		due := s.users == 0 && s.session == x
		if due {
			s.session = nil
		}
		s.mu.Unlock()
		if due {
			s.e.log.Debug("stopping an unused MCP server", "server", s.ID)
			x.end("it was not used")
		}
	})
}

// begin starts the server after a wait.
func (s *server) begin(wait time.Duration, ended chan struct{}) {
	defer close(ended)
	ctx, cancel := context.WithCancel(s.e.background)
	defer cancel()
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	x, err := s.open(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = nil
	switch {
	case err != nil:
		s.unstarted = true
		s.fail(err)
	case s.closed:
		go x.end("Switchboard is stopping")
	default:
		s.session, s.lastErr, s.unstarted = x, nil, false
		go s.watch(x)
	}
}

// fail notes a failure and plans the next start; the caller holds s.mu.
func (s *server) fail(err error) {
	now := time.Now()
	s.lastErr = err
	s.failures = slices.DeleteFunc(s.failures, func(at time.Time) bool { return now.Sub(at) > failWindow })
	s.failures = append(s.failures, now)
	if len(s.failures) >= maxFailures {
		s.failed = true
	}
	pause := min(maxBackoff, backoff<<(len(s.failures)-1))
	s.retryAt = now.Add(pause/2 + rand.N(pause)) //nolint:gosec // jitter
	s.e.log.Warn("an MCP server failed", "server", s.ID, "error", err, "failures", len(s.failures), "gave_up", s.failed)
	s.e.wake()
}

// open connects the server and reads what it has.
func (s *server) open(ctx context.Context) (*session, error) {
	timeout := startTimeout
	if s.Installs() {
		timeout = installTimeout
	}
	version := s.e.book.get(s.ID).Version
	if version != "" && version < newest {
		version = lastStateful
	} else if version != "" {
		version = ""
	}
	x, err := s.dial(ctx, timeout, version)
	if version == "" && errors.Is(err, errUnanswered) { // an older server
		x, err = s.dial(ctx, timeout, lastStateful)
	}
	if err != nil {
		return nil, err
	}
	listing, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.list(listing, x); err != nil {
		x.end("it did not list its tools")
		return nil, s.because(x, fmt.Errorf("list its tools: %w", err))
	}
	return x, nil
}

// Versions of the protocol: from newest on there is no session.
const (
	newest       = "2026-07-28"
	lastStateful = "2025-11-25"
)

var errUnanswered = errors.New("it did not answer")

// dial starts the server and opens a session of a version of the protocol; empty: the
// newest that both know.
func (s *server) dial(ctx context.Context, timeout time.Duration, version string) (*session, error) {
	l, err := s.e.connect(ctx, s)
	if err != nil {
		return nil, err
	}
	if version == "" && !s.Installs() {
		timeout = probeTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	go func() {
		select {
		case <-l.Done():
			cancel()
		case <-bounded.Done():
		}
	}()
	x := &session{link: l}
	var options *mcp.ClientSessionOptions
	if version != "" {
		options = &mcp.ClientSessionOptions{ProtocolVersion: version}
	}
	x.ClientSession, err = s.client(x).Connect(bounded, l, options)
	switch {
	case err == nil:
		return x, nil
	case errors.Is(bounded.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("%w within %s", errUnanswered, timeout)
		l.End(stopGrace, err.Error())
		return nil, err
	}
	if missing := s.missingLogin(); missing != nil {
		err = missing // what follows from it in an older version explains nothing
	} else {
		err = s.because(x, err)
	}
	l.End(stopGrace, "it did not connect")
	return nil, err
}

// endGrace is how long the end of a process that explains the end of its connection may
// take.
const endGrace = 3 * time.Second

// because is why the process ended, which explains an error of the connection.
func (s *server) because(x *session, err error) error {
	select {
	case <-x.link.Done():
		if reason := x.link.Reason(); reason != "" {
			return errors.New(reason)
		}
	case <-time.After(endGrace):
	}
	return err
}

// watch waits for the end of a session.
func (s *server) watch(x *session) {
	closed := make(chan struct{})
	go func() {
		_ = x.Wait() // may outlive the process
		close(closed)
	}()
	select {
	case <-x.link.Done():
	case <-closed:
	}
	s.mu.Lock()
	current := s.session == x
	if current {
		s.session = nil
	}
	s.mu.Unlock()
	if current {
		err := s.because(x, errors.New("it closed the connection"))
		s.mu.Lock()
		s.fail(err)
		s.mu.Unlock()
	}
	x.end("")
}

// end ends a session and its process. It can be called more than once.
func (x *session) end(reason string) {
	if x.ClientSession != nil {
		go func() { _ = x.Close() }() // may hang on a dead server
	}
	x.link.End(stopGrace, reason)
}

// close ends the server for good.
func (s *server) close(ctx context.Context, reason string) {
	s.mu.Lock()
	s.closed = true
	x, starting := s.session, s.starting
	s.session = nil
	s.mu.Unlock()
	if x != nil {
		x.end(reason)
	}
	if starting != nil {
		select {
		case <-starting:
		case <-ctx.Done():
		}
	}
}

// restart ends the session and forgets earlier failures.
func (s *server) restart() {
	s.mu.Lock()
	x := s.session
	s.session, s.failures, s.failed, s.retryAt, s.lastErr, s.unstarted = nil, nil, false, time.Time{}, nil, false
	s.mu.Unlock()
	if x != nil {
		x.end("it was restarted")
	}
}

// status is the state of the server, with the reason of its last failure.
func (s *server) status() (state, why string, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastErr != nil {
		why = s.lastErr.Error()
	}
	switch {
	case s.session != nil:
		return mcpfile.StateRunning, "", false
	case s.failed:
		return mcpfile.StateFailed, why, true
	case s.starting != nil:
		return mcpfile.StateStarting, why, s.unstarted
	case time.Until(s.retryAt) > 0:
		return mcpfile.StateBackingOff, why, s.unstarted
	}
	return mcpfile.StateIdle, why, s.unstarted
}
