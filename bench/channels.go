package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

const (
	crowdChats = 256
	// maxTerminals is how many the terminal channel takes.
	maxTerminals = 64
)

// way is how the messages of a bed come and its replies go, instead of Telegram.
type way struct {
	channel string // its id
	env     []string
	begin   func(d *bed) error // when the kernel runs; nil: nothing
	say     func(chat int64, text string)
	end     func()
	// leave ends what chats hold, so that others can begin; nil: nothing.
	leave func()
	most  int // chats at once; 0: crowdChats
	// settings are those of the extension in config.yaml; empty: none.
	settings string
}

// channels compares the channels: messages at a pace, and many chats at once.
func channels(b *bench) error {
	kinds := []struct {
		name string
		make func(reply func(chat int64)) (*way, error)
	}{
		{"Telegram", func(func(int64)) (*way, error) { return nil, nil }}, //nolint:nilnil // a bed has it
		{"Slack", overSlack}, {"Discord", overDiscord}, {"terminal", overTerminal},
	}
	p50, rates := make([][]time.Duration, len(kinds)), make([][]float64, len(kinds))
	for range b.rounds {
		for i, kind := range kinds {
			d, err := newBed()
			if err != nil {
				return err
			}
			if d.way, err = kind.make(func(chat int64) { d.replies <- telegramtest.Message{Chat: chat} }); err != nil {
				return err
			}
			if err := d.over(); err != nil {
				return err
			}
			if err := errors.Join(d.start(b.binary), d.begin(), d.warm()); err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			seen, err := pace(d, b.scale(500))
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			chats := d.crowd()
			// A few messages of each chat would measure how the crowd begins.
			rate, _, err := crowd(d, chats, max(b.scale(5000), 8*chats))
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			p50[i], rates[i] = append(p50[i], seen.p50), append(rates[i], rate)
			d.close()
		}
	}
	for i, kind := range kinds {
		fmt.Printf("%-9s p50 %s; many chats %s; beside Telegram's %s and %s\n", kind.name, spread(p50[i], milliseconds),
			spread(rates[i], perSecond), times(float64(median(p50[i]))/float64(median(p50[0]))),
			times(median(rates[i])/median(rates[0])))
	}
	return nil
}

// over configures the home for the channel.
func (d *bed) over() error {
	if d.way == nil {
		return nil
	}
	config := "channels: {" + d.way.channel + ": {allow_from: [\"*\"]}}\nextensions: {" + d.way.channel + ": " +
		cmp.Or(d.way.settings, "{}") + "}\n"
	return os.WriteFile(filepath.Join(d.home, "config.yaml"), []byte(config), 0o600)
}

// crowd leaves the chats so far, and returns how many others write at once.
func (d *bed) crowd() int {
	if d.way == nil || d.way.leave == nil {
		return crowdChats
	}
	d.way.leave()
	return d.way.most
}

func (d *bed) begin() error {
	if d.way == nil || d.way.begin == nil {
		return nil
	}
	return d.way.begin(d)
}

const answered = "You said: "

func overSlack(reply func(chat int64)) (*way, error) {
	var server *slacktest.Server
	var mu sync.Mutex
	chats := map[string]int64{}
	server, err := slacktest.New(slacktest.OnMessage(func(m slacktest.Message) {
		mu.Lock()
		chat := chats[m.Channel]
		mu.Unlock()
		if m.ByBot && strings.HasPrefix(m.Said, answered) {
			reply(chat)
		}
	}))
	if err != nil {
		return nil, err
	}
	return &way{
		channel: "slack_channel", end: server.Close,
		env: []string{
			"SLACK_API_URL=" + server.URL(), "SLACK_BOT_TOKEN=" + server.BotToken(), "SLACK_APP_TOKEN=" + server.AppToken(),
		},
		begin: func(*bed) error { return within(server.WaitConnected) },
		say: func(chat int64, text string) {
			user := fmt.Sprintf("U%08d", chat)
			mu.Lock()
			chats[slacktest.DirectID(user)] = chat
			mu.Unlock()
			server.Say(user, text)
		},
	}, nil
}

func overDiscord(reply func(chat int64)) (*way, error) {
	var mu sync.Mutex
	chats := map[string]int64{}
	server, err := discordtest.New(discordtest.OnMessage(func(m discordtest.Message) {
		mu.Lock()
		chat := chats[m.Channel]
		mu.Unlock()
		if m.ByBot && strings.HasPrefix(m.Text, answered) {
			reply(chat)
		}
	}))
	if err != nil {
		return nil, err
	}
	return &way{
		channel: "discord_channel", end: server.Close,
		env:   []string{"DISCORD_API_URL=" + server.URL(), "DISCORD_BOT_TOKEN=" + server.Token()},
		begin: func(*bed) error { return within(server.WaitSession) },
		say: func(chat int64, text string) {
			mu.Lock()
			chats[discordtest.DM(strconv.FormatInt(chat, 10))] = chat
			mu.Unlock()
			server.Say(strconv.FormatInt(chat, 10), text)
		},
	}, nil
}

// within waits for a minute.
func within(wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return wait(ctx)
}

// terminals are chats in one home, each with a connection.
type terminals struct {
	socket, token string
	reply         func(chat int64)
	mu            sync.Mutex
	open          map[int64]*wire.Conn
}

func overTerminal(reply func(chat int64)) (*way, error) {
	t := &terminals{reply: reply, open: map[int64]*wire.Conn{}}
	return &way{
		channel: "cli_channel", end: t.close, leave: t.close, most: maxTerminals - 4,
		begin: func(d *bed) error {
			t.socket = filepath.Join(d.home, "run", wire.SocketName)
			return until("the terminal channel did not start", func() bool {
				token, _ := os.ReadFile(filepath.Join(d.home, "data", "cli_channel", wire.TokenName))
				t.token = strings.TrimSpace(string(token))
				_, err := t.of(firstChat)
				return err == nil
			})
		},
		say: func(chat int64, text string) {
			c, err := t.of(chat)
			if err == nil {
				err = c.Write(wire.Frame{Type: wire.Message, ID: wire.NewID(), Text: text})
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "bench: a terminal:", err) // no reply comes: the measurement fails
			}
		},
	}, nil
}

func (t *terminals) of(chat int64) (*wire.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.open[chat]; c != nil {
		return c, nil
	}
	socket, err := net.Dial("unix", t.socket)
	if err != nil {
		return nil, err
	}
	c := wire.NewConn(socket, time.Minute)
	hello := wire.Frame{
		Type: wire.Hello, Version: wire.Version, Terminal: wire.NewID(), Token: t.token,
		Conversation: fmt.Sprintf("chat-%d", chat),
	}
	if err := c.Write(hello); err != nil {
		return nil, err
	}
	if f, err := c.Read(); err != nil || f.Type != wire.Welcome {
		text, _ := json.Marshal(f)
		return nil, errors.Join(fmt.Errorf("instead of a welcome: %s", text), err)
	}
	t.open[chat] = c
	go t.read(c, chat)
	return c, nil
}

func (t *terminals) read(c *wire.Conn, chat int64) {
	for {
		f, err := c.Read()
		if err != nil {
			return
		}
		if f.Type == wire.Message {
			_ = c.Write(wire.Frame{Type: wire.Shown, ID: f.ID})
			t.reply(chat)
		}
	}
}

func (t *terminals) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.open {
		_ = c.Close()
	}
	clear(t.open)
}
