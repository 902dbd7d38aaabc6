package sdk

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Event is one fact as the kernel stored it.
type Event struct {
	Seq           int64 // total order of acceptance
	ID            string
	Topic         string
	Key           string
	Source        string // the publishing extension, set by the kernel
	Payload       json.RawMessage
	CorrelationID string
	CausationID   string
	Hop           int // events since the last turn of a model
	CreatedAt     time.Time
}

// Decode decodes the payload into v. Its error drops the event, which can never be
// handled.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.Payload, v); err != nil {
		return Drop(fmt.Sprintf("decode payload of %s: %v", e.Topic, err))
	}
	return nil
}

// Delivery is an event and this attempt to deliver it.
type Delivery struct {
	Event
	Attempt   int  // from 1
	Uncertain bool // an earlier attempt may have had its effect outside the kernel
	Deadline  time.Time
	Token     string             // the lane token; Kernel takes it from ctx
	Turn      *busv1.TurnContext // of an agent's input
}
