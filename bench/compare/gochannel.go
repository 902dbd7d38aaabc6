package main

import (
	"context"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
)

// openGoChannel opens watermill's channel in memory: nothing is durable.
func openGoChannel(_ options, handle func([]byte)) (*queue, error) {
	const topic = "load"
	channel := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: onTheWay}, watermill.NopLogger{})
	messages, err := channel.Subscribe(context.Background(), topic)
	if err != nil {
		return nil, err
	}
	go func() {
		for m := range messages {
			handle(m.Payload)
			m.Ack()
		}
	}()
	return &queue{
		publish: func(_ context.Context, _ int, event []byte) error {
			return channel.Publish(topic, message.NewMessage(watermill.NewShortUUID(), event))
		},
		settled: func(context.Context) error { return nil },
		close:   func() { _ = channel.Close() },
	}, nil
}
