package openaitest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

// reply is the state of sending one answer.
type reply struct {
	server  *Server
	w       http.ResponseWriter
	r       *http.Request
	request Request
	answer  Answer
	number  int
	ending  func() // called before the end of the answer is sent
	out     []byte // chunks that are not flushed yet
	sent    int
}

// created is the time of every answer.
const created = 1_700_000_000

func (p *reply) run() {
	if p.answer.Echo {
		p.answer.Text = p.request.Last("user")
	}
	a := p.answer
	if !p.wait(a.Gate, a.Delay) {
		return
	}
	switch {
	case a.Status != 0 && a.Status != http.StatusOK:
		p.ending()
		e := &apiError{status: a.Status, Message: a.Message, Type: errorType(a.Status), header: http.Header{}}
		if a.Code != "" {
			e.Code = a.Code
		}
		if a.RetryAfter != "" {
			e.header.Set("Retry-After", a.RetryAfter)
		}
		e.write(p.w)
	case a.ContentType != "" || a.Body != "":
		p.ending()
		p.w.Header().Set("Content-Type", cmp.Or(a.ContentType, "text/event-stream"))
		_, _ = p.w.Write([]byte(a.Body))
	case p.request.Stream:
		p.stream()
	default:
		p.whole()
	}
}

func errorType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "requests"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return invalidRequest
}

// wait waits for the gate and the duration. It reports false if the request or
// the server ended.
func (p *reply) wait(gate <-chan struct{}, d time.Duration) bool {
	return modelapitest.Wait(p.r.Context(), p.server.closed, gate, d)
}

type chunk struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Index   int      `json:"index"`
	Delta   *message `json:"delta,omitempty"`
	Message *message `json:"message,omitempty"`
	Finish  *string  `json:"finish_reason"`
}

type message struct {
	Role    string    `json:"role,omitempty"`
	Content *string   `json:"content,omitempty"`
	Calls   []callOut `json:"tool_calls,omitempty"`
}

type callOut struct {
	Index    *int        `json:"index,omitempty"`
	ID       string      `json:"id,omitempty"`
	Type     string      `json:"type,omitempty"`
	Function functionOut `json:"function"`
}

type functionOut struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

func (p *reply) id() string { return "chatcmpl-" + strconv.Itoa(p.number) }

func (p *reply) callID(i int) string {
	if id := p.answer.Calls[i].ID; id != "" {
		return id
	}
	return "call_" + strconv.Itoa(p.number) + "_" + strconv.Itoa(i)
}

// stream sends the answer in chunks. Without a pause it sends them in one write,
// for benchmarks.
func (p *reply) stream() {
	p.w.Header().Set("Content-Type", "text/event-stream")
	empty := ""
	if !p.delta(message{Role: "assistant", Content: &empty}) {
		return
	}
	for i, piece := range modelapitest.Split(p.answer.Text, p.answer.Pieces) {
		if p.answer.Fault != NoFault && i > 0 && i == p.answer.AfterPieces {
			p.fault()
			return
		}
		if p.answer.Steps != nil {
			p.flush()
			if !p.wait(p.answer.Steps, 0) {
				return
			}
		}
		if !p.delta(message{Content: &piece}) {
			return
		}
	}
	for i, c := range p.answer.Calls {
		if !p.delta(message{Calls: []callOut{{Index: &i, ID: p.callID(i), Type: "function",
			Function: functionOut{Name: c.Name}}}}) {
			return
		}
		for _, piece := range modelapitest.Split(c.Arguments, p.answer.Pieces) {
			if !p.delta(message{Calls: []callOut{{Index: &i, Function: functionOut{Arguments: piece}}}}) {
				return
			}
		}
	}
	p.ending()
	finish := finishOf(p.answer)
	if !p.chunk([]choice{{Delta: &message{}, Finish: &finish}}, nil) {
		return
	}
	if o := p.request.StreamOptions; o != nil && o.IncludeUsage {
		u := usageOf(p.answer, p.request)
		if !p.chunk([]choice{}, &u) {
			return
		}
	}
	p.out = append(p.out, "data: [DONE]\n\n"...)
	p.flush()
}

func (p *reply) delta(m message) bool { return p.chunk([]choice{{Delta: &m}}, nil) }

// chunk queues one chunk, or causes the fault. It reports whether the stream
// continues.
func (p *reply) chunk(choices []choice, u *usage) bool {
	if p.answer.Fault != NoFault && p.answer.AfterPieces == 0 && p.sent == p.answer.AfterChunks {
		p.fault()
		return false
	}
	b, err := json.Marshal(chunk{ID: p.id(), Object: "chat.completion.chunk", Created: created, Model: p.request.Model,
		Choices: choices, Usage: u})
	if err != nil {
		panic(err)
	}
	p.out = append(p.out, "data: "...)
	p.out = append(append(p.out, b...), "\n\n"...)
	p.sent++
	if p.answer.Pause <= 0 {
		return true
	}
	p.flush()
	return p.wait(nil, p.answer.Pause)
}

func (p *reply) flush() {
	_, _ = p.w.Write(p.out)
	p.out = p.out[:0]
	_ = http.NewResponseController(p.w).Flush()
}

func (p *reply) fault() {
	if p.answer.Fault != Stall {
		p.ending()
	}
	switch p.answer.Fault {
	case Stall:
		p.flush()
		select {
		case <-p.r.Context().Done():
		case <-p.server.closed:
		}
	case Cut:
		if p.sent > 0 {
			p.flush() // otherwise the connection breaks before the header
		}
		panic(http.ErrAbortHandler)
	case EndEarly:
		p.flush()
	case Rubbish:
		p.out = append(p.out, "data: {\"id\": \"chatcmpl-1\", \"choices\": [{]\n\n"...)
		p.flush()
	case ErrorChunk:
		p.out = append(p.out,
			`data: {"error": {"message": "The server had an error while processing your request", "type":`+
				` "server_error", "param": null, "code": null}}`+"\n\n"...)
		p.flush()
	case NoFault:
	}
}

// whole sends the answer without a stream.
func (p *reply) whole() {
	if p.answer.Fault == Stall {
		p.fault()
		return
	}
	p.ending()
	switch p.answer.Fault {
	case Cut:
		panic(http.ErrAbortHandler)
	case EndEarly, Rubbish:
		p.w.Header().Set("Content-Type", "application/json")
		_, _ = p.w.Write([]byte(`{"id": "chatcmpl-1", "choices": [{`))
		return
	case ErrorChunk:
		(&apiError{status: http.StatusInternalServerError, Type: "server_error",
			Message: "The server had an error while processing your request"}).write(p.w)
		return
	case Stall, NoFault:
	}
	m := message{Role: "assistant"}
	if p.answer.Text != "" || len(p.answer.Calls) == 0 {
		m.Content = &p.answer.Text
	}
	for i, c := range p.answer.Calls {
		m.Calls = append(m.Calls, callOut{ID: p.callID(i), Type: "function",
			Function: functionOut{Name: c.Name, Arguments: c.Arguments}})
	}
	finish := finishOf(p.answer)
	u := usageOf(p.answer, p.request)
	p.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(p.w).Encode(chunk{ID: p.id(), Object: "chat.completion", Created: created,
		Model:   p.request.Model,
		Choices: []choice{{Message: &m, Finish: &finish}}, Usage: &u})
}
