package main

import (
	"context"
	"os"
	"slices"

	"github.com/switchboard-run/switchboard/extensions/discordchannel"
	"github.com/switchboard-run/switchboard/home/config"
)

// setDiscord connects the Discord bot whose token flags name.
func (s *setup) setDiscord(ctx context.Context) error {
	token, ok, err := s.given(s.discordEnv, s.discordFile)
	if err == nil && ok {
		err = s.connectDiscord(ctx, token)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.fail(err)
	s.failed = true // a flag asked for it
	return nil
}

func (s *setup) connectDiscord(ctx context.Context, token string) error {
	if !s.noCheck {
		base := os.Getenv(discordchannel.URLVariable)
		if address, ok := s.settings.Extensions[discordchannel.ID].Config["api_url"].(string); ok && base == "" {
			base = address
		}
		bot, err := discordchannel.CheckToken(ctx, base, token)
		if err != nil {
			return err
		}
		s.done("The Discord bot is @%s.", bot.Name)
		s.p.line("Add it to a server: %s", bot.Invite)
		if !bot.Content {
			s.p.line("Turn on Message Content Intent on its Bot page: https://discord.com/developers/applications")
		}
	}
	var secrets []secret
	name := discordchannel.TokenName
	if current, _ := s.secrets.Lookup(name); current != token || !slices.Contains(s.secrets.Names(), name) {
		secrets = []secret{{name, token, "The token of the Discord bot"}}
	}
	var settings []config.Setting
	if !s.settings.EnabledExtension(discordchannel.ID, false) {
		settings = []config.Setting{{Path: []string{"extensions", discordchannel.ID, "enabled"}, Value: true}}
	}
	return s.save("Discord", secrets, settings...)
}
