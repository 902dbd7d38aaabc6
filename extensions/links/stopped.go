package links

import (
	"context"
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// stopped ends the exchanges that were begun in a conversation in which a person stopped
// everything, and those begun on them, in one commit. A turn that runs on one of them goes
// on, but says nothing to the other side.
func (l *links) stopped(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	var at contract.ConversationStopped
	if err := e.Decode(&at); err != nil {
		return nil, err
	}
	var open []*exchange
	if err := l.k.Scan(ctx, openPrefix, func(v sdk.Value) error {
		var id string
		if err := v.Decode(&id); err != nil {
			return err
		}
		x, err := l.load(ctx, id)
		if err == nil && x != nil && !x.Over {
			open = append(open, x)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("list the open exchanges: %w", err)
	}
	var effects sdk.Effects
	var with []string
	for _, x := range open {
		first, err := l.firstOf(ctx, x)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(at.Sessions, first.From.Session) || first.Opened.After(e.CreatedAt) {
			continue
		}
		if x.ID == first.ID {
			with = append(with, x.Peer)
		}
		ended, err := l.end(ctx, x, ending{outcome: contract.OutcomeCancelled, noTurn: true, discard: x.ID != first.ID})
		if err != nil {
			return nil, err
		}
		effects = append(effects, ended...)
	}
	if n := len(with); n > 0 {
		slices.Sort(with)
		effects = append(effects, sdk.Publish(contract.TopicUserNotify, contract.UserNotify{
			Text: words.Count(at.Language, "Ended %d conversation with another agent: %s.",
				"Ended %d conversations with other agents: %s.", n, n, words.List(at.Language, with, maxSaid)),
			ReplyTo: at.Conversation,
		}))
	}
	return effects, nil
}

// maxSaid is how many agents a person is shown.
const maxSaid = 20

// firstOf returns the exchange that led to x, which may be x: the one that was begun in
// a conversation, or whose origin is no longer known.
func (l *links) firstOf(ctx context.Context, x *exchange) (*exchange, error) {
	for range maxAncestors {
		if x.From.Thread == "" {
			break
		}
		parent, err := l.load(ctx, x.From.Thread)
		if err != nil || parent == nil {
			return x, err
		}
		x = parent
	}
	return x, nil
}
