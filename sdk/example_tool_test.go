package sdk_test

import (
	"context"
	"encoding/json"

	"github.com/switchboard-run/switchboard/sdk"
)

// A tool that remembers facts. Its effects are committed together with its result, so
// the model never gets a result that a crash then undoes.
func Example_tool() {
	remember := sdk.Tool{
		Name:        "remember",
		Description: "Stores a fact under a name. Use it when the user asks to remember something.",
		Schema: json.RawMessage(`{"type": "object", "required": ["name", "fact"], "additionalProperties": false,
			"properties": {"name": {"type": "string", "minLength": 1}, "fact": {"type": "string"}}}`),
		Idempotent: true,
		Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
			var fact struct{ Name, Fact string }
			if err := json.Unmarshal(c.Arguments, &fact); err != nil {
				return sdk.ToolResult{}, err
			}
			return sdk.JSON(map[string]string{"remembered": fact.Name}, sdk.Put("fact/"+fact.Name, fact.Fact))
		},
	}
	sdk.Serve(sdk.Extension{ID: "facts", Tools: []sdk.Tool{remember}})
}
