package coretool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
)

// maxCallID is the largest id of a call of an extension, in bytes.
const maxCallID = 1000

// CheckCall refuses the effect call of an extension that is wrong by itself.
func CheckCall(e *busv1.Effect) error {
	q := e.GetCall()
	switch extension, name, _ := strings.Cut(q.GetTool(), "/"); {
	case q.GetId() == "" || len(q.GetId()) > maxCallID:
		return fmt.Errorf("%w: id of a call of %d bytes: it has 1 to %d", contract.ErrInvalid, len(q.GetId()), maxCallID)
	case name == "" || !topic.ValidTopic(contract.TopicToolCall+extension):
		return fmt.Errorf("%w: %q is not the name of a tool: <extension>/<tool>", contract.ErrInvalid, q.GetTool())
	case len(q.GetArguments()) > contract.MaxPayload/2:
		return fmt.Errorf("%w: arguments of %d bytes for %s: the limit is %d", contract.ErrTooLarge,
			len(q.GetArguments()), q.GetTool(), contract.MaxPayload/2)
	case len(q.GetArguments()) > 0 && !json.Valid(q.GetArguments()):
		return fmt.Errorf("%w: the arguments for %s are not JSON", contract.ErrInvalid, q.GetTool())
	}
	return nil
}
