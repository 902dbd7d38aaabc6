package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// played is a kernel whose clock, memory, people and model the test controls.
type played struct {
	t    *testing.T
	now  time.Time
	zone *time.Location
	h    *heartbeat

	presence    sdk.Presence
	items       string // memory's answer; empty means unavailable
	preferences string
	says        string // the scout
	fails       error  // the scout's error after its answer
	asked       []string
	kv          sdk.Value
	rows        map[string]sdk.Value          // of other keys
	people      map[string]contract.Recipient // by account
	theirs      map[string]string             // memory's answer for an account; others have p.items
	checks      []sdk.Event                   // that were published
	memory      []map[string]any              // what memory was asked for
	tasks       []contract.AgentTask
	seq         int64
}

var _ kernel = (*played)(nil)

// noon is a Friday in winter.
var noon = time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC) // 12:00 in Berlin

func play(t *testing.T, c config) *played {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, now: noon, zone: zone, rows: map[string]sdk.Value{}, says: `{"action":"noop","reason":""}`, items: `{"memories":[]}`,
		preferences: `{"memories":[]}`}
	p.starts(c)
	return p
}

// starts starts or restarts the extension with the stored state.
func (p *played) starts(c config) {
	p.t.Helper()
	p.h = &heartbeat{}
	if err := p.h.start(p, hclog.NewNullLogger(), func() time.Time { return p.now }, p.zone, c); err != nil {
		p.t.Fatal(err)
	}
}

// open sets the open items of memory, each as "id text @channel !due" with
// optional channel and due.
func (p *played) open(items ...string) {
	type row struct {
		ID      string `json:"id"`
		Text    string `json:"text"`
		Channel string `json:"channel_id,omitempty"`
		Due     string `json:"due,omitempty"`
	}
	rows := []row{}
	for _, i := range items {
		i, due, _ := strings.Cut(i, " !")
		i, channel, _ := strings.Cut(i, " @")
		id, text, _ := strings.Cut(i, " ")
		rows = append(rows, row{id, text, channel, due})
	}
	b, _ := json.Marshal(map[string]any{"memories": rows})
	p.items = string(b)
}

func (p *played) Get(_ context.Context, key string) (sdk.Value, error) {
	if key != stateKey {
		return p.rows[key], nil
	}
	return p.kv, nil
}

