package supervisor

import (
	"time"

	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

const (
	// diskEvery is how many looks at memory and processes there are for one at the
	// disk.
	diskEvery = 5
	// aloneEvery is how many times less often a process is looked at that starts no
	// others.
	aloneEvery = 5
)

// guard ends a process that is over one of its limits, and what it has left
// behind.
func (s *Supervisor) guard(proc process, l sandbox.Limits) {
	every := s.options.UsageInterval
	if l.Alone { // it is the kernel's own program
		every *= aloneEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-proc.Context().Done():
			return
		case <-ticker.C:
		}
		disk := n%diskEvery == 0
		if err := s.options.Guard(proc.PID(), l, disk); err != nil {
			proc.Kill("it was killed: " + err.Error())
			return
		}
		if disk && s.spawner != nil {
			s.spawner.sweep()
		}
	}
}
