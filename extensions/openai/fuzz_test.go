package openai

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/sdk"
)

// answering is a server that answers every request with the same bytes.
type answering struct{ body []byte }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// Every stream becomes either one finished answer or a failure with a text.
func FuzzStream(f *testing.F) {
	chunk := func(delta string) string {
		return `data: {"id":"x","choices":[{"index":0,"delta":` + delta + `}]}` + "\n\n"
	}
	const end = `data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":-2}}` + "\n\ndata: [DONE]\n\n"
	for _, seed := range []string{
		"", "data: [DONE]\n\n", chunk(`{"content":"hello"}`) + end, chunk(`{"content":"\ud83d\u0000"}`) + end,
		chunk("{\"content\":\"\xff\"}") + end,
		chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`) +
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`) + end,
		chunk(`{"tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"g"}},{"index":-9}]}`) +
			end,
		chunk(`{"function_call":{"name":"f","arguments":"{}"}}`) + end, chunk(`{"refusal":"no"}`) + end,
		`data: {"error":{"message":"oops"}}` + "\n\n", ": comment\r\nevent: x\r\ndata:{}\r\n\r\n",
		strings.Repeat("\n", 400), `data: {"choices":[{"index":1}]}` + "\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p := connect(t, "http://fuzz.test/v1")
		p.Through(answering{body})
		finished := 0
		err := p.Complete(t.Context(), ask("hi"), func(d *sdk.Delta) error {
			if finished > 0 {
				t.Errorf("a delta after the end: %v", d)
			}
			if d.GetFinish() != "" {
				finished++
			}
			if c := d.GetCall(); c != nil && len(c.GetArguments()) == 0 {
				t.Errorf("a call without arguments: %v", c)
			}
			return nil
		})
		if err == nil && finished != 1 || err != nil && (finished != 0 || err.Error() == "" ||
			strings.Contains(err.Error(), testKey)) {
			t.Errorf("it ended %d times, and with %v", finished, err)
		}
	})
}
