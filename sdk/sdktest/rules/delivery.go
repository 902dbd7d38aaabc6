package rules

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// conversation is the address of all messages that the rules have a channel send.
const conversation = "verify"

// delivery makes a first attempt of a new event.
func (r *run) delivery(topic string, payload []byte) *busv1.Delivery {
	r.tokens++
	id := fmt.Sprintf("e%d", r.tokens)
	d := &busv1.Delivery{
		Token: fmt.Sprintf("lane%d", r.tokens), Subscription: topic, Attempt: 1,
		Event: &busv1.Event{
			Seq: int64(r.tokens), Id: id, CorrelationId: id, CausationId: id, Topic: topic, Source: contract.KernelSource,
			Payload: payload, CreatedAtUs: time.Now().UnixMicro(),
		},
	}
	if topic == contract.TopicAgentInput+r.Spec.ID {
		d.Turn = &busv1.TurnContext{Session: sampleSession, Timezone: "UTC"}
	}
	return d
}

// again is a repetition of a delivery whose first attempt was lost.
func (r *run) again(d *busv1.Delivery) *busv1.Delivery {
	second := r.delivery(d.GetEvent().GetTopic(), d.GetEvent().GetPayload())
	second.Event, second.Attempt, second.Uncertain = d.GetEvent(), d.GetAttempt()+1, true
	return second
}

// sampleSession is the session of inputs and calls.
const sampleSession = "s1"

// unknownTopic is one that no extension has subscribed to.
const unknownTopic = "nobody.knows_this"

// sample is a payload of a topic: of the kernel's own topics a right one, of others an
// empty object.
func (r *run) sample(topic string) []byte {
	var v any = struct{}{}
	switch topic {
	case contract.TopicChannelSend + r.Spec.ID:
		v = contract.ChannelSend{
			Kind: contract.SendReply, Text: "A test of `switchboard extensions verify`.", Conversation: conversation,
			Part: 1, Parts: 1,
		}
	case contract.TopicAgentInput + r.Spec.ID:
		v = contract.AgentInput{Session: sampleSession, Kind: contract.InputUser, Text: "Hello"}
	case contract.TopicUserMessage:
		v = contract.UserMessage{Text: "Hello", UserID: "verify", ConversationID: conversation}
	case contract.TopicToolResult + r.Spec.ID:
		v = contract.ToolResult{ID: "verify", Tool: "verify/nothing", Content: "{}"}
	}
	payload, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types are the contract's
	}
	return payload
}
