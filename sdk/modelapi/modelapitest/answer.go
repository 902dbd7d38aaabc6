// Package modelapitest tests extensions of package modelapi: scripted answers that fake
// servers give in the words of their API, and one suite for all kinds of API.
package modelapitest

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Answer is the server's answer to one request. The zero value is an empty answer
// of the model.
type Answer struct {
	// Text and Calls are the model's text and tool calls.
	Text  string
	Calls []Call
	// Finish overrides the finish reason, in the words of the server's API.
	Finish string
	// Cut, Refuse and Echo end the answer at its limit of length, have the model refuse,
	// and answer with the last message of the user.
	Cut, Refuse, Echo bool
	// Pieces is the number of pieces of the text, and of the arguments of each
	// call, in a stream; 0 means 3.
	Pieces int
	// Input and Output are the token counts reported; 0 means a rough estimate.
	// Cached is the number of input tokens reported as cached.
	Input, Output, Cached int
	// Cost, if it is not nil, is reported as the cost, where the API has one.
	Cost any

	// Delay is the wait before the answer, Pause that between two chunks.
	Delay, Pause time.Duration
	// Gate delays the answer until it is closed.
	Gate <-chan struct{}
	// Steps delays each piece of the text of a stream until it receives a value,
	// or until it is closed.
	Steps <-chan struct{}

	// Status, if it is not 0 or 200, makes this an error with Message.
	Status     int
	Message    string
	Code       string
	RetryAfter string

	// Fault happens after AfterChunks chunks of a stream.
	Fault       Fault
	AfterChunks int
	// AfterPieces, if it is not 0, counts pieces of the text instead of chunks.
	AfterPieces int
	// ContentType and Body replace the answer.
	ContentType string
	Body        string
}

// Call is one call of the model. Arguments are sent unchanged, valid JSON or not.
type Call struct{ ID, Name, Arguments string }

// Fault is a fault in an answer.
type Fault int

// The faults.
const (
	NoFault    Fault = iota
	Stall            // the server stops sending
	Cut              // the connection breaks
	EndEarly         // the stream ends properly, in the middle of the answer
	Rubbish          // a chunk that is not JSON
	ErrorChunk       // a chunk that reports an error
)

// Say returns an answer with a text.
func Say(text string) Answer { return Answer{Text: text} }

// CallTool returns an answer with one call; args is marshaled unless it is a
// string.
func CallTool(name string, args any) Answer {
	return Answer{Calls: []Call{NewCall(name, args)}}
}

// NewCall returns a call without an id: the server chooses one.
func NewCall(name string, args any) Call {
	if s, ok := args.(string); ok {
		return Call{Name: name, Arguments: s}
	}
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return Call{Name: name, Arguments: string(b)}
}

// Fail returns an error of the API.
func Fail(status int, message string) Answer { return Answer{Status: status, Message: message} }

// RateLimited returns a 429; retryAfter is the value of the header, "" for none.
func RateLimited(retryAfter string) Answer {
	return Answer{Status: http.StatusTooManyRequests, Message: "Rate limit reached for requests",
		Code: "rate_limit_exceeded", RetryAfter: retryAfter}
}

// Break returns a text with a fault after its first chunks.
func Break(f Fault, text string, afterChunks int) Answer {
	return Answer{Text: text, Fault: f, AfterChunks: afterChunks}
}

// Broken returns a text with a fault after its first pieces.
func Broken(f Fault, text string, afterPieces int) Answer {
	return Answer{Text: text, Fault: f, AfterPieces: afterPieces}
}

// Split cuts text into at most n pieces, never inside a character.
func Split(text string, n int) []string {
	if text == "" {
		return nil
	}
	if n == 0 {
		n = 3
	}
	runes := []rune(text)
	size := max(1, (len(runes)+n-1)/n)
	var out []string
	for len(runes) > 0 {
		k := min(size, len(runes))
		out = append(out, string(runes[:k]))
		runes = runes[k:]
	}
	return out
}

// Wait waits for the gate, if it is not nil, and then for the duration. It reports false
// if ctx, that of the request, or the server ended.
func Wait(ctx context.Context, closed, gate <-chan struct{}, d time.Duration) bool {
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return false
		case <-closed:
			return false
		}
	}
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-closed:
	}
	return false
}
