package tools

import (
	"context"
	"encoding/json"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// CoreExtension is the prefix of the kernel's own tools.
const CoreExtension = "core"

// coreTool is a tool of the kernel: either read, which has no effect, or run, which
// stores the result itself.
type coreTool struct {
	description *extensionv1.Tool
	read        func(ctx context.Context, r *Runner, l *bus.Lease, arguments []byte) (any, error)
	run         func(context.Context, *running) (*extensionv1.CallResult, error)
}

// answer returns the result of a tool that only reads.
func (c coreTool) answer(ctx context.Context, r *Runner, l *bus.Lease, raw []byte) (string, error) {
	v, err := c.read(ctx, r, l, arguments(raw))
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(v)
	return string(b), err
}

var core = map[string]coreTool{
	"core/list_channels": {
		description: &extensionv1.Tool{
			Name: "list_channels", ReadOnly: true,
			Description: "List the channels: id, name, readiness.",
			Schema:      []byte(`{"type":"object","properties":{},"additionalProperties":false}`),
		},
		read: listChannels,
	},
	"core/list_agents": {
		description: &extensionv1.Tool{
			Name: "list_agents", ReadOnly: true,
			Description: "List the agents, and what each is for.",
			Schema:      []byte(`{"type":"object","properties":{},"additionalProperties":false}`),
		},
		read: listAgents,
	},
	"core/send_to_channel": {
		description: &extensionv1.Tool{
			Name:        "send_to_channel",
			Description: "Send a message on a channel that the user named. Not for answers.",
			Schema: []byte(`{"type":"object","properties":{"channel_id":{"type":"string"},` +
				`"text":{"type":"string","minLength":1},"attachments":{"type":"array","maxItems":10,` +
				`"items":{"type":"string"}}},"required":["channel_id","text"],"additionalProperties":false}`),
		},
		run: send,
	},
	toPerson: {
		description: &extensionv1.Tool{
			Name:        "send_to_person",
			Description: "Send a message to another person, who gets it in private with the name of the one who asked for it.",
			Schema: []byte(`{"type":"object","properties":{"person":{"type":"string","minLength":1,` +
				`"description":"their name"},"text":{"type":"string","minLength":1},` +
				`"channel_id":{"type":"string","description":"if they use several"},` +
				`"attachments":{"type":"array","maxItems":10,` +
				`"items":{"type":"string","description":"such as [image 3f2a9c: cat.jpg]"}}},` +
				`"required":["person","text"],"additionalProperties":false}`),
		},
		run: send,
	},
	toAll: {
		description: &extensionv1.Tool{
			Name: "send_to_all_channels", Approve: true,
			Description: "Send a message on every channel, only when asked to.",
			Schema: []byte(`{"type":"object","properties":{"text":{"type":"string","minLength":1}},` +
				`"required":["text"],"additionalProperties":false}`),
		},
		run: send,
	},
	"core/ask_user":   askUser,
	contract.ToolFind: findTool,
	contract.ToolUse:  useTool,
}

// Core returns the kernel's own tools for the directory.
func Core() []*extensionv1.Tool {
	tools := make([]*extensionv1.Tool, 0, len(core))
	for _, c := range core {
		tools = append(tools, c.description)
	}
	return tools
}

type channelRow struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Readiness string `json:"readiness"`
	Detail    string `json:"detail,omitempty"`
	MaxLength int    `json:"max_length,omitempty"`
	Default   bool   `json:"default,omitempty"`
}

func listChannels(_ context.Context, r *Runner, _ *bus.Lease, _ []byte) (any, error) {
	dir := r.Directory.Current()
	rows := []channelRow{}
	for i := range dir.Channels {
		c := &dir.Channels[i]
		rows = append(rows, channelRow{
			ID: c.ID, Name: c.Name, Readiness: c.Status(), Detail: c.Readiness.GetDetail(),
			MaxLength: c.MaxLength, Default: c.ID == dir.DefaultChannel,
		})
	}
	return map[string]any{"channels": rows}, nil
}

func listAgents(_ context.Context, r *Runner, _ *bus.Lease, _ []byte) (any, error) {
	dir := r.Directory.Current()
	type row struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Delegate    bool   `json:"can_be_given_tasks"`
	}
	rows := []row{}
	for _, a := range dir.Agents {
		if dir.Enabled(a.ID) {
			up := a.State == contract.StateActive || directory.Transient(a.State)
			rows = append(rows, row{a.ID, a.Name, a.Description, up})
		}
	}
	return map[string]any{"agents": rows}, nil
}
