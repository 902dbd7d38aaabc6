package openai

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// OpenRouter reports what it charges. What is not an amount is ignored.
func TestReportedCost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cost any
		want int64
	}{
		"dollars": {0.0123, 12_300}, "none": {nil, 0}, "nothing": {0.0, 0}, "a text": {"0.5", 0}, "negative": {-1.0, 0},
		"huge": {1e200, 0}, "an object": {map[string]any{"total_cost": 1}, 0},
	} {
		f := openaitest.New(t)
		f.NoKey()
		f.Always(openaitest.Answer{Text: "ok", Input: 7, Cost: tt.cost})
		server, err := modelapi.NewServer(Kind(), "router", modelapi.Config{BaseURL: f.BaseURL()}, "")
		if err != nil {
			t.Fatal(err)
		}
		var u *sdk.Usage
		err = server.Complete(t.Context(), &sdk.CompleteRequest{Model: "m", Messages: []*extensionv1.Message{
			{Role: "user", Content: "hi"},
		}}, func(d *sdk.Delta) error {
			if d.GetUsage() != nil {
				u = d.GetUsage()
			}
			return nil
		})
		server.Close()
		if err != nil || u.GetInputTokens() != 7 || u.GetCostMicros() != tt.want ||
			u.GetCurrency() != strings.Repeat("USD", int(min(tt.want, 1))) {
			t.Errorf("%s: %v, %v, want %d", name, u, err, tt.want)
		}
	}
}
