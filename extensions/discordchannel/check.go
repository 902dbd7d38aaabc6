package discordchannel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Flags of an application that may read the contents of messages.
const flagsContent = 1<<18 | 1<<19

// permissions are those that the bot needs in a server: View Channels, Send Messages,
// Send Messages in Threads, Attach Files, Read Message History, Embed Links, Add
// Reactions.
const permissions = 1<<10 | 1<<11 | 1<<38 | 1<<15 | 1<<16 | 1<<14 | 1<<6

// Bot is what a token belongs to.
type Bot struct {
	Name   string // its user name
	Invite string // the address that adds it to a server
	// Content: it may read the contents of messages in servers that don't mention it.
	Content bool
}

// CheckToken asks the API at base, or Discord's own if it is empty, whose token this is.
// The error is for people and doesn't have the token.
func CheckToken(ctx context.Context, base, token string) (Bot, error) {
	if base == "" {
		base = DefaultURL
	}
	a := newAPI(base, token, false)
	defer a.close()
	me, err := a.me(ctx)
	var app struct {
		ID    string `json:"id"`
		Flags int    `json:"flags"`
	}
	if err == nil {
		err = a.do(ctx, request{method: http.MethodGet, path: "/applications/@me"}, &app)
	}
	if err == nil {
		return Bot{Name: me.Username, Invite: invite(app.ID), Content: app.Flags&flagsContent != 0}, nil
	}
	switch kind, after := classify(err); kind {
	case badTokenKind, refused:
		return Bot{}, fmt.Errorf("the token is unknown to Discord: copy it from %s (Bot page, Reset Token)", portal)
	case limited:
		return Bot{}, fmt.Errorf("the bot is limited by Discord: try again in %s", after)
	default:
		return Bot{}, errors.New("no connection to " + host(base) + ": " + a.redact(err))
	}
}

// invite returns the address that adds the bot of an application to a server.
func invite(application string) string {
	q := url.Values{"client_id": {application}, "scope": {"bot applications.commands"},
		"permissions": {fmt.Sprint(permissions)}}
	return "https://discord.com/oauth2/authorize?" + q.Encode()
}
