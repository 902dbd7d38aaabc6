package telegramchannel

import (
	"context"
	"slices"
	"time"
	"unicode"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
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
	var shown []models.BotCommand
	for ctx.Err() == nil {
		if next := a.listMenu(ctx); next != nil && !slices.Equal(next, shown) && a.setMenu(ctx, next) {
			shown = next
		}
		if !pause(ctx, a.set.menuInterval) {
			return
		}
	}
}

// listMenu returns the commands as menu entries; nil after an error.
func (a *activation) listMenu(ctx context.Context) []models.BotCommand {
	commands, err := a.kernel.Commands(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("list commands for the menu", "error", err)
		}
		return nil
	}
	return menuOf(commands)
}

func menuOf(commands []*kernelv1.Command) []models.BotCommand {
	var menu []models.BotCommand
	for _, c := range commands[:min(len(commands), maxMenu)] {
		text := []rune(c.GetDescription())
		text = text[:min(len(text), maxDescription)]
		if len(text) == 0 {
			text = []rune(c.GetName()) // required by Telegram
		}
		text[0] = unicode.ToUpper(text[0])
		menu = append(menu, models.BotCommand{Command: c.GetName(), Description: string(text)})
	}
	return menu
}

func (a *activation) setMenu(ctx context.Context, menu []models.BotCommand) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := a.api.bot.SetMyCommands(ctx, &bot.SetMyCommandsParams{Commands: menu})
	if err != nil && ctx.Err() == nil {
		a.log.Warn("set the command menu", "error", a.api.redact(err))
	}
	return err == nil
}
