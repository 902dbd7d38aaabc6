package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// platform is where people write: the server of a channel. A chat is a person's private
// one.
type platform interface {
	env() []string // for the kernel
	write(chat int64, text string)
	messages(chat int64) []arrived // of the bot, in order
	close()
}

// arrived is a message of the bot.
type arrived struct {
	chat int64
	text string
	at   time.Time
}

// platforms begin the servers of a home, by the channel. Sent is called for each message
// that the server accepts, before the request is answered; at the terminal, when it is shown,
// which may be confirmed by then.
var platforms = map[string]func(h *home, sent func(arrived)) (platform, error){
	"telegram": func(_ *home, sent func(arrived)) (platform, error) {
		s, err := telegramtest.New(telegramtest.OnMessage(func(m telegramtest.Message) { sent(fromTelegram(m)) }))
		return &telegram{s}, err
	},
	"discord": func(_ *home, sent func(arrived)) (platform, error) {
		s, err := discordtest.New(discordtest.OnMessage(func(m discordtest.Message) { sent(fromDiscord(m)) }))
		return &discord{s}, err
	},
	"slack": func(_ *home, sent func(arrived)) (platform, error) {
		s, err := slacktest.New(slacktest.OnMessage(func(m slacktest.Message) { sent(fromSlack(m)) }))
		return &slack{s}, err
	},
	"terminal": func(h *home, sent func(arrived)) (platform, error) {
		return &terminals{home: h, sent: sent, chats: map[int64]*chat{}}, nil
	},
}

// channelID is the id of the channel of a platform.
func channelID(platform string) string {
	if platform == "terminal" {
		return "cli_channel"
	}
	return platform + "_channel"
}

// most is how many of the chats of a part a platform has at once.
func most(platform string, chats int) int {
	if platform == "terminal" {
		return min(chats, 60) // the channel takes 64
	}
	return chats
}

type telegram struct{ *telegramtest.Server }

func fromTelegram(m telegramtest.Message) arrived { return arrived{m.Chat, m.Text, m.At} }

func (p *telegram) env() []string {
	return []string{"TELEGRAM_BOT_TOKEN=" + p.Token(), "TELEGRAM_API_URL=" + p.URL()}
}

func (p *telegram) write(chat int64, text string) {
	p.Inject(telegramtest.Incoming{From: telegramtest.User{ID: chat, FirstName: "Anna"}, Text: text})
}

func (p *telegram) messages(chat int64) (all []arrived) {
	for _, m := range p.Messages(chat) {
		all = append(all, fromTelegram(m))
	}
	return all
}

func (p *telegram) close() { p.Close() }

type discord struct{ *discordtest.Server }

// firstPrivate is the id of the private chat of user 0.
const firstPrivate = 700000000000000000

func fromDiscord(m discordtest.Message) arrived {
	id, _ := strconv.ParseInt(m.Channel, 10, 64)
	return arrived{id - firstPrivate, m.Text, m.At}
}

func (p *discord) env() []string {
	return []string{"DISCORD_BOT_TOKEN=" + p.Token(), "DISCORD_API_URL=" + p.URL()}
}

func (p *discord) write(chat int64, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = p.WaitSession(ctx) // before it Discord keeps nothing for the bot
	p.Say(strconv.FormatInt(chat, 10), text)
}

func (p *discord) messages(chat int64) (all []arrived) {
	for _, m := range p.Messages(discordtest.DM(strconv.FormatInt(chat, 10))) {
		all = append(all, fromDiscord(m))
	}
	return all
}

func (p *discord) close() { p.Close() }

type slack struct{ *slacktest.Server }

// slackUser is the id of a user, whose direct messages have the same number.
func slackUser(chat int64) string { return "U" + strconv.FormatInt(chat, 10) }

func fromSlack(m slacktest.Message) arrived {
	id, _ := strconv.ParseInt(strings.TrimLeft(m.Channel, "D"), 10, 64)
	return arrived{id, m.Said, m.Time()}
}

func (p *slack) env() []string {
	return []string{"SLACK_BOT_TOKEN=" + p.BotToken(), "SLACK_APP_TOKEN=" + p.AppToken(), "SLACK_API_URL=" + p.URL()}
}

func (p *slack) write(chat int64, text string) { p.Say(slackUser(chat), text) }

func (p *slack) messages(chat int64) (all []arrived) {
	for _, m := range p.Messages(slacktest.DirectID(slackUser(chat))) {
		all = append(all, fromSlack(m))
	}
	return all
}

func (p *slack) close() { p.Close() }
