package discordchannel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

const portal = "https://discord.com/developers/applications"

var (
	noToken = words.Sprintf("no bot token: create a bot at %s (Bot page, Reset Token) and set %s "+
		"in the environment or in secrets.env", portal, TokenName)
	badToken = words.Sprintf("Discord does not accept the bot token: reset it at %s (Bot page) and "+
		"correct %s in the environment or in secrets.env", portal, TokenName)
	tooManyServers = words.Sprintf("Discord requires sharding, because the bot is in more than 2,500 servers: " +
		"Switchboard does not support it, so create another bot")
	badIntents = words.Sprintf("Discord refuses the bot's intents: look at %s (Bot page, Privileged Gateway Intents)",
		portal)
)

// withoutContent explains what is missing without the intent.
func withoutContent(name string) string {
	return words.Sprintf("@%s. In servers, replies to it without a mention have no text: turn on "+
		"Message Content Intent at %s (Bot page), then run `switchboard extensions restart %s`", name, portal, ID)
}

// reconnectPause is the least time between connections.
const reconnectPause = 100 * time.Millisecond

// session receives the events of one bot.
type session struct {
	*activation
	bot *user
	key string

	position  position
	stored    position // position may be ahead of it by events that publish nothing
	version   int64    // of the stored position
	noContent bool     // Discord refuses the intent for the contents of messages
	backlog   *backlog
	names     map[string]string // of people, by id
	languages map[string]string // likewise
	order     int64             // of the last message
	ctx       context.Context   // of the activation
	presses   *presses
}

// run connects and receives until ctx ends.
func (a *activation) run(ctx context.Context) {
	bot, ok := a.identity(ctx)
	if !ok {
		return
	}
	s := &session{activation: a, bot: bot, key: "position/" + bot.ID, ctx: ctx,
		names: map[string]string{}, languages: map[string]string{}}
	s.presses = &presses{activation: a}
	defer s.presses.running.Wait()
	s.backlog = newBacklog(ctx, a, bot.ID, s.presses)
	defer s.backlog.running.Wait()
	for _, read := range []func(context.Context) error{
		s.read, s.places.load, s.backlog.load, s.presses.load, s.loadLanguages,
	} {
		if !s.load(ctx, read) {
			return
		}
	}
	menu := newMenu(a)
	defer menu.stop()
	failures := 0
	for ctx.Err() == nil {
		began := time.Now()
		err := s.receive(ctx, failures, func() {
			failures = 0
			menu.start(ctx, s.position.Application)
		})
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			failures = 0
		}
		failures++
		if !pause.For(ctx, s.ended(err, failures)) {
			return
		}
	}
}

// identity gets the bot's user, with retries.
func (a *activation) identity(ctx context.Context) (*user, bool) {
	for n := 1; ; n++ {
		me, err := a.api.me(ctx)
		if err == nil {
			return me, true
		}
		if ctx.Err() != nil || !pause.For(ctx, a.report(err, n)) {
			return nil, false
		}
	}
}

// report sets the readiness after the nth failure in a row, and returns how long to wait.
func (a *activation) report(err error, n int) time.Duration {
	kind, after := classify(err)
	switch kind {
	case badTokenKind, refused:
		a.kernel.SetReadiness(sdk.Degraded, badToken)
		return a.set.tokenRetry
	case limited:
		a.kernel.SetReadiness(sdk.Offline, words.Sprintf("Discord limits this bot: waiting %v", words.Span(after)))
		return after
	default:
	}
	if n == 1 {
		a.log.Info("Discord does not answer", "error", a.api.redact(err))
	}
	a.kernel.SetReadiness(sdk.Offline, words.Sprintf("no connection to %s: %s", host(a.set.url), a.api.redact(err)))
	return pause.Backoff(n)
}

func host(base string) string {
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		return u.Host
	}
	return base
}

