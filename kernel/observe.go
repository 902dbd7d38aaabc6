package kernel

import (
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// observer connects what the supervisor sees to the bus and the directory.
type observer struct{ k *Kernel }

var _ supervisor.Observer = observer{}

// Active implements supervisor.Observer.
func (o observer) Active(i *supervisor.Instance) {
	k, said := o.k, offer{i.Description, entries(i.ID, i.Description.GetTools()), i.Generation}
	k.mu.Lock()
	if k.described[i.ID].generation != i.Generation { // else it has reported other tools since
		k.described[i.ID] = said
	}
	a := k.actors[i.ID]
	k.mu.Unlock()
	if a == nil || a.Generation != i.Generation {
		k.log.Error("an extension became active that was never initialised", "extension", i.ID)
		return
	}
	k.ledger.Forget(i.ID)
	k.host.Open(i.Context(), a, i.Conn, i.Description, k.refresh)
}

// Gone implements supervisor.Observer.
func (o observer) Gone(id string, generation int64, reason string) {
	k := o.k
	k.mu.Lock()
	onPurpose := k.status[id].State == supervisor.Stopping
	k.mu.Unlock()
	k.host.Gone(id, generation)
	k.bus.Gone(id, generation, fmt.Sprintf("its extension ended while it ran: %s", reason), onPurpose)
	k.refresh()
}

// Changed implements supervisor.Observer.
func (o observer) Changed(s supervisor.Status) {
	k := o.k
	k.mu.Lock()
	previous := k.status[s.ID]
	k.status[s.ID] = s
	k.mu.Unlock()
	if s.State == supervisor.Stopping {
		k.host.Stopping(s.ID)
		k.bus.Pause(s.ID)
	}
	k.refresh()
	if k.options.Changed != nil {
		k.options.Changed(s)
	}
	if worthTelling(previous.State, s.State) {
		k.telling.Go(func() { k.tell(s) })
	}
}

// worthTelling says whether a change of state is news: that something failed,
// or came back.
func worthTelling(before, after supervisor.State) bool {
	bad := func(s supervisor.State) bool { return s == supervisor.BackingOff || s == supervisor.Failed }
	return before != after && (bad(after) || bad(before) && after == supervisor.Active)
}

func (k *Kernel) tell(s supervisor.Status) {
	state := contract.ExtensionState{
		Extension: s.ID, State: string(s.State), Readiness: directory.ReadinessWord(s.Readiness), Detail: s.Detail,
	}
	if _, err := k.Publish(contract.TopicExtension+string(s.State), s.ID, state); err != nil {
		k.log.Warn("publishing the state of an extension failed", "extension", s.ID, "error", err)
	}
}
