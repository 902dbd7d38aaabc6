package kernel

import (
	"fmt"
	"slices"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/control"
	"github.com/switchboard-run/switchboard/kernel/sandbox"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

// sandboxOf is what really limits a running extension; the caller holds k.mu.
func (k *Kernel) sandboxOf(id string, pid int) *control.Sandbox {
	policy := k.policies[id]
	shares := 0
	for other, s := range k.status {
		if s.PID == pid && other != id {
			shares++
			if policy != nil && k.policies[other] != nil {
				policy = sandbox.Union(policy, k.policies[other])
			} else {
				policy = nil
			}
		}
	}
	support := sandbox.Detect()
	switch {
	case policy == nil:
		reason := "switched off in config.yaml (extensions." + id + ".sandbox)"
		if k.plan.config.Sandbox == config.SandboxOff {
			reason = "switched off in config.yaml (sandbox)"
		} else if k.policies[id] != nil {
			reason = "an extension that shares its process has none"
		}
		return &control.Sandbox{Level: sandbox.LevelNone, Reason: reason}
	case support.Level() == sandbox.LevelNone:
		return &control.Sandbox{Level: sandbox.LevelNone, Reason: support.String()}
	case !sandbox.Confirmed(pid):
		return &control.Sandbox{Level: sandbox.LevelNone, Reason: fmt.Sprintf("process %d does not look as if it were in one", pid)}
	}
	s := &control.Sandbox{Level: support.Level(), Network: support.Summary(policy), Files: k.extraFiles(pid)}
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
		m := k.plan.members[id]
		if s.PID != pid || m == nil {
			continue
		}
		for _, f := range m.manifest.Permissions.Files {
			path := pathOf(f.Path, m.manifest, k.options)
			if f.Write {
				path += " (write)"
			}
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// keepPolicies notes what the specs limit.
func (k *Kernel) keepPolicies(specs []supervisor.Spec) []supervisor.Spec {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.policies = map[string]*sandbox.Policy{}
	for _, s := range specs {
		k.policies[s.ID] = s.Policy
	}
	return specs
}
