package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// A shop has tools and is a channel. Its tools note each run in the file calls:
// peek changes nothing; act must not run twice, and publishes shop.did with its
// result; wait is act that may be interrupted. Each says which it was with n,
// and, with hold, works until a file of that name exists. What is sent through
// the channel is noted in the file out.
var shopTools = []sdk.Tool{
	{Name: "peek", Description: "Looks.", Schema: shopSchema, ReadOnly: true, Call: shopPeek},
	{Name: "act", Description: "Acts.", Schema: shopSchema, Call: shopAct},
	{Name: "wait", Description: "Acts, and can be interrupted.", Schema: shopSchema, Interrupt: true, Call: shopAct},
}

var shopSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"},"hold":{"type":"string"}},"required":["n"],"additionalProperties":false}`)

func shopSend(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
	note("out", m.Text)
	return sdk.Receipt{ProviderID: m.ID, Conversation: "counter"}, nil
}

func shopPeek(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	n, err := shopWork(ctx, c)
	return sdk.ToolResult{Content: "saw " + n}, err
}

func shopAct(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	n, err := shopWork(ctx, c)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.ToolResult{Content: "did " + n, Effects: sdk.Effects{sdk.Publish("shop.did",
		map[string]string{"n": n})}}, nil
}

func shopWork(ctx context.Context, c sdk.ToolCall) (string, error) {
	var q struct{ N, Hold string }
	if err := json.Unmarshal(c.Arguments, &q); err != nil {
		return "", err
	}
	note("calls", c.Name+" "+q.N)
	for q.Hold != "" {
		if _, err := os.Stat(q.Hold); err == nil {
			break
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return q.N, nil
}
