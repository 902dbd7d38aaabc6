package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/discordchannel"
	"github.com/switchboard-run/switchboard/extensions/slackchannel"
)

// setOthers is the step of the channels besides Telegram. They are asked for where that was
// skipped: most people have one.
func (s *setup) setOthers(ctx context.Context) error {
	for s.offerOthers {
		chosen, err := s.ask.text(ctx, "\nAnother channel, discord or slack (Enter skips):", "")
		if err != nil {
			return err
		}
		switch strings.ToLower(chosen) {
		case "":
			return nil
		case "discord":
			err = s.repeat(ctx, s.askDiscord)
		case "slack":
			err = s.repeat(ctx, s.askSlack)
		default:
			s.fail(fmt.Errorf("%q isn't one of them: type discord or slack", chosen))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// repeat asks until the answers work or the step is skipped.
func (s *setup) repeat(ctx context.Context, step func(context.Context) error) error {
	for {
		err := step(ctx)
		if err == nil || errors.Is(err, errLeft) || ctx.Err() != nil {
			return err
		}
		s.fail(err)
	}
}

func (s *setup) askDiscord(ctx context.Context) error {
	s.p.line("Discord: make an application at https://discord.com/developers/applications, turn on Message Content " +
		"Intent on its Bot page, and copy the token there (Reset Token).")
	token, err := s.typed(ctx, "Token", discordchannel.TokenName)
	if err != nil || token == "" {
		return err
	}
	return s.connectDiscord(ctx, token)
}

func (s *setup) askSlack(ctx context.Context) error {
	s.p.line("Slack: make an app at https://api.slack.com/apps from the manifest in docs/slack.md, install it, and copy " +
		"its bot token (OAuth & Permissions) and its app-level token (Basic Information).")
	bot, err := s.typed(ctx, "Bot token, xoxb-...", slackchannel.BotTokenName)
	if err != nil || bot == "" {
		return err
	}
	app, err := s.typed(ctx, "App-level token, xapp-...", slackchannel.AppTokenName)
	if err == nil && app == "" {
		app, _ = s.secrets.Lookup(slackchannel.AppTokenName)
	}
	if err != nil || app == "" {
		return err
	}
	return s.connectSlack(ctx, bot, app)
}
