package discordchannel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/switchboard-run/switchboard/sdk/pause"
)

// Operations of the gateway.
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opHeartbeatAck   = 11
)

// Codes with which the gateway closes a connection.
const (
	closeNotAuthenticated   = 4003
	closeAuthFailed         = 4004
	closeInvalidSequence    = 4007
	closeSessionTimedOut    = 4009
	closeInvalidShard       = 4010
	closeShardingRequired   = 4011
	closeInvalidVersion     = 4012
	closeInvalidIntents     = 4013
	closeDisallowedIntents  = 4014
	helloTimeout            = 20 * time.Second
	writeTimeout            = 10 * time.Second
	maxFrame                = 64 << 20 // a large server is described in one
	queuedEvents            = 256
	maxBatch                = 100
	intentGuilds            = 1 << 0
	intentMessages          = 1 << 9
	intentReactions         = 1 << 10
	intentDirectMessages    = 1 << 12
	intentDirectReactions   = 1 << 13
	intentContent           = 1 << 15
	intentsWithoutPrivilege = intentGuilds | intentMessages | intentReactions | intentDirectMessages |
		intentDirectReactions
)

// frame is one payload of the gateway.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
}

// event is a dispatched one.
type event struct {
	seq  int64
	kind string
	data json.RawMessage
}

// errZombie is the cause of a connection that answers no heartbeat.
var errZombie = errors.New("the gateway does not answer heartbeats")

// invalidSession is the error of a session that Discord has ended.
type invalidSession struct{ resumable bool }

func (e *invalidSession) Error() string { return "the gateway ended the session" }

// errReconnect says that Discord asked for a new connection.
var errReconnect = errors.New("the gateway asked for a new connection")

// connection is one connection to the gateway. Its events come in order; after the last
// one, err says how it ended.
type connection struct {
	socket *websocket.Conn
	events chan event
	err    error // set before events is closed

	handled atomic.Int64  // the sequence number up to which events are stored
	beats   chan struct{} // tells of a heartbeat; holds one
	acked   atomic.Bool
	stop    context.CancelFunc
	running sync.WaitGroup
}

// dial connects to the gateway, and resumes a session or, with position.Session empty,
// begins one.
func (a *activation) dial(ctx context.Context, base string, p position, intents int) (*connection, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("gateway address: %w", err)
	}
	u.RawQuery = "v=10&encoding=json"
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	socket, resp, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: a.api.transport}, HTTPHeader: http.Header{"User-Agent": {userAgent}},
	})
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	socket.SetReadLimit(maxFrame)
	c := &connection{socket: socket, events: make(chan event, queuedEvents), beats: make(chan struct{}, 1)}
	c.handled.Store(p.Seq)
	c.acked.Store(true)
	interval, err := c.hello(ctx)
	if err == nil {
		err = c.begin(ctx, a.api.token, p, intents)
	}
	if err != nil {
		_ = socket.CloseNow()
		return nil, err
	}
	c.run(interval)
	return c, nil
}

// hello reads the first frame.
func (c *connection) hello(ctx context.Context) (time.Duration, error) {
	var f frame
	if err := wsjson.Read(ctx, c.socket, &f); err != nil {
		return 0, err
	}
	var hello struct {
		Interval int64 `json:"heartbeat_interval"` // milliseconds
	}
	if err := json.Unmarshal(f.Data, &hello); err != nil || f.Op != opHello || hello.Interval <= 0 {
		return 0, fmt.Errorf("the gateway began with operation %d and not with a heartbeat interval", f.Op)
	}
	return time.Duration(hello.Interval) * time.Millisecond, nil
}

// begin resumes or begins the session.
func (c *connection) begin(ctx context.Context, token string, p position, intents int) error {
	if p.Session != "" {
		return c.write(ctx, opResume, map[string]any{"token": token, "session_id": p.Session, "seq": p.Seq})
	}
	return c.write(ctx, opIdentify, map[string]any{
		"token": token, "intents": intents,
		"properties": map[string]string{"os": runtime.GOOS, "browser": "switchboard", "device": "switchboard"},
	})
}

func (c *connection) write(ctx context.Context, op int, data any) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return wsjson.Write(ctx, c.socket, map[string]any{"op": op, "d": data})
}

// run reads and beats until the connection ends or close is called.
func (c *connection) run(interval time.Duration) {
	ctx, cancel := context.WithCancelCause(context.Background())
	c.stop = func() { cancel(context.Canceled) }
	c.running.Go(func() { c.beat(ctx, cancel, interval) })
	c.running.Go(func() {
		defer close(c.events)
		c.err = c.read(ctx)
		if cause := context.Cause(ctx); cause != nil {
			c.err = cause
		}
		cancel(c.err)
	})
}

// close ends the connection. The session stays resumable.
func (c *connection) close() {
	c.stop()
	_ = c.socket.CloseNow() // without a code of its own, which would end the session
	go func() {             // a reader that waits to queue an event
		for range c.events {
		}
	}()
	c.running.Wait()
}

// beat sends a heartbeat in each interval, the first one after a part of it.
func (c *connection) beat(ctx context.Context, fail context.CancelCauseFunc, interval time.Duration) {
	wait := time.Duration(rand.Int64N(int64(interval))) //nolint:gosec // spreads load
	for pause.For(ctx, wait) {
		if !c.acked.Swap(false) {
			fail(errZombie)
			return
		}
		if err := c.heartbeat(ctx); err != nil {
			fail(err)
			return
		}
		select {
		case c.beats <- struct{}{}:
		default:
		}
		wait = interval
	}
}

func (c *connection) heartbeat(ctx context.Context) error {
	var seq any // null before the first event
	if n := c.handled.Load(); n > 0 {
		seq = n
	}
	return c.write(ctx, opHeartbeat, seq)
}

// read reads frames until the connection ends.
func (c *connection) read(ctx context.Context) error {
	for {
		_, data, err := c.socket.Read(ctx)
		if err != nil {
			return err
		}
		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			return fmt.Errorf("decode a frame of the gateway: %w", err)
		}
		switch f.Op {
		case opDispatch:
			select {
			case c.events <- event{f.Seq, f.Type, f.Data}:
			case <-ctx.Done():
				return ctx.Err()
			}
		case opHeartbeat:
			if err := c.heartbeat(ctx); err != nil {
				return err
			}
		case opHeartbeatAck:
			c.acked.Store(true)
		case opReconnect:
			return errReconnect
		case opInvalidSession:
			resumable := false
			_ = json.Unmarshal(f.Data, &resumable)
			return &invalidSession{resumable}
		}
	}
}

// batch waits for events and returns all that are waiting; none: the connection has
// ended, or a heartbeat was sent.
func (c *connection) batch() (batch []event, open bool) {
	select {
	case e, open := <-c.events:
		if !open {
			return nil, false
		}
		batch = append(batch, e)
	case <-c.beats:
		return nil, true
	}
	for len(batch) < maxBatch {
		select {
		case e, open := <-c.events:
			if !open {
				return batch, true // the next call returns that
			}
			batch = append(batch, e)
		default:
			return batch, true
		}
	}
	return batch, true
}
