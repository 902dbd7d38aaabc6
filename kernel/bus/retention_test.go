package bus

import (
	"testing"
	"time"
)

// TestPruningLeavesRoom: however slow the machine and its disk are, pruning takes
// a bounded part of the time in which is written, and holds nobody up for long.
func TestPruningLeavesRoom(t *testing.T) {
	t.Parallel()
	p := pruning{batch: pruneMost}
	for _, took := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, time.Second} {
		p.took = took
		if pause := p.pause(); pause < prunePause || took > (pause+took)/pruneShare {
			t.Errorf("after a transaction of %s it pauses for %s", took, pause)
		}
	}
	for name, each := range map[string]time.Duration{"fast": 5 * time.Microsecond, "slow": 50 * time.Microsecond} {
		p, most := pruning{batch: pruneMost}, time.Duration(0)
		for n := range 100 {
			if p.holding = time.Duration(p.batch) * each; n > 20 {
				most = max(most, p.holding)
			}
			p.pause()
		}
		if most > pruneHold+time.Duration(pruneLeast)*each {
			t.Errorf("on a %s machine others wait for %s", name, most)
		}
		if p.batch < pruneLeast || p.batch > pruneMost {
			t.Errorf("on a %s machine it removes %d at once", name, p.batch)
		}
	}
}
