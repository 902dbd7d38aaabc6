package admin

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Object is a message as JSON for people and programs: field names of the
// contract, times (fields in _us) in RFC 3339 without the suffix, bytes as the
// JSON that they hold. Empty texts, times, bytes and messages are omitted; numbers,
// booleans and lists never are.
type Object struct {
	names  []string
	values []any
}

// JSON returns a message as JSON.
func JSON(m proto.Message) *Object {
	o := &Object{}
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name := string(f.Name())
		switch v := r.Get(f); {
		case f.IsList():
			list := make([]any, v.List().Len())
			for n := range list {
				list[n] = valueOf(f, v.List().Get(n))
			}
			o.With(name, list)
		case strings.HasSuffix(name, "_us"):
			if v.Int() != 0 {
				o.With(strings.TrimSuffix(name, "_us"), time.UnixMicro(v.Int()))
			}
		case !r.Has(f) && slices.Contains(emptied, f.Kind()):
		default:
			o.With(name, valueOf(f, v))
		}
	}
	return o
}

// emptied lists the kinds of fields that are omitted when they are empty.
var emptied = []protoreflect.Kind{protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind}

func valueOf(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() { //nolint:exhaustive // other kinds are written unchanged
	case protoreflect.MessageKind:
		return JSON(v.Message().Interface())
	case protoreflect.BytesKind:
		return json.RawMessage(v.Bytes())
	}
	return v.Interface()
}

// With adds a field, or replaces it, and returns the object.
func (o *Object) With(name string, v any) *Object {
	if i := slices.Index(o.names, name); i >= 0 {
		o.values[i] = v
		return o
	}
	o.names, o.values = append(o.names, name), append(o.values, v)
	return o
}

// Without removes a field and returns the object.
func (o *Object) Without(name string) *Object {
	if i := slices.Index(o.names, name); i >= 0 {
		o.names, o.values = slices.Delete(o.names, i, i+1), slices.Delete(o.values, i, i+1)
	}
	return o
}

// Rename gives a field another name and returns the object.
func (o *Object) Rename(from, to string) *Object {
	if i := slices.Index(o.names, from); i >= 0 {
		o.names[i] = to
	}
	return o
}

// MarshalJSON implements json.Marshaler.
func (o *Object) MarshalJSON() ([]byte, error) {
	b := []byte("{")
	for i, name := range o.names {
		value, err := marshal(o.values[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, name), ':')
		b = append(b, value...)
	}
	return append(b, '}'), nil
}

// marshal is json.Marshal that leaves <, > and & readable.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
