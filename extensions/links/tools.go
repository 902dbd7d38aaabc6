package links

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/switchboard-run/switchboard/sdk"
)

// peersTool is the tool that lists the agents to write to.
const peersTool = "peers"

func (l *links) tools() []sdk.Tool {
	return []sdk.Tool{
		{
			Name: "send_agent_message",
			Description: "Write to an agent that you are linked with, to have it do or find out something. Returns at " +
				"once; the result arrives in this conversation later as [result from ...]. Include everything the agent " +
				"needs: it does not know this conversation. A further message to it continues the open exchange.",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["target","message"],` +
				`"properties":{"target":{"type":"string","description":"id of the agent"},` +
				`"message":{"type":"string","minLength":1}}}`),
			Idempotent: true, // its effects are committed with its result
			Call:       l.send,
		},
		{
			Name: "conclude_link",
			Description: "End a conversation with another agent (its messages begin with [message from ...]) on both " +
				"sides, because its objective is met or cannot be met. The summary goes to the conversation that asked " +
				"and must contain the whole result. Conclude once; do not answer a conclusion.",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["summary"],"properties":{` +
				`"summary":{"type":"string","minLength":1}}}`),
			Idempotent: true,
			Final:      true, // a model that is called again thanks the other
			Call:       l.conclude,
		},
		{
			Name:        peersTool,
			Description: "List the agents you are linked with, and the open exchanges with them.",
			Schema: json.RawMessage(
				`{"type":"object","additionalProperties":false,"properties":{"query":{"type":"string"}}}`),
			ReadOnly: true,
			Call:     l.callPeers,
		},
		{
			Name:        "list_links",
			Description: "List the links and the exchanges on them, newest first.",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
				`"all":{"type":"boolean","description":"include ended exchanges"},` +
				`"limit":{"type":"integer","minimum":1}}}`),
			ReadOnly: true, Private: true,
			Call: l.list,
		},
		{
			Name:        "show_exchange",
			Description: "Show the messages and the outcome of an exchange.",
			Schema: json.RawMessage(
				`{"type":"object","additionalProperties":false,"required":["id"],"properties":{"id":{"type":"string"}}}`),
			ReadOnly: true, Private: true,
			Call: l.show,
		},
	}
}

// linkInfo is a link as shown to people.
type linkInfo struct {
	From        string            `json:"from"`
	To          string            `json:"to"`
	Mode        string            `json:"mode"`
	MaxMessages int               `json:"max_messages"`
	IdleSeconds int64             `json:"idle_seconds"`
	Sessions    map[string]string `json:"sessions,omitempty"` // by agent
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
	shown := []linkInfo{}
	for _, one := range l.links {
		shown = append(shown, linkInfo{
			one.From, one.To, one.Mode, one.MaxMessages, one.IdleSeconds, l.sessionsOf(one), one.Problem,
		})
	}
	exchanges := []*exchange{}
	err := l.k.Scan(ctx, exchangePrefix, func(v sdk.Value) error {
		x, err := decode(v)
		if err != nil {
			x = &exchange{ID: idOf(v.Key), Outcome: "unreadable: " + err.Error()}
		}
		if (args.All || !x.Over) && c.Principal.Sees(x.Principal) {
			exchanges = append(exchanges, x)
		}
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	slices.SortFunc(exchanges, func(a, b *exchange) int {
		return cmp.Or(b.Opened.Compare(a.Opened), cmp.Compare(b.ID, a.ID))
	})
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
	if x == nil || !c.Principal.Sees(x.Principal) {
		return refuse("there is no exchange %q; `switchboard links list --all` lists all exchanges", args.ID)
	}
	messages := []loggedMessage{}
	err = l.k.Scan(ctx, messagePrefix+x.ID+"/", func(v sdk.Value) error {
		var m loggedMessage
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
	if one := l.linkBetween(x.Initiator, x.Peer); x.Within != "" {
		sessions = x.Sides
	} else if one != nil {
		sessions = l.sessionsOf(one)
	}
	ending := ""
	if x.Over {
		ending = x.outcomeText()
	}
	return sdk.JSON(map[string]any{"exchange": x, "messages": messages, "sessions": sessions, "ending": ending})
}
