package bus

import (
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Asks counts a completion that is asked for under the lease, and returns how
// many that makes for the turn as it is: a turn that interrupts it, or goes on
// after that, is counted anew.
func (l *Lease) Asks() int64 { return l.asked.Add(1) }

// countAnew notes that an effect changes which turn the lane is at.
func (t *Tx) countAnew(e *busv1.Effect) {
	if l := t.Lease; l != nil && (e.GetSteer() != nil || e.GetPublish().GetTopic() == contract.TopicAgentOutput) {
		t.then = append(t.then, func() { l.asked.Store(0) })
	}
}
