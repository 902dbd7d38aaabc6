package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// CoreExtension is the prefix of the kernel's own tools.
const CoreExtension = "core"

// receiptWait is how long a send waits for the platform's word.
const receiptWait = 10 * time.Second

// coreTool is a tool of the kernel: it stores its result itself.
type coreTool struct {
	description *extensionv1.Tool
	run         func(ctx context.Context, r *Runner, l *bus.Lease, call journal.Call) (*extensionv1.CallResult, error)
}

func (r *Runner) coreTools() map[string]coreTool { return core }

var core = map[string]coreTool{
	"core/list_channels": {
		description: &extensionv1.Tool{
			Name: "list_channels", ReadOnly: true,
			Description: "List the channels by which the user can be reached: id, name, whether it is ready. Use the id with send_to_channel.",
			Schema:      []byte(`{"type":"object","properties":{},"additionalProperties":false}`),
		},
		run: answer(listChannels),
	},
	"core/list_agents": {
		description: &extensionv1.Tool{
			Name: "list_agents", ReadOnly: true,
			Description: "List the agents: id, name, what each is for.",
			Schema:      []byte(`{"type":"object","properties":{},"additionalProperties":false}`),
		},
		run: answer(listAgents),
	},
	"core/send_to_channel": {
		description: &extensionv1.Tool{
			Name: "send_to_channel",
			Description: "Send a message to the user on a channel that they named (\"send it to Telegram\"). " +
				"Do not use it to answer: the final text of a turn is the answer, and reaches the user where they wrote.",
			Schema: []byte(`{"type":"object","properties":{"channel_id":{"type":"string","description":"id from list_channels"},` +
				`"text":{"type":"string","minLength":1,"description":"the message, Markdown"}},"required":["channel_id","text"],"additionalProperties":false}`),
		},
		run: sendToChannel,
	},
	"core/send_to_all_channels": {
		description: &extensionv1.Tool{
			Name:        "send_to_all_channels",
			Description: "Send a message to the user on every channel that is set up. Only when the user asks for that.",
			Schema:      []byte(`{"type":"object","properties":{"text":{"type":"string","minLength":1}},"required":["text"],"additionalProperties":false}`),
		},
		run: sendToAll,
	},
}

// Core returns the kernel's own tools for the directory.
func Core() []*extensionv1.Tool {
	tools := make([]*extensionv1.Tool, 0, len(core))
	for _, c := range core {
		tools = append(tools, c.description)
	}
	return tools
}

func answer(read func(*directory.Snapshot) any) func(context.Context, *Runner, *bus.Lease, journal.Call) (*extensionv1.CallResult, error) {
	return func(_ context.Context, r *Runner, l *bus.Lease, call journal.Call) (*extensionv1.CallResult, error) {
		b, err := json.Marshal(read(r.Directory.Current()))
		if err != nil {
			return nil, err
		}
		return r.finish(l, call, &extensionv1.CallResult{Content: string(b)})
	}
}

type channelRow struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Readiness string `json:"readiness"`
	Detail    string `json:"detail,omitempty"`
	MaxLength int    `json:"max_length,omitempty"`
	Default   bool   `json:"default,omitempty"`
}

func listChannels(now *directory.Snapshot) any {
	rows := []channelRow{}
	for i := range now.Channels {
		c := &now.Channels[i]
		rows = append(rows, channelRow{
			ID: c.ID, Name: c.Name, Readiness: c.Status(), Detail: c.Readiness.GetDetail(), MaxLength: c.MaxLength, Default: c.ID == now.DefaultChannel,
		})
	}
	return map[string]any{"channels": rows}
}

func listAgents(now *directory.Snapshot) any {
	type row struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
	}
	rows := []row{}
	for _, a := range now.Agents {
		if now.Enabled(a.ID) {
			rows = append(rows, row{a.ID, a.Name, a.Description})
		}
	}
	return map[string]any{"agents": rows}
}

// sent is the answer of the sending tools.
type sent struct {
	Status  string `json:"status"` // delivered, queued, failed
	Channel string `json:"channel_id"`
	Detail  string `json:"detail,omitempty"`
}

func sendToChannel(ctx context.Context, r *Runner, l *bus.Lease, call journal.Call) (*extensionv1.CallResult, error) {
	var args struct {
		Channel string `json:"channel_id"`
		Text    string `json:"text"`
	}
	if err := json.Unmarshal(arguments(call.Arguments), &args); err != nil {
		return nil, err
	}
	return r.sendTo(ctx, l, call, []string{args.Channel}, args.Text)
}

func sendToAll(ctx context.Context, r *Runner, l *bus.Lease, call journal.Call) (*extensionv1.CallResult, error) {
	var args struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(arguments(call.Arguments), &args); err != nil {
		return nil, err
	}
	now := r.Directory.Current()
	var channels []string
	for i := range now.Channels {
		if now.Channels[i].Configured() {
			channels = append(channels, now.Channels[i].ID)
		}
	}
	return r.sendTo(ctx, l, call, channels, args.Text)
}

