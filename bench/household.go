package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// householdSize is how many people a large household has.
const householdSize = 50

// household compares the messages of the owner in a household of many people, each of
// whom has set a time zone, with those of an owner who is alone.
func household(b *bench) error {
	with := func(people int) func(*bed) error {
		return func(d *bed) error {
			d.chats, d.people = 1, people
			config := fmt.Sprintf("channels: {telegram_channel: {allow_from: [\"%d\", \"*\"]}}\n", firstChat)
			return os.WriteFile(filepath.Join(d.home, "config.yaml"), []byte(config), 0o600)
		}
	}
	return b.beside(fmt.Sprintf("a message in a household of %d beside one of a single person", householdSize),
		b.rounds, with(1), with(householdSize))
}

// gather has each person of the bed's household set a time zone.
func (d *bed) gather() error {
	for p := range d.people {
		id := int64(firstChat + p)
		d.telegram.AddChat(telegramtest.Chat{ID: id, Type: telegramtest.Private})
		d.say(id, "/timezone Asia/Tokyo")
		if _, err := d.reply(context.Background()); err != nil {
			return err
		}
	}
	return nil
}
