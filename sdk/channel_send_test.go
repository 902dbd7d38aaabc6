package sdk_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// board is a channel that records its calls.
type board struct {
	mu      sync.Mutex
	sent    []sdk.Message
	drafts  []sdk.Draft
	removed []sdk.Draft
	fail    error
}

func (b *board) Send(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, m)
	return sdk.Receipt{ProviderID: "p1", Conversation: m.Conversation, Effects: sdk.Effects{sdk.Put("sent", m.ID)}}, nil
}

// drafter is a board with drafts that end with its process.
type drafter struct{ *board }

func (b drafter) Draft(_ context.Context, d sdk.Draft) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drafts = append(b.drafts, d)
}

// keeper is a board with drafts that stay.
type keeper struct{ drafter }

func (b keeper) RemoveDraft(_ context.Context, d sdk.Draft) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removed = append(b.removed, d)
	return b.fail
}

func TestSendPassesTheUnmarkedTextAndCommitsTheReceipt(t *testing.T) {
	t.Parallel()
	b := &board{}
	k := sdktest.Start(t, sdk.Extension{ID: "board", Channel: b}, sdktest.Options{})
	m := contract.ChannelSend{Text: "hello", Conversation: "anna", DraftID: "d1"}
	o := k.Send(m).MustAck(t)
	var id string
	if o.Receipt().GetProviderId() != "p1" || k.Stored("sent", &id) == 0 || id != o.Event.GetId() {
		t.Errorf("receipt %v, stored %q", o.Receipt(), id)
	}
	m.Text, m.Unmarked = contract.RepeatMark+"hello", "hello"
	k.Hand(contract.TopicChannelSend+"board", m, func(d *busv1.Delivery) { d.Uncertain, d.Attempt = true, 2 }).MustAck(t)
	for i, want := range []string{"hello", contract.RepeatMark + "hello"} {
		if got := b.sent[i]; got.Text != want || got.Unmarked != "hello" || got.DraftID != "d1" || got.Repeat != (i == 1) {
			t.Errorf("sent %+v", got)
		}
	}
}

func TestDraftIsRemoved(t *testing.T) {
	t.Parallel()
	remove := contract.ChannelSend{Conversation: "anna", Thread: "7", DraftID: "d1"}
	want := []sdk.Draft{{Conversation: "anna", Thread: "7", ID: "d1", Done: true}}
	for name, tc := range map[string]struct {
		channel         func(*board) sdk.Channel
		drafts, removed []sdk.Draft
	}{
		"no drafts":        {channel: func(b *board) sdk.Channel { return b }},
		"drafts":           {channel: func(b *board) sdk.Channel { return drafter{b} }, drafts: want},
		"drafts that stay": {channel: func(b *board) sdk.Channel { return keeper{drafter{b}} }, removed: want},
	} {
		b := &board{}
		k := sdktest.Start(t, sdk.Extension{ID: "board", Channel: tc.channel(b)}, sdktest.Options{})
		k.Send(remove).MustAck(t)
		if len(b.sent) != 0 || !slices.Equal(b.drafts, tc.drafts) || !slices.Equal(b.removed, tc.removed) {
			t.Errorf("%s: sent %+v, drafts %+v, removed %+v", name, b.sent, b.drafts, b.removed)
		}
	}
	b := &board{fail: sdk.Retry(time.Second, errors.New("not now"))}
	k := sdktest.Start(t, sdk.Extension{ID: "board", Channel: keeper{drafter{b}}}, sdktest.Options{})
	k.Send(remove).MustBe(t, busv1.Outcome_KIND_RETRY)
}

func TestDraftNamesTheMessageBeingAnswered(t *testing.T) {
	t.Parallel()
	b := &board{}
	k := sdktest.Start(t, sdk.Extension{ID: "board", Channel: drafter{b}}, sdktest.Options{})
	update := &extensionv1.DraftUpdate{Conversation: "anna", DraftId: "d1", ReplyTo: "m1", Text: "he"}
	if err := k.Draft(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	if want := []sdk.Draft{{Conversation: "anna", ID: "d1", ReplyTo: "m1", Text: "he"}}; !slices.Equal(b.drafts, want) {
		t.Errorf("drafts %+v", b.drafts)
	}
}
