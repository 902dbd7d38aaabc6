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

// What Telegram takes of a menu.
const (
	menuLength        = 100
	descriptionLength = 256 // characters
)

// defaultMenuPause is how long the menu may lag behind the extensions that are
// there.
const defaultMenuPause = time.Minute

// keepMenu shows the slash commands that there are to people who type a slash,
// until ctx ends.
func (a *activation) keepMenu(ctx context.Context) {
	var shown []models.BotCommand
	for ctx.Err() == nil {
		if next := a.menu(ctx); next != nil && !slices.Equal(next, shown) && a.setMenu(ctx, next) {
			shown = next
		}
		if !pause(ctx, a.set.menuPause) {
			return
		}
	}
}

// menu is the commands as Telegram shows them; nil if the kernel does not say.
func (a *activation) menu(ctx context.Context) []models.BotCommand {
	commands, err := a.kernel.Commands(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("the commands for the menu could not be listed", "error", err)
		}
		return nil
	}
	return menuOf(commands)
}

func menuOf(commands []*kernelv1.Command) []models.BotCommand {
	var menu []models.BotCommand
	for _, c := range commands[:min(len(commands), menuLength)] {
		text := []rune(c.GetDescription())
		text = text[:min(len(text), descriptionLength)]
		if len(text) == 0 {
			text = []rune(c.GetName()) // Telegram wants one
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
		a.log.Warn("the command menu could not be set", "error", a.api.redact(err))
	}
	return err == nil
}
