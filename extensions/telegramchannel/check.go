package telegramchannel

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
)

// CheckToken asks the Bot API server at base, or Telegram's own if it is empty, whose token
// this is, and returns the bot's user name. The error is for people and doesn't have the
// token.
func CheckToken(ctx context.Context, base, token string) (string, error) {
	if base == "" {
		base = DefaultURL
	}
	a, err := newAPI(base, token, hclog.NewNullLogger())
	if err != nil {
		return "", err
	}
	defer a.close()
	me, err := a.getMe(ctx)
	if err == nil {
		return me.Username, nil
	}
	switch kind, after := classify(err); kind {
	case badTokenKind, refused:
		return "", errors.New("the token is unknown to Telegram: copy it from @BotFather (/mybots, API Token)")
	case limited:
		return "", fmt.Errorf("the bot is limited by Telegram: try again in %s", after)
	default:
		return "", fmt.Errorf("no connection to %s: %s", host(base), a.redact(err))
	}
}