// ended handles the end of the nth connection in a row that received nothing, and returns
// how long to wait before the next one.
func (s *session) ended(err error, n int) time.Duration {
	var invalid *invalidSession
	switch {
	case errors.Is(err, errReconnect):
		return reconnectPause
	case errors.As(err, &invalid):
		if !invalid.resumable {
			s.forget()
		}
		if s.set.identifyPause == 0 {
			return reconnectPause
		}
		return time.Second + time.Duration(rand.Int64N(int64(s.set.identifyPause-time.Second))) //nolint:gosec // as asked for
	}
	switch websocket.CloseStatus(err) {
	case closeAuthFailed:
		s.kernel.SetReadiness(sdk.Degraded, badToken)
		return s.set.tokenRetry
	case closeNotAuthenticated, closeInvalidSequence, closeSessionTimedOut:
		s.forget()
		return s.set.identifyPause
	case closeDisallowedIntents:
		if s.noContent {
			s.kernel.SetReadiness(sdk.Degraded, badIntents)
			return s.set.tokenRetry
		}
		s.noContent = true
		s.forget()
		return s.set.identifyPause
	case closeInvalidIntents, closeInvalidVersion:
		s.kernel.SetReadiness(sdk.Degraded, badIntents)
		return s.set.tokenRetry
	case closeInvalidShard, closeShardingRequired:
		s.kernel.SetReadiness(sdk.Degraded, tooManyServers)
		return s.set.tokenRetry
	}
	if n == 1 { // a single failure is not reported: connections end now and then
		return reconnectPause
	}
	var answer *refusal
	var limit *limitedError
	if errors.As(err, &answer) || errors.As(err, &limit) {
		return s.report(err, n-1)
	}
	return s.report(&httpcall.Error{Err: err}, n-1)
}

// forget ends the session. The position stays: what is missed is read from the histories.
func (s *session) forget() {
	s.position.Session, s.position.ResumeURL, s.position.Seq = "", "", 0
}

func (s *session) ready() {
	text := "@" + s.bot.Username
	if s.noContent {
		text = withoutContent(s.bot.Username)
	}
	s.kernel.SetReadiness(sdk.Ready, text)
}

// receive receives the events of one connection, after some that failed. began is called
// when the session has begun or was resumed.
func (s *session) receive(ctx context.Context, failures int, began func()) error {
	base := s.position.ResumeURL
	if s.position.Session == "" || base == "" || failures >= resumeTries {
		var err error
		if base, err = s.gatewayURL(ctx); err != nil {
			return err
		}
	}
	intents := intentsWithoutPrivilege
	if !s.noContent {
		intents |= intentContent
	}
	c, err := s.dial(ctx, base, s.position, intents)
	if err != nil {
		return err
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.stop)()
	for {
		batch, open := c.batch()
		if !open {
			return c.err
		}
		if err := s.accept(ctx, batch, began); err != nil {
			return err
		}
		c.handled.Store(s.position.Seq)
		if len(batch) == 0 { // a heartbeat
			s.save(ctx)
		}
	}
}

// resumeTries is how often the address of a session is tried before the general one.
const resumeTries = 5

