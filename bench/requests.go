package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// requests measures the requests of one conversation with the default extensions: the size
// of the first, and the part of a later one that is neither new messages nor the beginning
// of an earlier request. Providers cache the rest.
func requests(b *bench) error {
	const turns = 20
	d, err := newBed()
	if err != nil {
		return err
	}
	defer d.close()
	d.model.Keep(2 * turns)
	if err := d.start(b.binary); err != nil {
		return err
	}
	for i := range turns {
		time.Sleep(1100 * time.Millisecond) //nolint:forbidigo // the time that a model is told has changed
		d.say(1, fmt.Sprintf("Message %d of a conversation.", i))
		if _, err := d.reply(context.Background()); err != nil {
			return err
		}
	}
	all := d.model.Requests()
	var bytes, besides, whole []int64
	for i, news := range openaitest.AddedBy(all) {
		if i > 0 {
			bytes, besides = append(bytes, int64(news.Bytes)), append(besides, int64(news.Bytes-news.Messages))
		}
		whole = append(whole, int64(len(all[i].Raw)))
	}
	inBytes := func(n int64) string { return fmt.Sprintf("%d bytes", n) }
	tools, err := json.Marshal(all[0].Tools)
	if err != nil {
		return err
	}
	fmt.Printf("the first request: %s, of which %d tools %s, the system prompt %s\n",
		inBytes(whole[0]), len(all[0].Tools), inBytes(int64(len(tools))),
		inBytes(int64(len(all[0].Messages[0].Content.Text))))
	fmt.Println("a later request, new in it:", spread(bytes, inBytes))
	fmt.Println("the same besides its new messages:", spread(besides, inBytes))
	fmt.Printf("all of request %d: %s\n", turns, inBytes(whole[len(whole)-1]))
	return nil
}
