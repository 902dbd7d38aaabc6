package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// openSyncedJetStream opens JetStream that syncs before it acknowledges a publication.
func openSyncedJetStream(o options, handle func([]byte)) (*queue, error) {
	return openNATS(o, true, handle)
}

// openJetStream opens JetStream with its defaults: it syncs every two minutes.
func openJetStream(o options, handle func([]byte)) (*queue, error) { return openNATS(o, false, handle) }

// openNATS opens an embedded server with a file store. Publishers and the consumer share a
// connection in the process; publishers wait for each publication, and each message is
// acknowledged.
func openNATS(o options, synced bool, handle func([]byte)) (*queue, error) {
	s, err := server.NewServer(&server.Options{
		JetStream: true, StoreDir: o.dir, SyncAlways: synced, DontListen: true, NoLog: true, NoSigs: true,
		JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 8 << 30,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("the NATS server did not start")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	const subject = "load"
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "LOAD", Subjects: []string{subject},
		Storage: jetstream.FileStorage}); err != nil {
		return nil, err
	}
	consumer, err := js.CreateConsumer(ctx, "LOAD", jetstream.ConsumerConfig{
		Durable: "bench", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxAckPending: 2 * onTheWay,
	})
	if err != nil {
		return nil, err
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		handle(m.Data())
		_ = m.Ack()
	}, jetstream.PullMaxMessages(onTheWay))
	if err != nil {
		return nil, err
	}
	return &queue{
		publish: func(ctx context.Context, _ int, event []byte) error {
			_, err := js.Publish(ctx, subject, event)
			return err
		},
		settled: func(ctx context.Context) error {
			for {
				info, err := consumer.Info(ctx)
				if err != nil || info.NumAckPending == 0 && info.NumPending == 0 {
					return err
				}
			}
		},
		close: func() {
			consuming.Stop()
			conn.Close()
			s.Shutdown()
			s.WaitForShutdown()
		},
	}, nil
}
