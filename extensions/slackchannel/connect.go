package slackchannel

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

var (
	noTokens = words.Sprintf("no tokens: make an app for your workspace from the manifest in docs/slack.md and set %s "+
		"and %s in the environment or in secrets.env", BotTokenName, AppTokenName)
	badBotToken = words.Sprintf("Slack does not accept the bot token (xoxb-...): copy it from the app's page (OAuth & "+
		"Permissions) and correct %s in the environment or in secrets.env", BotTokenName)
	badAppToken = words.Sprintf("Slack does not accept the app-level token (xapp-...): make one with connections:write "+
		"on the app's page (Basic Information) and correct %s in the environment or in secrets.env", AppTokenName)
)

// run connects and receives until ctx ends.
func (a *activation) run(ctx context.Context) {
	me, ok := a.identify(ctx)
	if !ok {
		return
	}
	r := newReceiver(ctx, a, me)
	defer r.running.Wait()
	var connected time.Time // of an earlier process
	for _, read := range []func(context.Context) error{
		r.backlog.load, r.presses.load,
		func(ctx context.Context) (err error) { connected, err = r.lastConnected(ctx); return err },
	} {
		if !a.load(ctx, read) {
			return
		}
	}
	r.running.Go(func() { r.receive(ctx) })
	r.running.Go(func() { r.attend(ctx) })
	a.connect(ctx, r, connected)
}

// load reads what is stored, with retries; false: ctx has ended.
func (a *activation) load(ctx context.Context, read func(context.Context) error) bool {
	for n := 1; ; n++ {
		err := read(ctx)
		if err == nil {
			return true
		}
		a.kernel.SetReadiness(sdk.Offline, words.Sprintf("read what was stored: %s", err))
		if !pause.For(ctx, pause.Backoff(n)) {
			return false
		}
	}
}

// identify gets the bot's user, with retries.
func (a *activation) identify(ctx context.Context) (*slack.AuthTestResponse, bool) {
	for n := 1; ; n++ {
		me, err := a.whoAmI(ctx)
		if err == nil {
			return me, true
		}
		if ctx.Err() != nil || !pause.For(ctx, a.report(err, badBotToken, n)) {
			return nil, false
		}
	}
}

func (a *activation) whoAmI(ctx context.Context) (*slack.AuthTestResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	return a.api.AuthTestContext(ctx)
}

// report sets the readiness after the nth failure in a row, and returns how long to wait.
func (a *activation) report(err error, unknownToken string, n int) time.Duration {
	kind, after := classify(err)
	switch kind {
	case badToken:
		if answer, ok := errors.AsType[slack.SlackErrorResponse](err); ok && answer.Needed != "" {
			unknownToken = words.Sprintf("the Slack app lacks the scope %s: add it on the app's page (OAuth & Permissions) "+
				"and install the app again", answer.Needed)
		}
		a.kernel.SetReadiness(sdk.Degraded, unknownToken)
		return a.set.times.tokenRetry
	case limited:
		a.kernel.SetReadiness(sdk.Offline, words.Sprintf("Slack limits this app: waiting %v", words.Span(after)))
		return after
	case refused:
		a.kernel.SetReadiness(sdk.Degraded, words.Sprintf("Slack refuses the connection: %s", a.api.redact(err)))
		return a.set.times.tokenRetry
	default:
	}
	if n == 1 {
		a.log.Info("Slack does not answer", "error", a.api.redact(err))
	}
	a.kernel.SetReadiness(sdk.Offline, words.Sprintf("no connection to %s: %s", host(a.set.url), a.api.redact(err)))
	return pause.Backoff(n)
}

// connect keeps a connection open until ctx ends. When Slack announces the end of one,
// the next is opened at once, and the old one is read to its end. Until is when the last
// one of an earlier process ended; zero: there was none.
func (a *activation) connect(ctx context.Context, r *receiver, until time.Time) {
	var reading sync.WaitGroup
	defer reading.Wait()
	for failures := 0; ctx.Err() == nil; {
		s, err := a.openSocket(ctx)
		if err != nil {
			failures++
			if ctx.Err() != nil || !pause.For(ctx, a.report(err, badAppToken, failures)) {
				return
			}
			continue
		}
		failures = 0
		r.connected()
		r.absent(until)
		r.online.Store(true)
		opened := time.Now()
		reading.Go(func() { s.read(ctx, r.inbox) })
		for connected := true; connected; {
			select {
			case <-s.replace:
				connected = false
			case err := <-a.token:
				if a.awaitToken(ctx, err) {
					r.connected()
				}
			case <-ctx.Done():
				return
			}
		}
		until = time.Now()
		r.online.Store(false)
		if s.err != nil {
			a.log.Info("the connection to Slack ended; connecting again", "error", a.api.redact(s.err))
		}
		if time.Since(opened) < time.Second && !pause.For(ctx, time.Second) { // it would go round in circles
			return
		}
	}
}

// tokenRefused reports that a send met a token that Slack does not accept.
func (a *activation) tokenRefused(err error) {
	select {
	case a.token <- err:
	default:
	}
}

// awaitToken waits until Slack accepts the bot's token again; another one restarts the
// extension.
func (a *activation) awaitToken(ctx context.Context, err error) bool {
	for n := 1; err != nil; n++ {
		if !pause.For(ctx, a.report(err, badBotToken, n)) {
			return false
		}
		_, err = a.whoAmI(ctx)
	}
	return ctx.Err() == nil
}
