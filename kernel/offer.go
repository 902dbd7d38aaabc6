package kernel

import (
	"sync"

	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// offer is what an extension said of itself last. Its schemas are compiled once at most:
// a snapshot is made at each change of any extension.
type offer struct {
	*extensionv1.Description
	tools      []directory.Tool
	generation int64
}

// report records the readiness that an extension reports, and that its tools have changed.
func (k *Kernel) report(id string, generation int64, r *extensionv1.Readiness) (err error) {
	k.super.Report(id, generation, r) // Changed refreshes
	if d := r.GetDescription(); d != nil {
		k.mu.Lock()
		if x := k.plan.members[id]; x != nil && k.actors[id].Generation == generation {
			if err = x.Check(d); err == nil {
				k.described[id] = offer{d, entries(id, d.GetTools()), generation}
			}
		}
		k.mu.Unlock()
		k.refresh()
	}
	return err
}

// coreTools are the kernel's own.
var coreTools = sync.OnceValue(func() []directory.Tool { return entries(coretool.Extension, coretool.All()) })

func entries(extension string, described []*extensionv1.Tool) []directory.Tool {
	all := make([]directory.Tool, 0, len(described))
	for _, t := range described {
		all = append(all, tools.Entry(extension, t))
	}
	return all
}
