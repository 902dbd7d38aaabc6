package router

import (
	"encoding/json"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Again sends a dead text that named no recipient, because its channel had none
// then, to the present one. It returns how many deliveries of the event that settles;
// with 0 the event is resubmitted unchanged.
func (r *MessageRouter) Again(tx *bus.Tx, e *busv1.Event) (int, error) {
	id, isSend := strings.CutPrefix(e.GetTopic(), contract.TopicChannelSend)
	channel := r.directory.Current().Channel(id)
	var m contract.ChannelSend
	if !isSend || channel == nil || json.Unmarshal(e.GetPayload(), &m) != nil || m.Conversation != "" || m.Owner != "" {
		return 0, nil //nolint:nilerr // other events are resubmitted unchanged
	}
	owner, err := ownerOn(tx, channel)
	if err != nil || owner.UserID == "" {
		return 0, err
	}
	dead, err := tx.Deliveries(journal.DeliveryFilter{Seq: e.GetSeq(), States: []journal.DeliveryState{journal.Dead}})
	if err != nil || len(dead) == 0 {
		return 0, err
	}
	for _, d := range dead {
		d.State, d.SettledAt, d.Reason = journal.Done, tx.Now, "sent again, to the present owner"
		if err := tx.UpdateDelivery(d); err != nil {
			return 0, err
		}
	}
	to, err := r.recipient(tx, channel)
	if err != nil {
		return 0, err
	}
	return len(dead), tx.Following(e, func() error { return r.send(tx, to, m) })
}
