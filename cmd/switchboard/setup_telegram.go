package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel"
	"github.com/switchboard-run/switchboard/home/config"
)

// telegramID is the id of the Telegram channel, tokenName the name of its secret.
const (
	telegramID = "telegram_channel"
	tokenName  = "TELEGRAM_BOT_TOKEN" //nolint:gosec // the name only
)

// setTelegram is the step of the Telegram bot.
func (s *setup) setTelegram(ctx context.Context) error {
	for first := true; ; first = false {
		token, err := s.token(ctx, first)
		if err == nil && token == "" {
			s.offerOthers = s.ask != nil
			return nil
		}
		if err == nil {
			err = s.connectTelegram(ctx, token)
		}
		if err == nil || errors.Is(err, errLeft) || ctx.Err() != nil {
			return err
		}
		s.fail(err)
		if s.ask == nil {
			return nil
		}
		s.telegramEnv, s.telegramFile = "", "" // it did not work
	}
}

// token returns the token of the flags, or asks for one; empty: the step is skipped.
func (s *setup) token(ctx context.Context, explain bool) (string, error) {
	token, ok, err := s.given(s.telegramEnv, s.telegramFile)
	if ok || err != nil || s.ask == nil {
		return token, err
	}
	if explain {
		s.p.line("\nTelegram: talk to @BotFather there, send /newbot, and copy the token of the bot.")
	}
	return s.typed(ctx, "Token", tokenName)
}

// typed asks for a token that is stored under a name; empty: the step is skipped.
func (s *setup) typed(ctx context.Context, what, name string) (string, error) {
	enter := "Enter skips"
	if known, _ := s.secrets.Lookup(name); known != "" {
		enter = "Enter keeps the one that is set"
	}
	token, err := s.ask.secret(ctx, what+" (not shown; "+enter+"):")
	if err != nil || token == "" {
		return "", err
	}
	if token, err = oneWord(token); err != nil {
		return "", fmt.Errorf("the token can't be used: %w", err)
	}
	return token, nil
}

func (s *setup) connectTelegram(ctx context.Context, token string) error {
	if !s.noCheck {
		base := os.Getenv(telegramchannel.URLVariable)
		if address, ok := s.settings.Extensions[telegramID].Config["api_url"].(string); ok && base == "" {
			base = address
		}
		name, err := telegramchannel.CheckToken(ctx, base, token)
		if err != nil {
			return err
		}
		s.done("The bot is @%s.", name)
		s.bot = name
	}
	var secrets []secret
	if current, _ := s.secrets.Lookup(tokenName); current != token || !slices.Contains(s.secrets.Names(), tokenName) {
		secrets = []secret{{tokenName, token, "The token of the Telegram bot"}}
	}
	var settings []config.Setting
	if !s.settings.EnabledExtension(telegramID, false) {
		settings = []config.Setting{{Path: []string{"extensions", telegramID, "enabled"}, Value: true}}
	}
	return s.save("Telegram", secrets, settings...)
}

// setTimezone is the step of the time zone.
func (s *setup) setTimezone(ctx context.Context) error {
	zone := s.timezone
	_, current := s.settings.Zone(config.ThisMachine())
	for {
		if zone == "" && s.ask != nil {
			question := "\nTime zone:"
			if hint := s.settings.AccidentalUTC(config.ThisMachine()); hint != "" {
				question = "\nThis machine runs in UTC, as many servers do. Your time zone, such as Europe/Berlin:"
			}
			var err error
			if zone, err = s.ask.text(ctx, question, current); err != nil {
				return err
			}
		}
		if zone == "" || zone == s.settings.Timezone || s.timezone == "" && zone == current && s.settings.Timezone == "" &&
			s.settings.AccidentalUTC(config.ThisMachine()) == "" {
			return nil // it is in force
		}
		err := s.save("the time zone "+zone, nil, config.Setting{Path: []string{"timezone"}, Value: zone,
			Comment: "Times of reminders and schedules are in this zone."})
		if err == nil {
			loc, _ := time.LoadLocation(zone)
			s.done("It is %s in %s.", time.Now().In(loc).Format("15:04"), zone)
			return nil
		}
		s.fail(err)
		if s.ask == nil {
			return nil
		}
		zone, s.timezone = "", ""
	}
}
