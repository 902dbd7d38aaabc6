package anthropic

import (
	"encoding/json"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// streamed is one event of a stream: the fields of all types together.
type streamed struct {
	Type    string `json:"type"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"` // message_start
	Index int `json:"index"` // of a block
	Block struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"content_block"` // content_block_start
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Partial    string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"` // content_block_delta, message_delta
	Usage *usage `json:"usage"` // message_delta: of the whole message so far
}

// usage counts tokens. The three counts of input are disjoint.
type usage struct {
	Input   int64 `json:"input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
	Cached  int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}

// finishes are the stop reasons of the API that are not modelapi.FinishStop.
var finishes = map[string]string{
	"max_tokens": modelapi.FinishLength, "model_context_window_exceeded": modelapi.FinishLength,
	"refusal": modelapi.FinishRefusal,
}

// event adds one event of a stream to the answer. Unknown events and blocks are skipped,
// as the API demands.
func event(a *modelapi.Answer, _ string, data []byte) (done bool, err error) {
	var e streamed
	if err := json.Unmarshal(data, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "message_start":
		used(a, e.Message.Usage)
	case "content_block_start":
		return false, begin(a, &e)
	case "content_block_delta":
		switch e.Delta.Type {
		case "text_delta":
			return false, a.Say(e.Delta.Text)
		case "input_json_delta":
			return false, a.Call(e.Index, "", "", e.Delta.Partial)
		}
	case "message_delta":
		if e.Usage != nil {
			used(a, *e.Usage)
		}
		if e.Delta.StopReason != "" {
			reason, differs := finishes[e.Delta.StopReason]
			if !differs {
				reason = modelapi.FinishStop
			}
			a.Finish(reason)
		}
	case "error":
		return false, modelapi.ReportedError(data)
	case "message_stop":
		return true, nil
	}
	return false, nil
}

// begin begins a block.
func begin(a *modelapi.Answer, e *streamed) error {
	switch e.Block.Type {
	case "text":
		return a.Say(e.Block.Text)
	case "tool_use":
		arguments := string(e.Block.Input)
		if arguments == "{}" || arguments == "null" { // they follow in pieces
			arguments = ""
		}
		return a.Call(e.Index, e.Block.ID, e.Block.Name, arguments)
	}
	return nil
}

// used records counts. Later ones replace those of the beginning that they have.
func used(a *modelapi.Answer, u usage) {
	total := &sdk.Usage{
		InputTokens: u.Input + u.Written + u.Cached, CachedTokens: u.Cached, OutputTokens: u.Output,
	}
	if before := a.Usage(); before != nil && total.GetInputTokens() == 0 {
		total.InputTokens, total.CachedTokens = before.GetInputTokens(), before.GetCachedTokens()
	}
	a.Used(total)
}
