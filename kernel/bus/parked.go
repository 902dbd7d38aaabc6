package bus

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// The store has the pattern of a subscription, and not what else narrows it. One
// that was not declared since the start, because its extension is disabled,
// collects all that matches. When it is declared again, the deliveries that it excludes
// are settled before anything is handed out.

// dropUnwanted settles deliveries that the narrowed subscription excludes.
func (t *Tx) dropUnwanted(k journal.Subscription, wanted Subscription) error {
	s := t.bus.table.Load().byID[k.ID]
	if s == nil || !s.spec.Load().undeclared || !wanted.Own && len(wanted.Commands) == 0 {
		return nil
	}
	ds, err := t.Deliveries(journal.DeliveryFilter{Subscription: k.ID, States: unsettled, Limit: math.MaxInt32})
	if err != nil {
		return err
	}
	for _, d := range ds {
		e, err := t.Event(d.Seq)
		if err != nil {
			return err
		}
		if e == nil || wanted.owns(k.Extension, e) {
			continue
		}
		if err := t.Settle(d, journal.Done, "not one of its own"); err != nil {
			return err
		}
	}
	return nil
}

// owns reports whether the subscription has an event whose topic matches.
func (s *Subscription) owns(extension string, e *busv1.Event) bool {
	if command, is := strings.CutPrefix(e.GetTopic(), contract.TopicCommand); is && len(s.Commands) > 0 {
		return slices.Contains(s.Commands, command)
	}
	if !s.Own || e.GetTopic() != contract.TopicAgentOutput {
		return true
	}
	var out contract.AgentOutput
	return json.Unmarshal(e.GetPayload(), &out) == nil && out.Extension == extension
}
