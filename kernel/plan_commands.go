package kernel

import (
	"fmt"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/manifests"
)

// Whoever provides commands gets them. A person waits for the answer.
const (
	commandWait    = 10 * time.Minute
	commandDeliver = 3
	commandAge     = 10 * time.Minute
)

func (m *member) commands() (subs []bus.Subscription) {
	var names []string
	for _, c := range m.manifest.Provides.Commands {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return []bus.Subscription{{
		Pattern: contract.TopicCommand + "*", Commands: names, Ordered: true, AckWait: commandWait, MaxDeliver: commandDeliver, MaxAge: commandAge,
	}}
}

// checkCommand refuses a command that the manifest does not provide. Of two
// manifests that provide one command, the later extension does not start.
func (m *member) checkCommand(t *extensionv1.Tool) error {
	name := t.GetCommand()
	switch provides := func(c manifests.Command) bool { return c.Name == name }; {
	case name == "" || slices.ContainsFunc(m.manifest.Provides.Commands, provides):
		return nil
	case directory.IsBuiltin(name):
		return fmt.Errorf("%w: the tool %s/%s wants to be the command /%s, which is the kernel's own: rename it",
			contract.ErrInvalid, m.manifest.ID, t.GetName(), name)
	}
	return fmt.Errorf("%w: the tool %s/%s is the command /%s, but the manifest lacks \"provides: {commands: [%s]}\"",
		contract.ErrDenied, m.manifest.ID, t.GetName(), name, name)
}
