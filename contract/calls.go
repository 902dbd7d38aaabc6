package contract

import "encoding/json"

// Core tools for the tools of an agent that its requests to a model do not
// describe: one finds them, the other calls them.
const (
	ToolFind = "core/find_tools"
	ToolUse  = "core/use_tool"
)

// ToolShow brings back an image of the conversation: a run loop shows the one that the
// argument reference names in the next request of the turn.
const ToolShow = "documents/show_attachment"

// The model that writes down recordings is a name of the configuration, as "default" is.
// Every agent may ask it for a recording of the session whose turn it runs.
const (
	ModelTranscribe   = "transcribe"
	PurposeTranscribe = "transcribe"
)

// UsedTool returns the call inside a call of ToolUse with these arguments; ok is
// false if they name no tool. The kernel stores and checks the inner call instead.
func UsedTool(arguments []byte) (name string, inner []byte, ok bool) {
	var args struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(arguments, &args) != nil || args.Name == "" || args.Name == ToolUse {
		return "", nil, false
	}
	inner = args.Arguments
	var text string
	if json.Unmarshal(inner, &text) == nil && text != "" { // some models quote them
		inner = []byte(text)
	}
	if len(inner) == 0 {
		inner = []byte("{}")
	}
	return args.Name, inner, true
}
