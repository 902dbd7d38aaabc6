package kernel

import (
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
)

// Sandbox implements admin.Installation.
func (i installation) Sandbox(id string, pid int) *adminv1.Sandbox {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sandboxOf(id, pid)
}

// sandboxOf is what really limits a running extension; the caller holds k.mu.
func (k *Kernel) sandboxOf(id string, pid int) *adminv1.Sandbox {
	own := k.policyOf(id)
	policy, shares := own, 0
	for other, s := range k.status {
		if s.PID == pid && other != id {
			shares++
			if others := k.policyOf(other); policy != nil && others != nil {
				policy = sandbox.Union(policy, others)
			} else {
				policy = nil
			}
		}
	}
	support := sandbox.Detect()
	switch {
	case policy == nil:
		reason := "an extension that shares its process has none"
		if own == nil && k.plan.members[id] != nil {
			reason = k.plan.members[id].Unconfined
		}
		return &adminv1.Sandbox{Level: sandbox.LevelNone, Reason: reason}
	case support.Level() == sandbox.LevelNone:
		return &adminv1.Sandbox{Level: sandbox.LevelNone, Reason: support.String()}
	case !sandbox.Confirmed(pid):
		return &adminv1.Sandbox{Level: sandbox.LevelNone, Reason: fmt.Sprintf("process %d does not look as if it were in one", pid)}
	}
	s := &adminv1.Sandbox{Level: support.Level(), Network: support.Summary(policy), Files: k.extraFiles(pid)}
	if s.Level != sandbox.LevelFull {
		s.Reason = support.String()
	}
	if shares > 0 {
		s.Network += fmt.Sprintf(" (shared with %d others)", shares)
	}
	return s
}

// extraFiles are what a process may use besides its own and the system's.
func (k *Kernel) extraFiles(pid int) (all []string) {
	for id, s := range k.status {
		if m := k.plan.members[id]; s.PID == pid && m != nil {
			all = append(all, m.Files...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// policyOf is the sandbox of an extension; the caller holds k.mu.
func (k *Kernel) policyOf(id string) *sandbox.Policy {
	if s := k.plan.members[id]; s != nil {
		return s.Process.Policy
	}
	return nil
}
