// Package heartbeat is the extension that looks, every few minutes, whether
// something that remains to be done should be brought up by itself.
//
// A beat is an event of the schedule that the manifest declares. First come
// checks that cost nothing: the hours, whether a person is there, what memory
// holds open, and whether any of that is news. Only then is the scout model
// asked, once, and what it wants to be said becomes a task of the default agent.
//
// Promises:
//   - No model is asked outside the active hours, soon after a person wrote or
//     while one waits, without open items, or about items that it was asked about
//     within the cool-down and that have not changed or become due since.
//   - An escalation, what is remembered of it and the acknowledgement of the beat
//     are one commit: killed at any instant, it happens once or not at all.
//   - An item that was escalated is not escalated again within the cool-down,
//     under whatever id it is remembered, unless it becomes due meanwhile.
//   - An answer that cannot be read is a noop, and a noop reaches nobody.
//   - Every beat is counted: what was skipped and why, what was asked, what it
//     took, what came of it.
//
// Beats are handled one at a time. What is not promised: that the agent delivers
// what was escalated. The tool figures tells which events were published; what
// became of them is the kernel's to tell.
package heartbeat

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the extension's id.
const ID = "heartbeat"

// TopicBeat is what the schedule of the manifest publishes.
const TopicBeat = ID + ".beat"

// New is the extension.
func New() sdk.Extension {
	h := &heartbeat{}
	return sdk.Extension{
		ID: ID,
		Start: func(_ context.Context, k *sdk.Kernel) error {
			var c config
			if err := k.Config(&c); err != nil {
				return err
			}
			return h.start(k, k.Log(), time.Now, k.Location(), c)
		},
		Handle: h.handle,
		Tools:  h.tools(),
	}
}

// config is the configuration; what is empty has its default. The interval is
// the schedule's: here it is only told.
type config struct {
	Every       string  `json:"every"`
	ActiveHours *string `json:"active_hours"` // 08:00-22:00; empty: always
	Quiet       string  `json:"quiet"`        // no look so soon after a person wrote
	Cooldown    string  `json:"cooldown"`     // no second escalation within
}

const (
	defaultHours    = "08:00-22:00"
	defaultQuiet    = 10 * time.Minute
	defaultCooldown = 6 * time.Hour
)

// kernel is what the heartbeat needs of the kernel.
type kernel interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Presence(ctx context.Context) (sdk.Presence, error)
	Ask(ctx context.Context, tool string, arguments any) (sdk.ToolResult, error)
	Channels(ctx context.Context) ([]*kernelv1.Channel, error)
	Complete(ctx context.Context, model, purpose string, messages []*extensionv1.Message, emit func(*sdk.Delta) error) error
}

var _ kernel = (*sdk.Kernel)(nil)

type heartbeat struct {
	k        kernel
	log      hclog.Logger
	now      func() time.Time
	zone     *time.Location
	every    string
	hours    hours
	quiet    time.Duration
	cooldown time.Duration
}

func (h *heartbeat) start(k kernel, log hclog.Logger, now func() time.Time, zone *time.Location, c config) (err error) {
	if zone.String() == "Local" {
		zone = time.UTC
	}
	h.k, h.log, h.now, h.zone, h.every = k, log, now, zone, c.Every
	active := defaultHours
	if c.ActiveHours != nil {
		active = *c.ActiveHours
	}
	if h.hours, err = parseHours(active); err != nil {
		return fmt.Errorf("configuration of heartbeat: active_hours: %w", err)
	}
	if h.quiet, err = duration(c.Quiet, defaultQuiet); err != nil {
		return fmt.Errorf("configuration of heartbeat: quiet: %w", err)
	}
	if h.cooldown, err = duration(c.Cooldown, defaultCooldown); err != nil {
		return fmt.Errorf("configuration of heartbeat: cooldown: %w", err)
	}
	return nil
}

func duration(text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no duration: write one such as 10m or 6h", text)
	}
	return d, nil
}
