package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/switchboard-run/switchboard/extensions/slackchannel"
	"github.com/switchboard-run/switchboard/home/config"
)

// setSlack connects the Slack app whose tokens flags name.
func (s *setup) setSlack(ctx context.Context) error {
	bot, hasBot, err := s.given(s.slackBotEnv, s.slackBotFile)
	app, hasApp := "", false
	if err == nil {
		app, hasApp, err = s.given(s.slackAppEnv, s.slackAppFile)
	}
	switch {
	case err == nil && !hasBot && !hasApp:
		return nil
	case err == nil && hasBot != hasApp:
		err = errors.New("a Slack app has two tokens: give the bot token (xoxb-...) and the app-level token (xapp-...)")
	case err == nil:
		err = s.connectSlack(ctx, bot, app)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.fail(err)
	s.failed = true // a flag asked for it
	return nil
}

func (s *setup) connectSlack(ctx context.Context, botToken, appToken string) error {
	if !s.noCheck {
		base := os.Getenv(slackchannel.URLVariable)
		if address, ok := s.settings.Extensions[slackchannel.ID].Config["api_url"].(string); ok && base == "" {
			base = address
		}
		bot, workspace, err := slackchannel.CheckTokens(ctx, base, botToken, appToken)
		if err != nil {
			return err
		}
		s.done("The Slack app is @%s in %s.", bot, workspace)
	}
	var secrets []secret
	for _, x := range []secret{
		{slackchannel.BotTokenName, botToken, "The bot token of the Slack app"},
		{slackchannel.AppTokenName, appToken, "The app-level token of the Slack app"},
	} {
		if current, _ := s.secrets.Lookup(x.name); current != x.value || !slices.Contains(s.secrets.Names(), x.name) {
			secrets = append(secrets, x)
		}
	}
	var settings []config.Setting
	if !s.settings.EnabledExtension(slackchannel.ID, true) {
		settings = []config.Setting{{Path: []string{"extensions", slackchannel.ID, "enabled"}, Value: true}}
	}
	return s.save("Slack", secrets, settings...)
}
