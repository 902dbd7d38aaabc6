package heartbeat

import (
	"context"
	"encoding/json"

	"github.com/switchboard-run/switchboard/sdk"
)

// tools are for the command line: no wildcard grants them.
func (h *heartbeat) tools() []sdk.Tool {
	return []sdk.Tool{{
		Name:        "figures",
		Description: "What the heartbeat has done since the beginning, how often it looks, and its newest escalations, each with the dedupe key of the event that it published.",
		Schema:      json.RawMessage(`{"type": "object", "additionalProperties": false, "properties": {}}`),
		ReadOnly:    true,
		Private:     true,
		Call:        h.report,
	}}
}

// report is the result of figures.
type report struct {
	figures
	Every  string   `json:"every,omitempty"` // the interval, as it is configured
	Recent []recent `json:"recent"`          // the newest last
}

func (h *heartbeat) report(ctx context.Context, _ sdk.ToolCall) (sdk.ToolResult, error) {
	s, err := h.load(ctx)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(report{figures: s.Figures, Every: h.every, Recent: append([]recent{}, s.Recent...)})
}
