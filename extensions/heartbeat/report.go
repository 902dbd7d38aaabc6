package heartbeat

import (
	"context"
	"encoding/json"

	"github.com/switchboard-run/switchboard/sdk"
)

// tools are for the command line. They are private, so no wildcard grants them.
func (h *heartbeat) tools() []sdk.Tool {
	return []sdk.Tool{{
		Name: "figures",
		Description: "The counts of all heartbeats, their interval, and its newest escalations, " +
			"each with the dedupe key of its event.",
		Schema:   json.RawMessage(`{"type": "object", "additionalProperties": false, "properties": {}}`),
		ReadOnly: true,
		Private:  true,
		Call:     h.report,
	}, h.switchTool()}
}

// report is the result of figures.
type report struct {
	figures
	Every  string   `json:"every,omitempty"` // the configured interval
	Recent []recent `json:"recent"`          // the newest last
}

func (h *heartbeat) report(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	s, err := h.load(ctx, stateKey)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out := report{figures: s.Figures, Every: h.every, Recent: append([]recent{}, s.Recent...)}
	if err := h.addOthers(ctx, &out); err != nil {
		return sdk.ToolResult{}, err
	}
	if !c.Principal.SeesOwners() { // they are about the owner's items
		out.Recent, out.Problem = []recent{}, ""
	}
	return sdk.JSON(out)
}
