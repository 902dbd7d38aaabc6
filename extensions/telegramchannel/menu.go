package telegramchannel

import (
	"context"
	"slices"
	"time"
	"unicode"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// Telegram's limits of a menu.
const (
	maxMenu        = 100
	maxDescription = 256 // characters
)

// defaultMenuInterval is how often the menu is compared with the commands.
const defaultMenuInterval = time.Minute

// updateMenu keeps the bot's command menu up to date until ctx ends.
func (a *activation) updateMenu(ctx context.Context) {
	shown := map[string][]models.BotCommand{} // by language
	for ctx.Err() == nil {
		commands := a.listCommands(ctx)
		for _, language := range append([]string{""}, words.Languages()...) {
			next := menuOf(commands, language)
			if next != nil && !slices.Equal(next, shown[language]) && a.setMenu(ctx, next, language) {
				shown[language] = next
			}
		}
		if !pause.For(ctx, a.set.menuInterval) {
			return
		}
	}
}

// listCommands returns the commands; nil after an error.
func (a *activation) listCommands(ctx context.Context) []*kernelv1.Command {
	commands, err := a.kernel.Commands(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("list commands for the menu", "error", err)
		}
		return nil
	}
	return commands
}

// menuOf returns the commands as menu entries in a language.
func menuOf(commands []*kernelv1.Command, language string) []models.BotCommand {
	var menu []models.BotCommand
	for _, c := range commands[:min(len(commands), maxMenu)] {
		text := []rune(words.Say(language, c.GetDescription()))
		text = text[:min(len(text), maxDescription)]
		if len(text) == 0 {
			text = []rune(c.GetName()) // required by Telegram
		}
		text[0] = unicode.ToUpper(text[0])
		menu = append(menu, models.BotCommand{Command: c.GetName(), Description: string(text)})
	}
	return menu
}

func (a *activation) setMenu(ctx context.Context, menu []models.BotCommand, language string) bool {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	_, err := a.api.bot.SetMyCommands(ctx, &bot.SetMyCommandsParams{Commands: menu, LanguageCode: language})
	if err != nil && ctx.Err() == nil {
		a.log.Warn("set the command menu", "error", a.api.redact(err))
	}
	return err == nil
}
