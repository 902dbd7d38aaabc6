package slackchannel

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// CheckTokens asks the Web API at base, or Slack's own if it is empty, whose tokens these
// are, and returns the name of the bot and of its workspace. The error is for people and
// doesn't have the tokens.
func CheckTokens(ctx context.Context, base, botToken, appToken string) (bot, workspace string, err error) {
	set, err := Config{}.settings(base)
	if err != nil {
		return "", "", err
	}
	a := newAPI(set.url, botToken, appToken)
	defer a.close()
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	me, err := a.AuthTestContext(ctx)
	if err != nil {
		return "", "", a.explain(err, "the bot token (xoxb-...) is unknown to Slack: copy it from the app's page, "+
			"OAuth & Permissions, at api.slack.com/apps")
	}
	if _, _, err := a.StartSocketModeContext(ctx); err != nil {
		return "", "", a.explain(err, "the app-level token (xapp-...) is unknown to Slack: make one with the scope "+
			"connections:write on the app's page, Basic Information, at api.slack.com/apps")
	}
	return me.User, me.Team, nil
}

// explain returns an error for people.
func (a *api) explain(err error, unknownToken string) error {
	switch kind, after := classify(err); kind {
	case badToken:
		if answer, ok := errors.AsType[slack.SlackErrorResponse](err); ok && answer.Needed != "" {
			return fmt.Errorf("%s (missing scope: %s)", unknownToken, answer.Needed)
		}
		return errors.New(unknownToken)
	case limited:
		return fmt.Errorf("the app is limited by Slack: try again in %s", after)
	default:
		return fmt.Errorf("no connection to %s: %s", host(a.url), a.redact(err))
	}
}

func host(base string) string {
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		return u.Host
	}
	return base
}
