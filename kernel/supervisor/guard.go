package supervisor

import (
	"time"

	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

const (
	// diskEvery is after how many checks of memory and processes the disk is
	// checked.
	diskEvery = 5
	// aloneEvery is how many times less often a process is checked that starts no
	// others.
	aloneEvery = 5
)

// guard kills a process that exceeds one of its limits, and its orphans.
func (s *Supervisor) guard(proc process, l sandbox.Limits) {
	every := s.options.UsageInterval
	if l.Alone { // the kernel's own program
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