func (p *played) Scan(_ context.Context, prefix string, each func(sdk.Value) error) error {
	for _, key := range slices.Sorted(maps.Keys(p.rows)) {
		if strings.HasPrefix(key, prefix) {
			if err := each(p.rows[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *played) Presence(context.Context) (sdk.Presence, error) { return p.presence, nil }
func (p *played) Channels(context.Context) ([]*kernelv1.Channel, error) {
	return []*kernelv1.Channel{{Id: "cli_channel", Default: true}, {Id: "telegram_channel"}}, nil
}

func (p *played) Ask(_ context.Context, tool string, arguments any) (sdk.ToolResult, error) {
	if asked, ok := arguments.(map[string]string); ok && tool == contract.ToolFindPerson {
		to, known := p.people[strings.TrimPrefix(asked["person"], "@")]
		if !known {
			return sdk.ToolResult{}, fmt.Errorf("%w: there is no such person", contract.ErrNotFound)
		}
		return sdk.JSON(to)
	}
	asked := arguments.(map[string]any)
	p.memory = append(p.memory, asked)
	content := map[any]string{"open": p.items, "preference": p.preferences}[asked["kind"]]
	if of, own := p.theirs[asked["accounts"].([]string)[0]]; own && asked["kind"] == "open" {
		content = of
	}
	if content == "" || tool != openItems {
		return sdk.ToolResult{}, fmt.Errorf("%w: no tool %q now", contract.ErrNotFound, tool)
	}
	return sdk.ToolResult{Content: content}, nil
}

func (p *played) Complete(ctx context.Context, model, purpose string, messages []*extensionv1.Message,
	emit func(*sdk.Delta) error) error {
	if model != "scout" || purpose != "triage" {
		p.t.Errorf("asked the model %q for %q", model, purpose)
	}
	p.asked = append(p.asked, messages[len(messages)-1].GetContent())
	half := len(p.says) / 2
	for _, d := range []*sdk.Delta{{Text: p.says[:half]}, {Text: p.says[half:]}} {
		if d.GetText() == "" {
			continue
		}
		if err := emit(d); err != nil {
			return err
		}
	}
	if err := errors.Join(p.fails, ctx.Err()); err != nil {
		return err
	}
	return emit(&sdk.Delta{Usage: &sdk.Usage{InputTokens: 100, OutputTokens: 10}})
}

// handles handles a beat and returns its effects.
func (p *played) handles(e sdk.Event) []*busv1.Effect {
	p.t.Helper()
	effects, err := p.h.handle(p.t.Context(), e)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.protos(effects)
}

func (p *played) protos(effects sdk.Effects) (out []*busv1.Effect) {
	p.t.Helper()
	for _, e := range effects {
		pb, err := e.Proto()
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, pb)
	}
	return out
}

func (p *played) commits(effects []*busv1.Effect) {
	p.t.Helper()
	for _, e := range effects {
		if put := e.GetPut(); put != nil && put.GetKey() != stateKey {
			v := p.rows[put.GetKey()]
			if put.Version != nil && put.GetVersion() != v.Version {
				p.t.Fatalf("a write of %s at version %d, stored is %d", put.GetKey(), put.GetVersion(), v.Version)
			}
			p.rows[put.GetKey()] = sdk.Value{Key: put.GetKey(), Value: put.GetValue(), Version: v.Version + 1}
			continue
		}
		if remove := e.GetDelete(); remove != nil {
			delete(p.rows, remove.GetKey())
		}
		if publish := e.GetPublish(); publish.GetTopic() == topicCheck {
			c := p.event()
			c.Topic, c.Payload = topicCheck, publish.GetPayload()
			p.checks = append(p.checks, c)
			continue
		}
		if put := e.GetPut(); put != nil {
			if put.GetVersion() != p.kv.Version {
				p.t.Fatalf("a write at version %d, stored is %d", put.GetVersion(), p.kv.Version)
			}
			p.kv = sdk.Value{Key: put.GetKey(), Value: put.GetValue(), Version: p.kv.Version + 1}
		}
		if publish := e.GetPublish(); publish != nil {
			var task contract.AgentTask
			if err := json.Unmarshal(publish.GetPayload(), &task); err != nil ||
				publish.GetTopic() != contract.TopicAgentTask {
				p.t.Fatalf("published %v: %v", publish, err)
			}
			p.tasks = append(p.tasks, task)
		}
	}
}

func (p *played) event() sdk.Event {
	p.seq++
	return sdk.Event{Seq: p.seq, ID: fmt.Sprintf("e%d", p.seq), Topic: TopicBeat, CreatedAt: p.now}
}

// beats handles and commits one beat.
func (p *played) beats() {
	p.t.Helper()
	p.commits(p.handles(p.event()))
}

// passes advances the time with a beat every ten minutes.
func (p *played) passes(d time.Duration) {
	p.t.Helper()
	for end := p.now.Add(d); p.now.Before(end); {
		p.now = p.now.Add(10 * time.Minute)
		p.beats()
	}
}

func (p *played) figures() figures {
	p.t.Helper()
	var s state
	if err := json.Unmarshal(p.kv.Value, &s); err != nil {
		p.t.Fatal(err)
	}
	return s.Figures
}

// expect checks the number of calls of the scout and of escalations.
func (p *played) expect(asked, escalated int) {
	p.t.Helper()
	if len(p.asked) != asked || len(p.tasks) != escalated {
		p.t.Errorf("the scout was asked %d times and %d tasks were made, not %d and %d; %+v", len(p.asked),
			len(p.tasks), asked, escalated, p.figures())
	}
}

// skipped checks that the last beat was skipped, and why.
func (p *played) skipped(reason string) {
	p.t.Helper()
	if got := p.figures().LastResult; got != "skipped: "+reason {
		p.t.Errorf("the last beat: %s, not skipped: %s", got, reason)
	}
}

// keys describes effects.
func keys(effects []*busv1.Effect) (out []string) {
	for _, e := range effects {
		switch {
		case e.GetPut() != nil:
			out = append(out, fmt.Sprintf("put %s@%d", e.GetPut().GetKey(), e.GetPut().GetVersion()))
		case e.GetPublish() != nil:
			out = append(out, "publish "+e.GetPublish().GetDedupeKey())
		}
	}
	return out
}
