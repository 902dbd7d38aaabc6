package host

import (
	"slices"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// commands are the slash commands as the contract shows them: the kernel's own
// first. One whose extension has failed is still listed: it is answered with that.
func commands(now *directory.Snapshot) []*kernelv1.Command {
	all := slices.Concat(directory.Builtin(), now.Commands)
	out := make([]*kernelv1.Command, len(all))
	for i, c := range all {
		out[i] = &kernelv1.Command{Name: c.Name, Description: c.Description}
	}
	return out
}
