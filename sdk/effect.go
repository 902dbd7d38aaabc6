package sdk

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Effect is one durable change. Each kind needs a grant in the manifest. If it
// cannot be encoded (a payload that is not JSON), the commit returns the error.
type Effect struct {
	pb  *busv1.Effect
	err error
}

// Effects are applied all or not at all, in order.
type Effects []Effect

// PublishOption sets an option of Publish.
type PublishOption func(*busv1.Publish)

// Key sets the ordering key: events with the same key are handled in order.
func Key(key string) PublishOption { return func(p *busv1.Publish) { p.Key = key } }

// Dedupe makes publishing idempotent: publishing the same key again returns the
// first event. Keys are per extension and are kept as long as the event.
func Dedupe(key string) PublishOption { return func(p *busv1.Publish) { p.DedupeKey = key } }

// Publish publishes an event. The payload is encoded as JSON, at most 1 MiB; a
// json.RawMessage is sent unchanged, and the kernel refuses invalid JSON.
func Publish(topic string, payload any, options ...PublishOption) Effect {
	b, err := encodePayload(payload)
	if err != nil {
		return Effect{err: fmt.Errorf("payload of %s: %w: %w", topic, contract.ErrInvalid, err)}
	}
	p := &struct { // in one allocation
		effect  busv1.Effect
		kind    busv1.Effect_Publish
		publish busv1.Publish
	}{publish: busv1.Publish{Topic: topic, Payload: b}}
	p.effect.Kind, p.kind.Publish = &p.kind, &p.publish
	for _, o := range options {
		o(&p.publish)
	}
	return Effect{pb: &p.effect}
}

func encodePayload(payload any) ([]byte, error) {
	if raw, ok := payload.(json.RawMessage); ok && raw != nil {
		return raw, nil
	}
	return json.Marshal(payload)
}

// Put writes a key of the extension's own store unconditionally.
func Put(key string, value any) Effect { return put(key, value, nil) }

// PutAt writes a key if its version is still the one that was read; version 0
// means that the key must not exist. Otherwise the commit is refused with
// contract.ErrConflict, and a handler that returned it runs again.
func PutAt(key string, value any, version int64) Effect { return put(key, value, &version) }

func put(key string, value any, version *int64) Effect {
	b, err := encodeValue(value)
	if err != nil {
		return Effect{err: fmt.Errorf("value of key %q: %w: %w", key, contract.ErrInvalid, err)}
	}
	return Effect{pb: &busv1.Effect{Kind: &busv1.Effect_Put{Put: &busv1.Put{Key: key, Value: b, Version: version}}}}
}

func encodeValue(value any) ([]byte, error) {
	if b, ok := value.([]byte); ok {
		return b, nil
	}
	return json.Marshal(value)
}

// Keep returns an event or a value that keeps files, by their hashes. See Kernel.PutBlob.
func (e Effect) Keep(hashes ...string) Effect {
	switch k := e.pb.GetKind().(type) {
	case *busv1.Effect_Publish:
		k.Publish.Blobs = hashes
	case *busv1.Effect_Put:
		k.Put.Blobs = hashes
	}
	return e
}

// Delete removes a key of the extension's own store.
func Delete(key string) Effect {
	return Effect{pb: &busv1.Effect{Kind: &busv1.Effect_Delete{Delete: &busv1.Delete{Key: key}}}}
}

// DeleteAt removes a key if its version is still the one that was read.
func DeleteAt(key string, version int64) Effect {
	return Effect{pb: &busv1.Effect{Kind: &busv1.Effect_Delete{Delete: &busv1.Delete{Key: key, Version: &version}}}}
}

// Withdraw settles the deliveries, not yet taken by a handler, of the event that
// this extension published with the dedupe key.
func Withdraw(dedupeKey string) Effect {
	return Effect{pb: &busv1.Effect{Kind: &busv1.Effect_Withdraw{Withdraw: &busv1.Withdraw{DedupeKey: dedupeKey}}}}
}

// WhenIdle asks the kernel to publish session.idle.<id of this extension> once, as
// soon as the session is idle; in the same commit if it is idle now.
func WhenIdle(session string) Effect {
	return Effect{pb: &busv1.Effect{Kind: &busv1.Effect_SessionIdle{SessionIdle: &busv1.SessionIdle{Session: session}}}}
}

// Raw returns the effect for a message of the contract.
func Raw[T isEffect](kind T) Effect {
	e := &busv1.Effect{}
	switch k := any(kind).(type) {
	case *busv1.SessionEnsure:
		e.Kind = &busv1.Effect_SessionEnsure{SessionEnsure: k}
	case *busv1.Input:
		e.Kind = &busv1.Effect_Input{Input: k}
	case *busv1.Append:
		e.Kind = &busv1.Effect_Append{Append: k}
	case *busv1.Steer:
		e.Kind = &busv1.Effect_Steer{Steer: k}
	case *busv1.TurnCancel:
		e.Kind = &busv1.Effect_TurnCancel{TurnCancel: k}
	case *busv1.Withdraw:
		e.Kind = &busv1.Effect_Withdraw{Withdraw: k}
	case *busv1.Receipt:
		e.Kind = &busv1.Effect_Receipt{Receipt: k}
	case *busv1.CallTool:
		e.Kind = &busv1.Effect_Call{Call: k}
	}
	return Effect{pb: e}
}

type isEffect interface {
	*busv1.SessionEnsure | *busv1.Input | *busv1.Append | *busv1.Steer |
		*busv1.TurnCancel | *busv1.Withdraw | *busv1.Receipt | *busv1.CallTool
	proto.Message
}

// Proto returns the effect as a message of the contract.
func (e Effect) Proto() (*busv1.Effect, error) { return e.pb, e.err }

// protos encodes the effects.
func (es Effects) protos() ([]*busv1.Effect, error) {
	out := make([]*busv1.Effect, 0, len(es))
	for _, e := range es {
		pb, err := e.Proto()
		if err != nil {
			return nil, err
		}
		out = append(out, pb)
	}
	return out, nil
}
