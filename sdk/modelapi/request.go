package modelapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// Texts for contents that APIs do not accept empty.
const (
	noOutput = "(no output)"
	noText   = "(empty message)"
	noResult = "(this call has no result)"
)

// Roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one message as APIs accept it.
type Message struct {
	Role   string
	Text   string  // valid UTF-8; empty only beside calls
	Calls  []Call  // of an assistant
	CallID string  // of a tool: the call that this is the result of
	Images []Image // of the user
}

// Call is a call in an assistant's message.
type Call struct{ ID, Name, Arguments string }

// Dialog returns messages that APIs accept, whatever the history contains: the results
// of all calls follow them, no text is missing, ids and names are plain, and arguments
// are JSON.
func Dialog(in []*extensionv1.Message) []Message {
	out := make([]Message, 0, len(in))
	var open []string // calls of the last assistant message without a result
	settle := func() {
		for _, id := range open {
			out = append(out, Message{Role: RoleTool, CallID: id, Text: noResult})
		}
		open = nil
	}
	for _, m := range in {
		if m.GetRole() == RoleTool {
			id := callID(m.GetCallId())
			if i := slices.Index(open, id); i >= 0 { // else it is a result without its call
				open = append(open[:i:i], open[i+1:]...)
				out = append(out, Message{Role: RoleTool, CallID: id, Text: orElse(m.GetContent(), noOutput)})
			}
			continue
		}
		settle()
		c := Message{Role: m.GetRole(), Text: Text(m.GetContent())}
		switch {
		case c.Role == RoleAssistant && len(m.GetCalls()) > 0:
			for _, call := range m.GetCalls() {
				id := callID(cmp.Or(call.GetCallId(), call.GetProviderId()))
				open = append(open, id)
				c.Calls = append(c.Calls, Call{id, functionName(call.GetName()), arguments(call.GetArguments())})
			}
		case c.Text == "" && (c.Role == RoleAssistant || c.Role == RoleSystem):
			continue
		default:
			for _, image := range m.GetImages() {
				c.Images = append(c.Images, Image{image.GetMime(), image.GetData()})
			}
			c.Text = orElse(c.Text, noText)
		}
		out = append(out, c)
	}
	settle()
	return out
}

func orElse(text, other string) string {
	if text = Text(text); text == "" {
		return other
	}
	return text
}

// Text returns text as valid UTF-8.
func Text(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// maxCallID is the longest id of a call that the API accepts.
const maxCallID = 40

// callID converts an id to one that the API accepts, always in the same way.
func callID(id string) string {
	if plain(id) && len(id) <= maxCallID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

func plain(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return s != ""
}

// functionName converts the name of a call, which may be any text, to one that
// the API accepts.
func functionName(name string) string {
	name = strings.ReplaceAll(name, "/", "__")
	if plain(name) && len(name) <= 64 {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if b.Len() == 64 {
			break
		}
		if r < utf8.RuneSelf && plain(string(r)) {
			b.WriteRune(r)
		} else {
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "unnamed"
	}
	return b.String()
}

// arguments converts the arguments of a call, which may be any text, to JSON:
// some servers parse them.
func arguments(a []byte) string {
	if json.Valid(a) {
		return string(a)
	}
	if len(strings.TrimSpace(string(a))) == 0 {
		return "{}"
	}
	b, err := json.Marshal(map[string]string{"not_json": Text(string(a))})
	if err != nil {
		return "{}"
	}
	return string(b)
}

// maxKept is the size of the cache: each agent has one list of tools, which
// stays the same from step to step.
const maxKept = 8

// Toolsets caches encoded lists of tools. The zero value is ready. It is safe for concurrent use.
type Toolsets struct {
	mu   sync.Mutex
	kept []toolset // the most recently used first
}

type toolset struct {
	tools []*extensionv1.Tool
	json  []byte
}

// Encoded returns a list of tools as JSON, or nil if it is empty.
func (t *Toolsets) Encoded(
	tools []*extensionv1.Tool, encode func([]*extensionv1.Tool) ([]byte, error),
) ([]byte, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, k := range t.kept {
		if slices.EqualFunc(k.tools, tools, sameTool) {
			copy(t.kept[1:], t.kept[:i])
			t.kept[0] = k
			return k.json, nil
		}
	}
	encoded, err := encode(tools)
	if err != nil {
		return nil, err
	}
	t.kept = slices.Insert(t.kept, 0, toolset{tools, encoded})
	t.kept = t.kept[:min(len(t.kept), maxKept)]
	return encoded, nil
}

// sameTool reports whether both tools have the same encoding.
func sameTool(a, b *extensionv1.Tool) bool {
	return a.GetName() == b.GetName() && a.GetDescription() == b.GetDescription() &&
		string(a.GetSchema()) == string(b.GetSchema())
}
