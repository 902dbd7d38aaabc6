package main

import (
	"context"
	"strconv"
	"time"

	"github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
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

// platforms begin servers, by the channel. Sent is called for each message that the
// server accepts, before the request is answered.
var platforms = map[string]func(sent func(arrived)) (platform, error){
	"telegram": func(sent func(arrived)) (platform, error) {
		s, err := telegramtest.New(telegramtest.OnMessage(func(m telegramtest.Message) { sent(fromTelegram(m)) }))
		return &telegram{s}, err
	},
	"discord": func(sent func(arrived)) (platform, error) {
		s, err := discordtest.New(discordtest.OnMessage(func(m discordtest.Message) { sent(fromDiscord(m)) }))
		return &discord{s}, err
	},
}

// channelID is the id of the channel of a platform.
func channelID(platform string) string { return platform + "_channel" }

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