// gatewayURL returns the address for new sessions. If no more may begin today, the error
// says how long to wait: a bot that goes on loses its token.
func (s *session) gatewayURL(ctx context.Context) (string, error) {
	var gateway struct {
		URL   string `json:"url"`
		Limit struct {
			Total      int   `json:"total"`
			Remaining  int   `json:"remaining"`
			ResetAfter int64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	if err := s.api.do(ctx, request{method: http.MethodGet, path: "/gateway/bot"}, &gateway); err != nil {
		return "", err
	}
	if l := gateway.Limit; s.position.Session == "" && l.Total > 0 && l.Remaining == 0 {
		return "", &limitedError{after: time.Duration(max(l.ResetAfter, 1000)) * time.Millisecond, all: true}
	}
	return gateway.URL, nil
}

// save stores the position if only events that publish nothing have come since.
func (s *session) save(ctx context.Context) {
	if s.position == s.stored || s.position.Session == "" {
		return
	}
	next := s.position
	next.At = time.Now().Unix()
	if _, err := s.commit(ctx, next, func() sdk.Effects { return nil }); err != nil && ctx.Err() == nil {
		s.log.Warn("store the position", "error", err)
	}
}

// accept stores the messages of a batch with the position after it. After an error the
// session is resumed from the stored position.
func (s *session) accept(ctx context.Context, batch []event, began func()) error {
	var reports []*pendingMessage
	next := s.position
	flush := func() error {
		if len(reports) > 0 {
			next.At = time.Now().Unix()
		}
		err := s.store(ctx, reports, next)
		reports = nil
		return err
	}
	for _, e := range batch {
		switch e.kind {
		case "READY":
			if err := flush(); err != nil {
				return err
			}
			if err := s.begin(ctx, e); err != nil {
				return err
			}
			next = s.position
			s.ready()
			began()
			continue
		case "RESUMED":
			s.ready()
			began()
		default:
			one, err := s.parse(ctx, e)
			if err != nil {
				return err
			}
			if one != nil {
				s.order = max(s.order+1, time.Now().UnixNano())
				one.Order = s.order
				reports = append(reports, one)
			}
		}
		next.Seq = max(next.Seq, e.seq)
	}
	return flush()
}

// begin takes a new session, after the messages that the one before it missed.
func (s *session) begin(ctx context.Context, e event) error {
	var ready struct {
		Session     string `json:"session_id"`
		ResumeURL   string `json:"resume_gateway_url"`
		Application struct {
			ID string `json:"id"`
		} `json:"application"`
	}
	if err := json.Unmarshal(e.data, &ready); err != nil || ready.Session == "" {
		return fmt.Errorf("the gateway's READY names no session: %w", err)
	}
	if s.position.At != 0 {
		if err := s.catchUp(ctx, time.Unix(s.position.At, 0)); err != nil {
			return err
		}
	}
	next := position{Session: ready.Session, ResumeURL: ready.ResumeURL, Seq: e.seq,
		Application: ready.Application.ID, At: time.Now().Unix()}
	_, err := s.commit(ctx, next, func() sdk.Effects { return nil })
	return err
}

// store publishes messages, with the position after them. What has files to download is
// stored for the backlog.
func (s *session) store(ctx context.Context, reports []*pendingMessage, next position) error {
	if len(reports) == 0 {
		s.position = next
		return nil
	}
	s.backlog.fetchNow(ctx, reports)
	err := s.publish(ctx, reports, next)
	if !sdk.IsPermanent(err) {
		return err
	}
	for _, one := range reports { // one message can never be stored: store the others one by one
		if err := s.publish(ctx, []*pendingMessage{one}, next); sdk.IsPermanent(err) {
			s.log.Error("store a message; skipping it", "message", one.Dedupe, "error", err)
		} else if err != nil {
			return err
		}
	}
	_, err = s.commit(ctx, next, func() sdk.Effects { return nil })
	return err
}

// publish commits messages with a position.
func (s *session) publish(ctx context.Context, reports []*pendingMessage, next position) error {
	for {
		var queued []*pendingMessage
		publishes := map[*pendingMessage]int{} // the effect of each
		results, err := s.commit(ctx, next, func() (effects sdk.Effects) {
			queued = nil
			clear(publishes)
			waits := map[string]bool{} // conversations
			seen := map[string]bool{}
			for _, m := range reports {
				if m.place != nil && !seen[m.place.ID] {
					seen[m.place.ID] = true
					effects = append(effects, s.places.put(m.place)...)
				}
				effects = append(effects, m.also...)
				c := m.conversation()
				if waits[c] = waits[c] || m.unfetched() || s.backlog.holds(c); waits[c] {
					queued = append(queued, m)
					effects = append(effects, s.backlog.put(m))
				} else {
					effects = append(effects, s.presses.publish(m)...)
					publishes[m] = len(effects) - 1
				}
			}
			return effects
		})
		if err == nil {
			s.backlog.add(queued)
			for _, m := range reports {
				s.places.keep(m.place)
				if m.stored == nil {
					continue
				}
				if i, ok := publishes[m]; ok {
					m.stored(stateOf(results[i]))
				} else {
					m.stored(waiting)
				}
			}
			return nil
		}
		if !errors.Is(err, contract.ErrNotFound) {
			return err
		}
		forgetFiles(reports) // it took so long that a file is no longer stored
	}
}
