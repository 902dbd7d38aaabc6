package kernel

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// maxDescription is how many bytes an extension may describe itself with: the
// description is kept, and models are told of the tools.
const maxDescription = 512 << 10

// Check refuses a description with more than the Spec provides, or with tools
// that cannot be offered.
func (s *Spec) Check(d *extensionv1.Description) error {
	switch size := proto.Size(d); {
	case size > maxDescription:
		return fmt.Errorf("%w: its description of itself has %d KiB, mostly its tools, and may have %d",
			contract.ErrTooLarge, size>>10, maxDescription>>10)
	case d.GetChannel() && s.Provides.Channel == nil:
		return fmt.Errorf("%w: it is a channel, but the manifest lacks \"provides: {channel: ...}\"", contract.ErrDenied)
	case d.GetModels() && len(s.Provides.Models) == 0:
		return fmt.Errorf("%w: it completes prompts, but the manifest lacks \"provides: {models: [%s/*]}\"",
			contract.ErrDenied, s.ID)
	case len(d.GetTools()) > 0 && !s.Provides.Tools:
		return fmt.Errorf("%w: it has tools, but the manifest lacks \"provides: {tools: true}\"", contract.ErrDenied)
	}
	seen := map[string]bool{}
	for _, t := range d.GetTools() {
		if seen[t.GetName()] {
			return fmt.Errorf("%w: it describes the tool %q twice", contract.ErrInvalid, t.GetName())
		}
		seen[t.GetName()] = true
		if !s.Builtin { // the tests of built-ins do that; their schemas are compiled when they are needed
			if _, err := coretool.Compile(s.ID, t); err != nil {
				return err
			}
		}
		if err := s.checkCommand(t); err != nil {
			return err
		}
	}
	return nil
}

// checkCommand refuses a command that the Spec does not provide.
func (s *Spec) checkCommand(t *extensionv1.Tool) error {
	name := t.GetCommand()
	switch provides := func(c Command) bool { return c.Name == name }; {
	case name == "" || slices.ContainsFunc(s.Provides.Commands, provides):
		return nil
	case command.IsBuiltin(name):
		return fmt.Errorf("%w: the tool %s/%s wants to be the command /%s, which is the kernel's own: rename it",
			contract.ErrInvalid, s.ID, t.GetName(), name)
	}
	return fmt.Errorf("%w: the tool %s/%s is the command /%s, but the manifest lacks \"provides: {commands: [%s]}\"",
		contract.ErrDenied, s.ID, t.GetName(), name, name)
}
