package discordchannel

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// Discord's limits of slash commands.
const (
	maxMenu        = 100
	maxDescription = 100 // characters
)

// Types of a command and its option, and where a command is offered.
const (
	commandSlash      = 1
	optionString      = 3
	contextServer     = 0
	contextPrivate    = 1
	optionName        = "text"
	optionDescription = "what follows the command"
)

// maxName is the most characters of a name.
const maxName = 32

// isName reports whether Discord takes the name of a command.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return !isNameRune(r) })
}

// slashCommand is a command of the menu.
type slashCommand struct {
	Type         int               `json:"type"`
	Name         string            `json:"name"`
	Description  string            `json:"description"`
	Translations map[string]string `json:"description_localizations,omitempty"`
	Options      []commandOption   `json:"options"`
	Contexts     []int             `json:"contexts"`
}

type commandOption struct {
	Type         int               `json:"type"`
	Name         string            `json:"name"`
	Description  string            `json:"description"`
	Translations map[string]string `json:"description_localizations,omitempty"`
}

// menu keeps the bot's slash commands up to date.
type menu struct {
	*activation

	begin   sync.Once
	running sync.WaitGroup
}

func newMenu(a *activation) *menu { return &menu{activation: a} }

// start begins with the first session, which names the application; it ends with ctx.
func (m *menu) start(ctx context.Context, application string) {
	if application == "" {
		return
	}
	m.begin.Do(func() { m.running.Go(func() { m.update(ctx, application) }) })
}

func (m *menu) stop() { m.running.Wait() }

func (m *menu) update(ctx context.Context, application string) {
	shown := ""
	for ctx.Err() == nil {
		if commands, err := m.kernel.Commands(ctx); err != nil {
			if ctx.Err() == nil {
				m.log.Warn("list commands for the menu", "error", err)
			}
		} else if next, version := menuOf(commands); version != shown && m.set(ctx, application, next) {
			shown = version
		}
		if !pause.For(ctx, m.activation.set.menuInterval) {
			return
		}
	}
}

// menuOf returns the commands as slash commands, and a text that changes with them.
func menuOf(commands []*kernelv1.Command) (all []slashCommand, version string) {
	for _, c := range commands {
		if len(all) == maxMenu || !isName(c.GetName()) {
			continue
		}
		text, translations := described(c.GetDescription(), c.GetName())
		option, optionTranslations := described(words.Sprintf(optionDescription), optionName)
		all = append(all, slashCommand{
			Type: commandSlash, Name: c.GetName(), Description: text, Translations: translations,
			Options: []commandOption{
				{Type: optionString, Name: optionName, Description: option, Translations: optionTranslations},
			},
			Contexts: []int{contextServer, contextPrivate},
		})
		version += c.GetName() + "\x00" + c.GetDescription() + "\x00"
	}
	return all, version
}

// described returns a description in English and in the other languages.
func described(description, otherwise string) (english string, translations map[string]string) {
	fit := func(s string) string {
		text := []rune(s)
		return string(text[:min(len(text), maxDescription)])
	}
	if description == "" {
		description = otherwise // Discord requires one
	}
	translations = map[string]string{}
	for _, language := range words.Languages() {
		if said := words.Say(language, description); said != description && said != "" {
			translations[language] = fit(said)
		}
	}
	return fit(description), translations
}

func (m *menu) set(ctx context.Context, application string, commands []slashCommand) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if commands == nil {
		commands = []slashCommand{}
	}
	err := m.api.do(ctx, request{
		method: http.MethodPut, path: "/applications/" + application + "/commands", body: commands,
	}, nil)
	if err != nil && ctx.Err() == nil {
		m.log.Warn("set the slash commands", "error", m.api.redact(err))
	}
	return err == nil
}