// sendTo publishes the sends together with a provisional result, and then waits
// only to refine it.
func (r *Runner) sendTo(ctx context.Context, l *bus.Lease, call journal.Call, channels []string, text string) (*extensionv1.CallResult, error) {
	if call.State == journal.CallRunning { // sent before a restart
		return r.finish(l, call, &extensionv1.CallResult{Content: call.Result})
	}
	now := r.Directory.Current()
	var refused []string
	for _, id := range channels {
		if why := unreachable(now, id); why != "" {
			refused = append(refused, why)
		}
	}
	if len(refused) > 0 || len(channels) == 0 {
		return r.finish(l, call, &extensionv1.CallResult{IsError: true, Content: strings.Join(append(refused, "Nothing was sent."), " ")})
	}
	var in contract.AgentInput
	if err := json.Unmarshal(l.Event.GetPayload(), &in); err != nil {
		return nil, err
	}
	answers := make([]sent, len(channels))
	for i, id := range channels {
		answers[i] = sent{Status: "queued", Channel: id, Detail: "it will be delivered as soon as the channel can"}
	}
	provisional := encode(answers)
	settled := make(chan settlement)
	over := make(chan struct{})
	defer close(over)
	parts := make([]int, len(channels))
	err := r.Bus.DoAs(bus.Kernel, l, func(tx *bus.Tx) error {
		for i, id := range channels {
			seqs, err := r.Router.SendTo(tx, id, text, in.ReplyTo, journal.SessionID(call.Session), journal.CallID(call.ID))
			if err != nil {
				return err
			}
			parts[i] = len(seqs)
			for _, seq := range seqs {
				tx.After(func() {
					r.Bus.OnSettled(seq, func(d journal.Delivery) {
						select {
						case settled <- settlement{i, d}:
						case <-over:
						}
					})
				})
			}
		}
		if err := r.Sessions.MarkSend(tx, call.ID); err != nil {
			return err
		}
		return r.Sessions.Start(tx, call.ID, provisional)
	})
	if err != nil {
		if errors.Is(err, contract.ErrStale) {
			return nil, err
		}
		return r.finish(l, call, &extensionv1.CallResult{IsError: true, Content: "Nothing was sent: " + err.Error()})
	}
	ready := 0
	for _, id := range channels {
		if c := now.Channel(id); c.Ready() {
			ready++
		}
	}
	if ready > 0 {
		r.awaitReceipts(ctx, answers, settled, parts)
	}
	failed := false
	for i := range answers {
		if c := now.Channel(answers[i].Channel); answers[i].Status == "queued" && !c.Ready() {
			answers[i].Detail = fmt.Sprintf("%s is %s now; it is delivered when that changes", c.Name, c.Status())
		}
		failed = failed || answers[i].Status == "failed"
	}
	return r.finish(l, call, &extensionv1.CallResult{Content: encode(answers), IsError: failed})
}

type settlement struct {
	channel  int
	delivery journal.Delivery
}

// awaitReceipts refines the answers with what the platforms say in time: a text
// is delivered when all of its parts are.
func (r *Runner) awaitReceipts(ctx context.Context, answers []sent, settled <-chan settlement, parts []int) {
	ctx, cancel := context.WithTimeout(ctx, receiptWait)
	defer cancel()
	for waiting := len(parts); waiting > 0; {
		select {
		case s := <-settled:
			a := &answers[s.channel]
			parts[s.channel]--
			switch {
			case s.delivery.State == journal.Dead:
				a.Status, a.Detail = "failed", s.delivery.Reason
			case parts[s.channel] == 0 && a.Status == "queued":
				a.Status, a.Detail = "delivered", ""
			}
			if parts[s.channel] == 0 {
				waiting--
			}
		case <-ctx.Done():
			return
		}
	}
}

// unreachable says why a channel cannot be sent to at all; a channel that is
// down takes sends, and delivers them later.
func unreachable(now *directory.Snapshot, id string) string {
	c := now.Channel(id)
	if c == nil {
		ids := make([]string, len(now.Channels))
		for i := range now.Channels {
			ids[i] = now.Channels[i].ID
		}
		return fmt.Sprintf("There is no channel %q. There are: %s.", id, strings.Join(ids, ", "))
	}
	if !c.Configured() {
		return fmt.Sprintf("%s (%s) is not set up yet: %s.", c.Name, c.ID, strings.TrimSuffix(c.Readiness.GetDetail(), "."))
	}
	return ""
}

func encode(answers []sent) string {
	var v any = map[string]any{"sent": answers}
	if len(answers) == 1 {
		v = answers[0]
	}
	b, _ := json.Marshal(v) // strings only
	return string(b)
}
