package telegramchannel

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

var (
	noToken = words.Sprintf("no bot token: create a bot with @BotFather in Telegram (/newbot) and set %s "+
		"in the environment or in secrets.env", TokenName)
	badToken = words.Sprintf("Telegram does not accept the bot token: get it from @BotFather (/mybots, API Token) and "+
		"correct %s in the environment or in secrets.env", TokenName)
	otherPoller = words.Sprintf("another program reads this bot's messages: stop it, or create another bot for it with " +
		"@BotFather")
	otherWebhook = words.Sprintf("another program sets a webhook for this bot and gets its messages: stop it, or create " +
		"another bot for it with @BotFather")
)

// maxConflicts is how many polls in a row may end in a conflict before it is reported:
// after a restart Telegram keeps the previous poll open for a while.
const maxConflicts = 4

// run connects and polls until ctx ends.
func (a *activation) run(ctx context.Context) {
	me, ok := a.connect(ctx)
	if !ok {
		return
	}
	p := &poller{activation: a, me: me, key: fmt.Sprintf("cursor/%d", me.ID)}
	p.presses = &presses{activation: a, bot: me.ID}
	defer p.presses.running.Wait()
	p.backlog = newBacklog(ctx, a, p.presses)
	defer p.backlog.running.Wait()
	if !p.load(ctx, p.read) {
		return
	}
	p.backlog.pause(len(p.cursor.Held) > 0)
	if !p.load(ctx, p.backlog.load) || !p.load(ctx, p.presses.load) {
		return
	}
	a.kernel.SetReadiness(sdk.Ready, "@"+me.Username)
	menu := make(chan struct{})
	go func() {
		defer close(menu)
		a.updateMenu(ctx)
	}()
	p.poll(ctx)
	<-menu
}

// connect gets the bot's user, with retries.
func (a *activation) connect(ctx context.Context) (*models.User, bool) {
	for n := 1; ; n++ {
		me, err := a.api.getMe(ctx)
		if err == nil {
			return me, true
		}
		if ctx.Err() != nil {
			return nil, false
		}
		if !pause.For(ctx, a.report(err, n)) {
			return nil, false
		}
	}
}

// report sets the readiness after the nth failure in a row, and returns how long to
// wait.
func (a *activation) report(err error, n int) time.Duration {
	kind, after := classify(err)
	switch kind {
	case badTokenKind, refused:
		a.kernel.SetReadiness(sdk.Degraded, badToken)
		return tokenRetry
	case limited:
		a.kernel.SetReadiness(sdk.Offline, words.Sprintf("Telegram limits this bot: waiting %v", words.Span(after)))
		return after
	default:
	}
	if n == 1 {
		a.log.Info("Telegram does not answer", "error", a.api.redact(err))
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

// poller reads the updates of one bot.
type poller struct {
	*activation
	me  *models.User
	key string

	cursor  cursor
	version int64 // of the stored cursor
	backlog *backlog
	presses *presses
}

// poll reads updates until ctx ends. After a failure it polls without waiting, so that
// the channel is ready as soon as Telegram answers.
func (p *poller) poll(ctx context.Context) {
	failures, conflicts := 0, 0
	for ctx.Err() == nil {
		wait := p.set.pollTimeout
		if failures > 0 || len(p.cursor.Held) > 0 {
			wait = 0
		}
		offset := p.cursor.offset(time.Now())
		updates, err := p.api.getUpdates(ctx, offset, wait)
		if err == nil {
			if failures > 0 || conflicts > 0 {
				p.kernel.SetReadiness(sdk.Ready, "@"+p.me.Username)
			}
			failures, conflicts = 0, 0
			if len(updates) > 0 {
				p.accept(ctx, updates, offset)
			} else {
				p.release(ctx)
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		p.release(ctx)
		if kind, _ := classify(err); kind == conflicting {
			conflicts++
			failures = 0
			if !pause.For(ctx, p.handleConflict(ctx, err, conflicts)) {
				return
			}
			continue
		}
		// A single failure is not reported: proxies cut long polls.
		if failures++; failures == 1 {
			continue
		}
		if !pause.For(ctx, p.report(err, failures-1)) {
			return
		}
	}
}

// handleConflict handles another reader of the updates after n conflicts in a row.
func (p *poller) handleConflict(ctx context.Context, err error, n int) time.Duration {
	hook := strings.Contains(err.Error(), "webhook")
	if n == 1 && hook {
		p.log.Warn("removing the webhook of this bot, because Switchboard polls for messages")
		ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
		defer cancel()
		if _, err := p.api.bot.DeleteWebhook(ctx, &bot.DeleteWebhookParams{}); err == nil {
			return 0
		}
	}
	if n >= maxConflicts {
		text := otherPoller
		if hook {
			text = otherWebhook
		}
		p.kernel.SetReadiness(sdk.Degraded, text)
		return p.set.conflictPause
	}
	return pause.Backoff(n)
}
