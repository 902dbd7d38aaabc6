package supervisor

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// maxSilent is the number of probes in a row that may go unanswered.
const maxSilent = 3

// probe asks the active extensions of a process for their health until the
// process is gone, and ends it when it has stopped answering.
func (s *Supervisor) probe(u *unit, proc process) {
	ticker := time.NewTicker(s.options.ProbeInterval)
	defer ticker.Stop()
	silent := 0
	for {
		select {
		case <-proc.Context().Done():
			return
		case <-ticker.C:
		}
		if s.answers(u, proc) {
			silent = 0
		} else if silent++; silent == maxSilent {
			proc.Kill(fmt.Sprintf("it was killed: it left %d health probes unanswered, each for %s", silent, s.options.ProbeTimeout))
			return
		}
	}
}

// answers probes each member; an error is an answer too.
func (s *Supervisor) answers(u *unit, proc process) bool {
	type asked struct {
		m        *member
		instance *Instance
		no       int
	}
	var all []asked
	s.mu.Lock()
	if u.proc == proc && u.phase == running {
		for _, m := range u.members {
			if m.instance != nil && !m.stopping {
				all = append(all, asked{m, m.instance, m.readinessNo})
			}
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(proc.Context(), s.options.ProbeTimeout)
	defer cancel()
	for _, a := range all {
		readiness, err := extensionv1.NewExtensionClient(a.instance.Conn).Health(ctx, &extensionv1.HealthRequest{})
		switch status.Code(err) {
		case codes.OK:
			s.mu.Lock()
			if a.m.instance == a.instance && a.m.readinessNo == a.no { // nothing newer was reported
				s.setReadiness(a.m, readiness)
				s.publish()
			}
			s.mu.Unlock()
		case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
			return false
		}
	}
	return true
}

// weigh ends a process that outgrows its memory.
func (s *Supervisor) weigh(proc process, limit int64) {
	ticker := time.NewTicker(s.options.MemoryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-proc.Context().Done():
			return
		case <-ticker.C:
		}
		used, err := proc.Memory()
		if err != nil {
			s.log.Debug("memory of an extension is unknown", "error", err)
			continue
		}
		if used > limit {
			proc.Kill(fmt.Sprintf("it was killed: it used %d MiB of memory, and run.memory allows %d MiB", used>>20, limit>>20))
			return
		}
	}
}
