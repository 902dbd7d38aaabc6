package memory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func options() sdktest.Options {
	return sdktest.Options{Manifest: "../../manifests/memory.yaml", Timezone: "Europe/Berlin",
		Channels: []*kernelv1.Channel{
			{Id: "telegram_channel", Name: "Telegram", Readiness: &extensionv1.Readiness{State: sdk.Ready}},
			{Id: "slack_channel", Name: "Slack", Readiness: &extensionv1.Readiness{State: sdk.Unconfigured}},
		},
	}
}

// bench is the extension with a clock that the test moves.
type bench struct {
	*sdktest.Kernel
	t *testing.T

	mu    sync.Mutex
	now   time.Time
	calls int
}

// setup starts the extension on a Sunday at noon.
func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, berlin(t))}
	b.Kernel = sdktest.Start(t, build(b.clock), options())
	return b
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// restart kills the extension and starts the next one on the same store.
func (b *bench) restart() {
	b.Lose()
	b.Restart(build(b.clock))
}

// Call is a call of the owner, who has all scopes, unless the options name an agent.
func (b *bench) Call(tool string, f any, options ...sdktest.CallOption) *extensionv1.CallResult {
	b.t.Helper()
	return b.Kernel.Call(tool, f, append([]sdktest.CallOption{as("")}, options...)...)
}

// Ask is Call without a row of the history.
func (b *bench) Ask(tool string, f any, options ...sdktest.CallOption) *extensionv1.CallResult {
	b.t.Helper()
	return b.Kernel.Ask(tool, f, append([]sdktest.CallOption{as("")}, options...)...)
}

// MustCall is Call for a call that succeeds.
func (b *bench) MustCall(tool string, f any, options ...sdktest.CallOption) string {
	b.t.Helper()
	return b.Kernel.MustCall(tool, f, append([]sdktest.CallOption{as("")}, options...)...)
}

// TryCall is Call with the error of the request.
func (b *bench) TryCall(
	ctx context.Context, tool string, f any, options ...sdktest.CallOption,
) (*extensionv1.CallResult, error) {
	b.t.Helper()
	return b.Kernel.TryCall(ctx, tool, f, append([]sdktest.CallOption{as("")}, options...)...)
}

type fields = map[string]any

// as sets the agent of a call and its scopes.
func as(agent string, scopes ...string) sdktest.CallOption {
	return func(r *extensionv1.CallRequest) { r.Agent, r.Memory = agent, scopes }
}

func decode[T any](t *testing.T, content string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(content), &v); err != nil {
		t.Fatalf("%v in %s", err, content)
	}
	return v
}

func (b *bench) remember(f fields, options ...sdktest.CallOption) remembered {
	b.t.Helper()
	return decode[remembered](b.t, b.MustCall("remember", f, options...))
}

func encode(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// list returns the texts in the result of a listing tool.
func (b *bench) list(tool string, f fields, options ...sdktest.CallOption) []string {
	b.t.Helper()
	texts := []string{}
	for _, v := range decode[listing](b.t, b.MustCall(tool, f, options...)).Memories {
		texts = append(texts, v.Text)
	}
	return texts
}

func (b *bench) wantList(tool string, f fields, want ...string) {
	b.t.Helper()
	if got := b.list(tool, f); !slices.Equal(got, want) && len(got)+len(want) > 0 {
		b.t.Errorf("%s %v: got %q, want %q", tool, f, got, want)
	}
}

// refuses expects a failed call whose content has the words.
func (b *bench) refuses(tool string, f fields, words string, options ...sdktest.CallOption) {
	b.t.Helper()
	before := b.Commits()
	r := b.Call(tool, f, options...)
	if !r.GetIsError() || !strings.Contains(r.GetContent(), words) {
		b.t.Errorf("%s %v: got %q, want a refusal with %q", tool, f, r.GetContent(), words)
	}
	if b.Commits() != before {
		b.t.Errorf("%s %v was refused and has effects", tool, f)
	}
}
