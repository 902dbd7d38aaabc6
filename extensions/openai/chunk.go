package openai

import (
	"encoding/json"
	"math"

	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// finishes are the finish reasons of the API that differ from the contract's.
var finishes = map[api.FinishReason]string{
	api.FinishReasonContentFilter: modelapi.FinishRefusal, api.FinishReasonLength: modelapi.FinishLength,
}

// event adds one chunk of a stream to the answer.
func event(a *modelapi.Answer, _ string, data []byte) (done bool, err error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	var chunk struct {
		api.ChatCompletionStreamResponse
		Error json.RawMessage `json:"error"`
		Usage *struct {
			api.Usage
			Cost json.RawMessage `json:"cost"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(data, &chunk); err != nil {
		return false, err
	}
	if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
		return false, modelapi.ReportedError(data)
	}
	if u := chunk.Usage; u != nil {
		used := &sdk.Usage{InputTokens: int64(u.PromptTokens), OutputTokens: int64(u.CompletionTokens)}
		if d := u.PromptTokensDetails; d != nil {
			used.CachedTokens = int64(d.CachedTokens)
		}
		charged(used, u.Cost)
		a.Used(used)
	}
	for i := range chunk.Choices {
		if c := &chunk.Choices[i]; c.Index == 0 { // only one choice was requested
			if err := choice(a, c); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// charged adds the cost that OpenRouter reports with each answer: a number of US dollars.
func charged(used *sdk.Usage, cost json.RawMessage) {
	const most = 1e6
	var dollars float64
	if len(cost) > 0 && json.Unmarshal(cost, &dollars) == nil && dollars > 0 && dollars < most {
		used.CostMicros, used.Currency = int64(math.Round(dollars*1e6)), "USD"
	}
}

func choice(a *modelapi.Answer, c *api.ChatCompletionStreamChoice) error {
	if c.Delta.Refusal != "" {
		a.Refuse()
	}
	if err := a.Say(c.Delta.Content + c.Delta.Refusal); err != nil {
		return err
	}
	for _, t := range c.Delta.ToolCalls {
		index := -1
		if t.Index != nil {
			index = *t.Index
		}
		if err := a.Call(index, t.ID, t.Function.Name, t.Function.Arguments); err != nil {
			return err
		}
	}
	if f := c.Delta.FunctionCall; f != nil {
		if err := a.Call(0, "", f.Name, f.Arguments); err != nil {
			return err
		}
	}
	switch reason, differs := finishes[c.FinishReason]; {
	case differs:
		a.Finish(reason)
	case c.FinishReason != "" && c.FinishReason != api.FinishReasonNull:
		a.Finish(modelapi.FinishStop)
	}
	return nil
}
