package switchboard

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/schema"
)

// payloads are the types of the payloads of the kernel's topics; a pattern stands for all
// topics that it matches.
var payloads = map[string]reflect.Type{
	contract.TopicUserMessage:       reflect.TypeFor[contract.UserMessage](),
	contract.TopicAgentInput + "*":  reflect.TypeFor[contract.AgentInput](),
	contract.TopicAgentOutput:       reflect.TypeFor[contract.AgentOutput](),
	contract.TopicChannelSend + "*": reflect.TypeFor[contract.ChannelSend](),
	contract.TopicCommand + "*":     reflect.TypeFor[contract.Command](),
	contract.TopicUserNotify:        reflect.TypeFor[contract.UserNotify](),
	contract.TopicUserAsk:           reflect.TypeFor[contract.UserAsk](),
	contract.TopicAgentTask:         reflect.TypeFor[contract.AgentTask](),
	contract.TopicAgentBackground:   reflect.TypeFor[contract.AgentBackground](),
	contract.TopicDeliveryDead:      reflect.TypeFor[contract.DeliveryDead](),
	contract.TopicExtension + "*":   reflect.TypeFor[contract.ExtensionState](),
	contract.TopicPersonRevoked:     reflect.TypeFor[contract.PersonRevoked](),
	contract.TopicPersonChanged:     reflect.TypeFor[contract.PersonChanged](),
	contract.TopicStopped:           reflect.TypeFor[contract.ConversationStopped](),
	contract.TopicToolCall + "*":    reflect.TypeFor[contract.ToolCall](),
	contract.TopicToolResult + "*":  reflect.TypeFor[contract.ToolResult](),
	contract.TopicSchedulesDeclared: reflect.TypeFor[contract.SchedulesDeclared](),
	contract.TopicSessionIdle + "*": reflect.TypeFor[contract.SessionIdle](),
	contract.TopicModelUsage:        reflect.TypeFor[contract.ModelUsage](),
}

// otherPayloads are types of payloads whose topics an extension chooses.
var otherPayloads = []reflect.Type{reflect.TypeFor[contract.UserAnswer](), reflect.TypeFor[contract.PersonEnded]()}

// TestPayloadSchemasAreCurrent compares docs/schemas/payloads.json with the types of the
// contract, has a schema for each topic of the kernel, and compiles each.
func TestPayloadSchemasAreCurrent(t *testing.T) {
	t.Parallel()
	g := payloadSchemas{comments: commentsOf(t, "contract"), defs: map[string]any{}}
	topics := map[string]any{}
	for topic, of := range payloads {
		topics[topic] = g.of(of)
	}
	for _, of := range otherPayloads {
		g.of(of)
	}
	want, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Payloads of the events of Switchboard",
		"description": "topics has the payload of each topic of the kernel. A reader must ignore properties that it " +
			"does not know: later versions add some.",
		"$defs": g.defs, "topics": topics,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	path := filepath.Join("docs", "schemas", "payloads.json")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is out of date (%v): go test . -run PayloadSchemas -args -update", path, err)
	}
	constants, err := os.ReadFile(filepath.Join("contract", "topics.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`(?m)^\tTopic\w+ += "`).FindAll(constants, -1)); n != len(payloads) {
		t.Errorf("contract/topics.go has %d topics, and %d have a schema", n, len(payloads))
	}
	for name := range g.defs {
		raw, err := json.Marshal(map[string]any{"$ref": "#/$defs/" + name, "$defs": g.defs})
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := schema.Compile(raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "UserMessage" {
			if p := compiled.Check(map[string]any{"text": "a", "user_id": "b", "conversation_id": "c"}); len(p) > 0 {
				t.Errorf("a message does not fit: %v", p)
			}
			if p := compiled.Check(map[string]any{"text": "a"}); len(p) != 2 {
				t.Errorf("a message without a user and a conversation: %v", p)
			}
		}
	}
}

// payloadSchemas makes schemas of types of the contract.
type payloadSchemas struct {
	comments map[string]string // of types and, as Type.Field, of fields
	defs     map[string]any
}

func (g payloadSchemas) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case t.Kind() == reflect.Pointer:
		return g.of(t.Elem())
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": g.of(t.Elem())}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object"}
	case t.Kind() == reflect.Struct:
		if _, known := g.defs[t.Name()]; !known {
			g.defs[t.Name()] = nil // it may contain itself
			g.defs[t.Name()] = g.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case t.Kind() == reflect.String:
		return map[string]any{"type": "string"}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	panic("no schema for " + t.String())
}

func (g payloadSchemas) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		property := g.of(f.Type)
		if comment := g.comments[t.Name()+"."+f.Name]; comment != "" {
			property["description"] = comment
		}
		properties[name] = property
		if options == "" {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "required": required}
	if comment := g.comments[t.Name()]; comment != "" {
		s["description"] = comment
	}
	return s
}

// commentsOf are the comments on the types of a package and their fields.
func commentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	comments := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	oneLine := func(g *ast.CommentGroup) string { return strings.Join(strings.Fields(g.Text()), " ") }
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			types, ok := d.(*ast.GenDecl)
			if !ok || types.Tok != token.TYPE {
				continue
			}
			for _, s := range types.Specs {
				spec := s.(*ast.TypeSpec)
				comments[spec.Name.Name] = oneLine(types.Doc)
				structure, ok := spec.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, f := range structure.Fields.List {
					for _, name := range f.Names {
						comments[spec.Name.Name+"."+name.Name] = strings.TrimSpace(oneLine(f.Doc) + " " + oneLine(f.Comment))
					}
				}
			}
		}
	}
	return comments
}
