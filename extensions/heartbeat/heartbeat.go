// Package heartbeat is the extension that checks every few minutes whether the
// assistant should bring up an open item.
//
// A beat is an event of the schedule that the manifest declares. It checks for the owner,
// and publishes an event for each other person who has turned their heartbeat on. A check
// is about one person: what is theirs, in their time zone, on their channel; what is the
// household's is the owner's. It first makes checks that need no model: the active hours,
// whether a person is active, the
// open items of memory, and whether any of them is new. Only then it asks the
// scout model, once. An escalation of the scout becomes a task of the default
// agent.
//
// Promises:
//   - No model is called outside the active hours, soon after a person wrote or
//     while one waits, without open items, or about items that the scout has seen
//     within the cool-down and that have not changed or become due since.
//   - Nothing of one person is in the check of another, nor of a person who was removed.
//   - An escalation, its record and the ack of the beat are one commit: after a
//     crash, it happens once or not at all.
//   - An escalated item is not escalated again within the cool-down, even with
//     another id, unless it becomes due.
//   - An invalid answer is a noop, and a noop sends no message.
//   - Every beat is counted: skipped beats by reason, model calls, tokens and
//     results.
//
// Beats are handled one at a time. The heartbeat does not know whether the agent
// delivers an escalation: the tool figures returns the keys of the published
// events, and the kernel knows their results.
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

// ID is the id of the extension.
const ID = "heartbeat"

// TopicBeat is the topic of the manifest's schedule.
const TopicBeat = ID + ".beat"

// New returns the extension.
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

// config is the configuration of the extension. Empty fields have defaults.
type config struct {
	Every       string  `json:"every"`        // used by the schedule; here only reported
	ActiveHours *string `json:"active_hours"` // such as 08:00-22:00; empty means always
	Quiet       string  `json:"quiet"`        // pause after a person wrote
	Cooldown    string  `json:"cooldown"`     // pause between escalations of an item
}

const (
	defaultHours    = "08:00-22:00"
	defaultQuiet    = 10 * time.Minute
	defaultCooldown = 6 * time.Hour
)

// kernel is the part of sdk.Kernel that the heartbeat uses.
type kernel interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Presence(ctx context.Context) (sdk.Presence, error)
	Ask(ctx context.Context, tool string, arguments any) (sdk.ToolResult, error)
	Channels(ctx context.Context) ([]*kernelv1.Channel, error)
	Complete(ctx context.Context, model, purpose string, messages []*extensionv1.Message,
		emit func(*sdk.Delta) error) error
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
		return fmt.Errorf("read config of heartbeat: active_hours: %w", err)
	}
	if h.quiet, err = duration(c.Quiet, defaultQuiet); err != nil {
		return fmt.Errorf("read config of heartbeat: quiet: %w", err)
	}
	if h.cooldown, err = duration(c.Cooldown, defaultCooldown); err != nil {
		return fmt.Errorf("read config of heartbeat: cooldown: %w", err)
	}
	return nil
}

func duration(text string, fallback time.Duration) (time.Duration, error) {
	if text == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("parse duration %q: use a value such as 10m or 6h", text)
	}
	return d, nil
}
