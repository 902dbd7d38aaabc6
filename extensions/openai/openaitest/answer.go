package openaitest

import "github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"

// Answer is a scripted answer.
type Answer = modelapitest.Answer

// Call is one call of the model.
type Call = modelapitest.Call

// Fault is a fault in an answer.
type Fault = modelapitest.Fault

// The faults.
const (
	NoFault    = modelapitest.NoFault
	Stall      = modelapitest.Stall
	Cut        = modelapitest.Cut
	EndEarly   = modelapitest.EndEarly
	Rubbish    = modelapitest.Rubbish
	ErrorChunk = modelapitest.ErrorChunk
)

// Say returns an answer with a text.
func Say(text string) Answer { return modelapitest.Say(text) }

// CallTool returns an answer with one call; args is marshaled unless it is a
// string.
func CallTool(name string, args any) Answer { return modelapitest.CallTool(name, args) }

// NewCall returns a call without an id: the server chooses one.
func NewCall(name string, args any) Call { return modelapitest.NewCall(name, args) }

// Fail returns an error of the API.
func Fail(status int, message string) Answer { return modelapitest.Fail(status, message) }

// RateLimited returns a 429; retryAfter is the value of the header, "" for none.
func RateLimited(retryAfter string) Answer { return modelapitest.RateLimited(retryAfter) }

// Break returns a text with a fault after its first chunks.
func Break(f Fault, text string, afterChunks int) Answer {
	return modelapitest.Break(f, text, afterChunks)
}

func finishOf(a Answer) string {
	switch {
	case a.Finish != "":
		return a.Finish
	case a.Cut:
		return "length"
	case a.Refuse:
		return "content_filter"
	case len(a.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func usageOf(a Answer, req Request) usage {
	u := usage{Prompt: a.Input, Completion: a.Output, Cost: a.Cost}
	if u.Prompt == 0 {
		u.Prompt = len(req.Raw)/4 + 1
	}
	if u.Completion == 0 {
		n := len(a.Text)
		for _, c := range a.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
		u.Completion = n/4 + 1
	}
	if a.Cached > 0 {
		u.Details = &details{a.Cached}
	}
	u.Total = u.Prompt + u.Completion
	return u
}

type usage struct {
	Prompt     int      `json:"prompt_tokens"`
	Completion int      `json:"completion_tokens"`
	Total      int      `json:"total_tokens"`
	Details    *details `json:"prompt_tokens_details,omitempty"`
	Cost       any      `json:"cost,omitempty"` // of OpenRouter
}

type details struct {
	Cached int `json:"cached_tokens"`
}
