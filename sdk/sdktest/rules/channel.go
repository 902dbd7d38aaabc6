package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

var channelRules = []rule{
	{
		name: "receipt", check: (*run).receipt,
		expected: "the ack of a message has the effect receipt, with the conversation that it went to",
		hint:     "add Receipt{provider_id, conversation} to the outcome: replies and edits find the message by it",
	},
	{
		name: "drafts", check: (*run).drafts,
		expected: "Drafts/Draft takes updates and returns at the end; a message without text removes the draft",
		hint:     "serve switchboard.extension.v1.Drafts, ignore updates that come late, and ack a removal",
	},
}

func (r *run) channel(ctx context.Context) (*session, error) {
	if r.Spec.Provides.Channel == nil {
		return nil, skipped("it is no channel")
	}
	return r.active(ctx)
}

func (r *run) receipt(ctx context.Context) (string, error) {
	s, err := r.channel(ctx)
	if err != nil {
		return "", err
	}
	name := contract.TopicChannelSend + r.Spec.ID
	outcomes, err := s.deliver(ctx, r.delivery(name, r.sample(name)))
	if err != nil {
		return "", err
	}
	o := outcomes[0]
	if o.GetKind() != busv1.Outcome_KIND_ACK {
		return "", skipped("it could not send: " + kindName(o))
	}
	for _, e := range o.GetEffects() {
		if got := e.GetReceipt(); got != nil {
			if got.GetConversation() == "" {
				return "", errors.New("a receipt without a conversation")
			}
			return fmt.Sprintf("message %q in conversation %q", got.GetProviderId(), got.GetConversation()), nil
		}
	}
	return "", errors.New("an ack without a receipt")
}

// drafts ends a draft with nothing to say, twice, and one that there never was.
func (r *run) drafts(ctx context.Context) (string, error) {
	if c := r.Spec.Provides.Channel; c == nil || !c.Drafts {
		return "", skipped("it shows no drafts")
	}
	s, err := r.channel(ctx)
	if err != nil {
		return "", err
	}
	show := func(updates ...*extensionv1.DraftUpdate) error {
		ctx, cancel := r.within(ctx)
		defer cancel()
		stream, err := extensionv1.NewDraftsClient(s.conn).Draft(ctx)
		if err != nil {
			return s.why(err)
		}
		for _, u := range updates {
			if stream.Send(u) != nil {
				break // CloseAndRecv says why
			}
		}
		if _, err := stream.CloseAndRecv(); err != nil {
			return fmt.Errorf("the stream of drafts: %w", s.why(err))
		}
		return nil
	}
	update := func(text string, done bool) *extensionv1.DraftUpdate {
		return &extensionv1.DraftUpdate{Conversation: conversation, DraftId: "d1", Text: text, Done: done}
	}
	if err := show(update("", false), update("Well", false), update("Well, this", true)); err != nil {
		return "", err
	}
	name := contract.TopicChannelSend + r.Spec.ID
	for _, id := range []string{"d1", "d1", "d2"} {
		payload, err := json.Marshal(contract.ChannelSend{Kind: contract.SendReply, Conversation: conversation, DraftID: id})
		if err != nil {
			return "", err
		}
		outcomes, err := s.deliver(ctx, r.delivery(name, payload))
		if err != nil {
			return "", err
		}
		switch outcomes[0].GetKind() {
		case busv1.Outcome_KIND_ACK:
		case busv1.Outcome_KIND_RETRY:
			return "", skipped("it could not remove a draft: " + kindName(outcomes[0]))
		default:
			return "", fmt.Errorf("the removal of the draft %s: %s", id, kindName(outcomes[0]))
		}
	}
	if err := show(update("Too late", false)); err != nil {
		return "", err
	}
	return "shown, removed, and a late update ignored", nil
}
