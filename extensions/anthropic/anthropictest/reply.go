package anthropictest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

// object is a JSON object.
type object = map[string]any

// reply is the state of sending one answer.
type reply struct {
	server  *Server
	w       http.ResponseWriter
	r       *http.Request
	request Request
	answer  Answer
	sent    int // events
}

func (p *reply) run() {
	a := &p.answer
	if a.Echo {
		a.Text = p.request.Last()
	}
	if !p.wait(a.Gate, a.Delay) {
		return
	}
	switch {
	case a.Status != 0 && a.Status != http.StatusOK:
		message := a.Message
		if a.Code != "" {
			message += " (" + a.Code + ")"
		}
		(&apiError{a.Status, kindOf(a.Status), message, a.RetryAfter}).write(p.w)
	case a.ContentType != "" || a.Body != "":
		p.w.Header().Set("Content-Type", cmp.Or(a.ContentType, "text/event-stream"))
		_, _ = p.w.Write([]byte(a.Body))
	default:
		p.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		p.stream()
	}
}

// wait waits for the gate and the duration. It reports false if the request or the server
// ended.
func (p *reply) wait(gate <-chan struct{}, d time.Duration) bool {
	return modelapitest.Wait(p.r.Context(), p.server.closed, gate, d)
}

// stream sends the events in their order: message_start, the blocks one after the other,
// message_delta, message_stop; a ping in between.
func (p *reply) stream() {
	input, output := cmp.Or(p.answer.Input, len(p.request.Raw)/4+1), cmp.Or(p.answer.Output, len(p.answer.Text)/4+1)
	began := p.event("message_start", object{"message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": p.request.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": max(0, input-p.answer.Cached), "cache_creation_input_tokens": 0,
			"cache_read_input_tokens": p.answer.Cached, "output_tokens": 1},
	}})
	if !began || !p.blocks() {
		return
	}
	ended := p.event("message_delta", object{
		"delta": object{"stop_reason": p.stopReason(), "stop_sequence": nil}, "usage": object{"output_tokens": output},
	})
	if ended {
		p.event("message_stop", object{})
	}
}

func (p *reply) stopReason() string {
	switch {
	case p.answer.Finish != "":
		return p.answer.Finish
	case p.answer.Cut:
		return "max_tokens"
	case p.answer.Refuse:
		return "refusal"
	case len(p.answer.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// blocks sends the blocks of the message. It reports whether the stream continues.
func (p *reply) blocks() bool {
	index := 0
	if p.answer.Text != "" {
		if !p.event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}}) ||
			!p.event("ping", object{}) {
			return false
		}
		for i, piece := range modelapitest.Split(p.answer.Text, p.answer.Pieces) {
			if p.answer.Fault != modelapitest.NoFault && i > 0 && i == p.answer.AfterPieces {
				p.fault()
				return false
			}
			if p.answer.Steps != nil && !p.wait(p.answer.Steps, 0) ||
				!p.event("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": piece}}) {
				return false
			}
		}
		if !p.event("content_block_stop", object{"index": 0}) {
			return false
		}
		index++
	}
	for i, c := range p.answer.Calls {
		id := cmp.Or(c.ID, fmt.Sprintf("toolu_%d", i))
		if !p.event("content_block_start", object{"index": index, "content_block": object{
			"type": "tool_use", "id": id, "name": c.Name, "input": object{}}}) {
			return false
		}
		for _, piece := range append([]string{""}, modelapitest.Split(c.Arguments, p.answer.Pieces)...) {
			if !p.event("content_block_delta", object{
				"index": index, "delta": object{"type": "input_json_delta", "partial_json": piece},
			}) {
				return false
			}
		}
		if !p.event("content_block_stop", object{"index": index}) {
			return false
		}
		index++
	}
	return true
}

// event sends one event, or causes the fault. It reports whether the stream continues.
func (p *reply) event(name string, fields object) bool {
	if p.answer.Fault != modelapitest.NoFault && p.answer.AfterPieces == 0 && p.sent == p.answer.AfterChunks {
		p.fault()
		return false
	}
	fields["type"] = name
	b, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(p.w, "event: %s\ndata: %s\n\n", name, b)
	_ = http.NewResponseController(p.w).Flush()
	p.sent++
	return p.answer.Pause <= 0 || p.wait(nil, p.answer.Pause)
}

func (p *reply) fault() {
	switch p.answer.Fault {
	case modelapitest.Stall:
		select {
		case <-p.r.Context().Done():
		case <-p.server.closed:
		}
	case modelapitest.Cut:
		panic(http.ErrAbortHandler)
	case modelapitest.Rubbish:
		fmt.Fprint(p.w, "event: content_block_delta\ndata: {\"type\": [{]\n\n")
	case modelapitest.ErrorChunk:
		e := apiError{kind: cmp.Or(p.answer.Code, "api_error"), message: "The server had an error"}
		b, _ := json.Marshal(e.body()) //nolint:errchkjson // strings
		fmt.Fprintf(p.w, "event: error\ndata: %s\n\n", b)
	case modelapitest.EndEarly, modelapitest.NoFault:
	}
}
