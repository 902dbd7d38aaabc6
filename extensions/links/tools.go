package links

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/switchboard-run/switchboard/sdk"
)

// peersTool is the tool that tells agents whom they can talk to.
const peersTool = "peers"

func (l *links) tools() []sdk.Tool {
	return []sdk.Tool{
		{
			Name: "send_agent_message",
			Description: "Write to another agent that you are linked with, to have it do or find out something. It returns at once; the agent answers on your link with it, " +
				"and the result comes to this conversation later as a [result from ...]. Write all that the agent needs: it does not know this conversation. " +
				"A further message to the same agent goes on with the open exchange.",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["target","message"],"properties":{` +
				`"target":{"type":"string","description":"id of the agent"},"message":{"type":"string","minLength":1}}}`),
			Idempotent: true, // its effects are committed with its result
			Call:       l.send,
		},
		{
			Name: "conclude_link",
			Description: "In a conversation with another agent (its messages begin with [message from ...]): end it on both sides, because its objective is met or cannot be met. " +
				"The summary goes to the conversation that asked for it and holds the whole result. Conclude once, and do not answer a conclusion.",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["summary"],"properties":{` +
				`"summary":{"type":"string","minLength":1}}}`),
			Idempotent: true,
			Final:      true, // a model that is asked again says thank you
			Call:       l.conclude,
		},
		{
			Name:        peersTool,
			Description: "Which agents you are linked with, and which exchanges with them are open here.",
			Schema:      json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"query":{"type":"string"}}}`),
			ReadOnly:    true,
			Call:        l.tellPeers,
		},
		{
			Name:        "list_links",
			Description: "List the links and the exchanges on them, the newest first.",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"all":{"type":"boolean","description":"also exchanges that are over"},` +
				`"limit":{"type":"integer","minimum":1}}}`),
			ReadOnly: true, Private: true,
			Call: l.list,
		},
		{
			Name:        "show_exchange",
			Description: "Show an exchange: what was said on it, and how it ended.",
			Schema:      json.RawMessage(`{"type":"object","additionalProperties":false,"required":["id"],"properties":{"id":{"type":"string"}}}`),
			ReadOnly:    true, Private: true,
			Call: l.show,
		},
	}
}

// shownLink is a link as people see it.
type shownLink struct {
	From        string            `json:"from"`
	To          string            `json:"to"`
	Mode        string            `json:"mode"`
	MaxMessages int               `json:"max_messages"`
	IdleSeconds int64             `json:"idle_seconds"`
	Sessions    map[string]string `json:"sessions,omitempty"` // of each agent
	Problem     string            `json:"problem,omitempty"`
}

func (l *links) list(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		All   bool `json:"all"`
		Limit int  `json:"limit"`
	}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	shown := []shownLink{}
	for _, one := range l.links {
		shown = append(shown, shownLink{one.From, one.To, one.Mode, one.MaxMessages, one.IdleSeconds, l.sessionsOf(one), one.Problem})
	}
	exchanges := []*exchange{}
	err := l.k.Scan(ctx, exchangePrefix, func(v sdk.Value) error {
		x, err := decode(v)
		if err != nil {
			x = &exchange{ID: idOf(v.Key), Outcome: "cannot be read: " + err.Error()}
		}
		if args.All || !x.Over {
			exchanges = append(exchanges, x)
		}
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	slices.SortFunc(exchanges, func(a, b *exchange) int { return cmp.Or(b.Opened.Compare(a.Opened), cmp.Compare(b.ID, a.ID)) })
	total := len(exchanges)
	exchanges = exchanges[:min(total, cmp.Or(args.Limit, 100))]
	return sdk.JSON(map[string]any{"links": shown, "exchanges": exchanges, "more": total - len(exchanges)})
}

func (l *links) show(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ ID string }
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	x, err := l.load(ctx, args.ID)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if x == nil {
		return refuse("there is no exchange %q; `switchboard links list --all` names those that are kept", args.ID)
	}
	messages := []said{}
	err = l.k.Scan(ctx, saidPrefix+x.ID+"/", func(v sdk.Value) error {
		var m said
		if err := v.Decode(&m); err != nil {
			return err
		}
		messages = append(messages, m)
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	var sessions map[string]string
	if one := l.between(x.Initiator, x.Peer); x.Within != "" {
		sessions = x.Sides
	} else if one != nil {
		sessions = l.sessionsOf(one)
	}
	return sdk.JSON(map[string]any{"exchange": x, "messages": messages, "sessions": sessions, "ending": map[bool]string{true: x.ending()}[x.Over]})
}
