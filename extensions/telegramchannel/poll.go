package telegramchannel

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/sdk"
)

const (
	noToken = "no bot token: make a bot with @BotFather in Telegram (/newbot) and set " + TokenName +
		" in the environment or in secrets.env"
	badToken = "the bot token is not one that Telegram knows: ask @BotFather for it (/mybots, API Token) and correct " +
		TokenName + " in the environment or in secrets.env"
	rivalPoll = "another program reads this bot's messages: stop it, or make a bot of its own for it " +
		"with @BotFather; messages arrive here as soon as it is gone"
	rivalHook = "another program sets a webhook for this bot, which takes its messages: stop it, or make a bot " +
		"of its own for it with @BotFather"
)

// patience is how many polls in a row may end in a conflict before it is
// reported: after a restart Telegram still holds the former poll for a while.
const patience = 4

// run connects and polls until ctx ends.
func (a *activation) run(ctx context.Context) {
	me, ok := a.connect(ctx)
	if !ok {
		return
	}
	p := &poller{activation: a, me: me, key: fmt.Sprintf("cursor/%d", me.ID)}
	if !p.load(ctx) {
		return
	}
	a.kernel.SetReadiness(sdk.Ready, "@"+me.Username)
	menu := make(chan struct{})
	go func() {
		defer close(menu)
		a.keepMenu(ctx)
	}()
	p.poll(ctx)
	<-menu
}

// connect asks who the bot is until Telegram says it.
func (a *activation) connect(ctx context.Context) (*models.User, bool) {
	for n := 1; ; n++ {
		me, err := a.api.getMe(ctx)
		if err == nil {
			return me, true
		}
		if ctx.Err() != nil {
			return nil, false
		}
		if !pause(ctx, a.report(err, n)) {
			return nil, false
		}
	}
}

// report sets the readiness after the nth failure in a row to talk to Telegram,
// and says how long to wait.
func (a *activation) report(err error, n int) time.Duration {
	kind, after := classify(err)
	switch kind {
	case tokenWrong, refused:
		a.kernel.SetReadiness(sdk.Degraded, badToken)
		return tokenPause
	case limited:
		a.kernel.SetReadiness(sdk.Offline, fmt.Sprintf("Telegram asks to wait %s", after))
		return after
	default:
	}
	if n == 1 {
		a.log.Info("Telegram does not answer", "error", a.api.redact(err))
	}
	a.kernel.SetReadiness(sdk.Offline, fmt.Sprintf("no connection to %s: %s", host(a.set.url), a.api.redact(err)))
	return backoff(n)
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
}

// poll reads updates until ctx ends. After a failure it asks without waiting,
// so that the channel is ready again as soon as Telegram answers.
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
			if !pause(ctx, p.contend(ctx, err, conflicts)) {
				return
			}
			continue
		}
		// One failure is no news: long polls are cut by what is in between.
		if failures++; failures == 1 {
			continue
		}
		if !pause(ctx, p.report(err, failures-1)) {
			return
		}
	}
}

// contend deals with another reader of the updates after n polls that it ended.
func (p *poller) contend(ctx context.Context, err error, n int) time.Duration {
	hook := strings.Contains(err.Error(), "webhook")
	if n == 1 && hook {
		p.log.Warn("a webhook is set for this bot; removing it, because the messages are read from here")
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if _, err := p.api.bot.DeleteWebhook(ctx, &bot.DeleteWebhookParams{}); err == nil {
			return 0
		}
	}
	if n >= patience {
		text := rivalPoll
		if hook {
			text = rivalHook
		}
		p.kernel.SetReadiness(sdk.Degraded, text)
		return p.set.rivalPause
	}
	return backoff(n)
}
