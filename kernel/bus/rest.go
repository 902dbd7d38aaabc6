package bus

import (
	"slices"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// rest tells of the sessions of which this commit has settled inputs.
func (t *Tx) rest() error {
	var told []string
	for i := 0; i < len(t.gone); i++ {
		p := t.gone[i]
		if p.sub == nil || p.sub.class() != classInput || slices.Contains(told, p.delivery.Key) {
			continue
		}
		told = append(told, p.delivery.Key)
		if err := t.bus.sessions.Rested(t, journal.ParseSessionID(p.delivery.Key)); err != nil {
			return err
		}
	}
	return nil
}
