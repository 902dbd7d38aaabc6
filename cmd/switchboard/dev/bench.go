package dev

import (
	"context"
	"encoding/json"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// BenchID is the id of the extension that plays the world.
	BenchID = "dev_bench"
	// BenchCommand makes this program serve it.
	BenchCommand = "extension-dev"
)

// Bench is an extension that plays the world around another one. Its tools publish events
// and say what a person says; it is a channel that accepts every message.
func Bench() sdk.Extension {
	var kernel *sdk.Kernel
	return sdk.Extension{
		ID:    BenchID,
		Start: func(_ context.Context, k *sdk.Kernel) error { kernel = k; return nil },
		Channel: sdk.ChannelFunc(func(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
			return sdk.Receipt{ProviderID: m.ID, Conversation: "bench"}, nil
		}),
		Tools: []sdk.Tool{
			{
				Name: "publish", Description: "Publish an event.", Private: true,
				Schema: []byte(`{"type": "object", "properties": {"topic": {"type": "string"}, "payload": {}},
					"required": ["topic", "payload"]}`),
				Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
					var e struct {
						Topic   string
						Payload json.RawMessage
					}
					if err := c.Decode(&e); err != nil {
						return sdk.ToolResult{}, err
					}
					return sdk.JSON("published", sdk.Publish(e.Topic, e.Payload))
				},
			},
			{
				Name: "say", Description: "Say what a person says.", Private: true,
				Schema: []byte(`{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}`),
				Call: func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
					var said struct{ Text string }
					if err := c.Decode(&said); err != nil {
						return sdk.ToolResult{}, err
					}
					m := sdk.UserMessage{
						Text: said.Text, UserID: "me", UserName: "Me", ConversationID: "bench",
						MessageID: time.Now().Format(time.RFC3339Nano),
					}
					if err := kernel.Receive(ctx, m, ""); err != nil {
						return sdk.ToolResult{}, err
					}
					return sdk.JSON("said")
				},
			},
		},
	}
}
