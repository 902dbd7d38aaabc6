package ledger

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// Platform is where people write: the server of a channel. A chat is a person's private
// one.
type Platform interface {
	Env() []string // for the kernel
	Write(chat int64, text string)
	Messages(chat int64) []Arrived // of the bot, in order
	Close()
}

// Arrived is a message of the bot.
type Arrived struct {
	Chat int64
	Text string
	At   time.Time
}

// Platforms begin the servers of channels, by the name of the channel. Sent is called for
// each message that the server accepts, before the request is answered.
var Platforms = map[string]func(sent func(Arrived)) (Platform, error){
	"telegram": func(sent func(Arrived)) (Platform, error) {
		s, err := telegramtest.New(telegramtest.OnMessage(func(m telegramtest.Message) { sent(fromTelegram(m)) }))
		return &Telegram{s}, err
	},
	"discord": func(sent func(Arrived)) (Platform, error) {
		s, err := discordtest.New(discordtest.OnMessage(func(m discordtest.Message) { sent(fromDiscord(m)) }))
		return &discord{s}, err
	},
	"slack": func(sent func(Arrived)) (Platform, error) {
		s, err := slacktest.New(slacktest.OnMessage(func(m slacktest.Message) { sent(fromSlack(m)) }))
		return &slack{s}, err
	},
}

// ChannelID is the id of the channel of a platform.
func ChannelID(platform string) string {
	if platform == "terminal" {
		return "cli_channel"
	}
	return platform + "_channel"
}

// Most is how many of the chats of a part a platform has at once.
func Most(platform string, chats int) int {
	if platform == "terminal" {
		return min(chats, 60) // the channel takes 64
	}
	return chats
}

// Telegram is the fake of Telegram.
type Telegram struct{ *telegramtest.Server }

func fromTelegram(m telegramtest.Message) Arrived { return Arrived{m.Chat, m.Text, m.At} }

// Env implements Platform.
func (p *Telegram) Env() []string {
	return []string{"TELEGRAM_BOT_TOKEN=" + p.Token(), "TELEGRAM_API_URL=" + p.URL()}
}

// Write implements Platform.
func (p *Telegram) Write(chat int64, text string) {
	p.Inject(telegramtest.Incoming{From: telegramtest.User{ID: chat, FirstName: "Anna"}, Text: text})
}

// Messages implements Platform.
func (p *Telegram) Messages(chat int64) (all []Arrived) {
	for _, m := range p.Server.Messages(chat) {
		all = append(all, fromTelegram(m))
	}
	return all
}

type discord struct{ *discordtest.Server }

// firstPrivate is the id of the private chat of user 0.
const firstPrivate = 700000000000000000

func fromDiscord(m discordtest.Message) Arrived {
	id, _ := strconv.ParseInt(m.Channel, 10, 64)
	return Arrived{id - firstPrivate, m.Text, m.At}
}

// Env implements Platform.
func (p *discord) Env() []string {
	return []string{"DISCORD_BOT_TOKEN=" + p.Token(), "DISCORD_API_URL=" + p.URL()}
}

// Write implements Platform.
func (p *discord) Write(chat int64, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	_ = p.WaitSession(ctx) // before it Discord keeps nothing for the bot
	p.Say(strconv.FormatInt(chat, 10), text)
}

// Messages implements Platform.
func (p *discord) Messages(chat int64) (all []Arrived) {
	for _, m := range p.Server.Messages(discordtest.DM(strconv.FormatInt(chat, 10))) {
		all = append(all, fromDiscord(m))
	}
	return all
}

type slack struct{ *slacktest.Server }

// slackUser is the id of a user, whose direct messages have the same number.
func slackUser(chat int64) string { return "U" + strconv.FormatInt(chat, 10) }

func fromSlack(m slacktest.Message) Arrived {
	id, _ := strconv.ParseInt(strings.TrimLeft(m.Channel, "D"), 10, 64)
	return Arrived{id, m.Said, m.Time()}
}

// Env implements Platform.
func (p *slack) Env() []string {
	return []string{"SLACK_BOT_TOKEN=" + p.BotToken(), "SLACK_APP_TOKEN=" + p.AppToken(), "SLACK_API_URL=" + p.URL()}
}

// Write implements Platform.
func (p *slack) Write(chat int64, text string) { p.Say(slackUser(chat), text) }

// Messages implements Platform.
func (p *slack) Messages(chat int64) (all []Arrived) {
	for _, m := range p.Server.Messages(slacktest.DirectID(slackUser(chat))) {
		all = append(all, fromSlack(m))
	}
	return all
}
