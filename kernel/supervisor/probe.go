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

// answers probes all members at once.
func (s *Supervisor) answers(u *unit, proc process) bool {
	ctx, cancel := context.WithTimeout(proc.Context(), s.options.ProbeTimeout)
	defer cancel()
	s.mu.Lock()
	results := make(chan bool, len(u.members))
	asked := 0
	for _, m := range u.members {
		if u.proc == proc && u.phase == running && m.instance != nil && !m.stopping {
			instance, reported := m.instance, m.readinessNo
			asked++
			go func() { results <- s.healthy(ctx, m, instance, reported) }()
		}
	}
	s.mu.Unlock()
	all := true
	for range asked {
		all = <-results && all
	}
	return all
}

// healthy probes one member. An error that it answers with is an answer too.
func (s *Supervisor) healthy(ctx context.Context, m *member, instance *Instance, reported int) bool {
	readiness, err := extensionv1.NewExtensionClient(instance.Conn).Health(ctx, &extensionv1.HealthRequest{})
	if err != nil {
		code := status.Code(err)
		return code != codes.DeadlineExceeded && code != codes.Unavailable && code != codes.Canceled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.instance == instance && m.readinessNo == reported { // it has reported nothing newer
		s.setReadiness(m, readiness)
		s.publish()
	}
	return true
}
