package kernel

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
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
	// The tests of built-ins compile their schemas, which are otherwise compiled when they are needed.
	return coretool.Check(s.ID, d.GetTools(), s.commandNames(), !s.Builtin)
}
