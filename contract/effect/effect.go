// Package effect checks effects that are wrong by themselves: what they do is not looked at.
package effect

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
)

const (
	// maxKey is the largest size of the key of a value or an event, and of a dedupe key.
	maxKey = 1024
	// maxCallID is the largest id of a call of a tool, in bytes.
	maxCallID = 1000
)

// Check refuses an effect that no extension may commit.
func Check(e *busv1.Effect) error {
	switch k := e.GetKind().(type) {
	case *busv1.Effect_Publish:
		return checkPublish(k.Publish)
	case *busv1.Effect_Put:
		return checkPut(k.Put)
	case *busv1.Effect_Input:
		return checkBlobs(k.Input.GetBlobs())
	case *busv1.Effect_Append:
		return checkBlobs(k.Append.GetBlobs())
	case *busv1.Effect_Call:
		return checkCall(k.Call)
	}
	return nil
}

func checkPublish(p *busv1.Publish) error {
	if len(p.GetPayload()) > contract.MaxPayload {
		return fmt.Errorf("%w: payload of %s has %d bytes, the limit is %d", contract.ErrTooLarge, p.GetTopic(),
			len(p.GetPayload()), contract.MaxPayload)
	}
	if longest := max(len(p.GetKey()), len(p.GetDedupeKey())); longest > maxKey {
		return fmt.Errorf("%w: a key of an event has %d bytes, the limit is %d", contract.ErrTooLarge, longest, maxKey)
	}
	if !validJSON(p.GetPayload()) {
		return fmt.Errorf("%w: payload of %s is not JSON", contract.ErrInvalid, p.GetTopic())
	}
	return checkBlobs(p.GetBlobs())
}

// validJSON is json.Valid in less than half of its time.
func validJSON(b []byte) bool {
	return jsontext.Value(b).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

func checkPut(p *busv1.Put) error {
	if len(p.GetValue()) > contract.MaxPayload {
		return fmt.Errorf("%w: value of key %q has %d bytes, the limit is %d", contract.ErrTooLarge, p.GetKey(),
			len(p.GetValue()), contract.MaxPayload)
	}
	if p.GetKey() == "" || len(p.GetKey()) > maxKey {
		return fmt.Errorf("%w: key of %d bytes: a key has 1 to %d", contract.ErrInvalid, len(p.GetKey()), maxKey)
	}
	return checkBlobs(p.GetBlobs())
}

func checkBlobs(hashes []string) error {
	if len(hashes) > contract.MaxBlobs {
		return fmt.Errorf("%w: an effect names %d files, the limit is %d", contract.ErrTooLarge, len(hashes),
			contract.MaxBlobs)
	}
	return nil
}

func checkCall(q *busv1.CallTool) error {
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

// Size is about how many bytes the effects of a commit have.
func Size(c *busv1.Commit) (size int) {
	for _, e := range c.GetEffects() {
		if bytes := len(e.GetPublish().GetPayload()) + len(e.GetPut().GetValue()); bytes > 0 {
			size += 64 + bytes
		} else {
			size += proto.Size(e)
		}
	}
	return size
}
