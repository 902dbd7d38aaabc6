package memory

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/sdk"
)

// The parts of the schemas that several tools share.
const (
	kindField    = `"kind": {"enum": ["fact", "preference", "open"]}`
	channelField = `"channel_id": {"type": "string"}`
	dueField     = `"due": {"type": "string", "description": "2026-03-01 or 2026-03-01T18:30"}`
	filesField   = `"attachments": {"type": "array", "items": {"type": "string"}}`
	scopeField   = `"scope": {"type": "string"}`
	limitField   = `"limit": {"type": "integer", "minimum": 1, "maximum": 1000}`
)

func schema(required string, fields ...string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"type": "object", "additionalProperties": false, "required": [%s], "properties": {%s}}`,
		required, strings.Join(fields, ", ")))
}

// tools are offered to agents and, by name, to the command line and to other
// extensions. Calls may be repeated: a change is committed with the result of the
// call, and ids are computed from texts.
func (m *memory) tools() []sdk.Tool {
	return []sdk.Tool{
		{
			Name: "remember",
			Description: "Keep a fact, a preference or an open item (to do) as one self-contained statement. " +
				"Forget outdated ones in the result.",
			Schema: schema(``,
				`"text": {"type": "string", "minLength": 1}`,
				kindField, channelField, dueField, filesField,
				`"id": {"type": "string", "description": "changes that memory"}`,
				`"household": {"type": "boolean"}`, scopeField),
			Idempotent: true,
			Command:    "remember",
			Say:        sayRemembered,
			Call:       m.remember,
		},
		{
			Name:        "recall",
			Description: "Search memories.",
			Schema: schema(`"query"`,
				`"query": {"type": "string", "minLength": 1}`,
				kindField, scopeField, limitField),
			ReadOnly: true,
			Call:     m.recall,
		},
		{
			Name:        "forget",
			Description: "Forget memories, and open items that are done.",
			Schema: schema(`"ids"`,
				`"ids": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "string"}}`),
			Idempotent: true,
			Command:    "forget",
			Say:        sayResult[forgotten],
			Call:       m.forget,
		},
		{
			Name:        "list_memories",
			Description: "List memories.",
			Schema: schema(``, `"about": {"type": "string"}`, kindField, scopeField, limitField,
				`"offset": {"type": "integer", "minimum": 0}`),
			ReadOnly: true,
			Command:  "memories",
			Say:      sayResult[listing],
			Call:     m.list,
		},
		{
			Name: "relevant",
			Description: "The memories that an agent needs before it answers: all preferences, the open items " +
				"that are due, and the best matches of the query. For agent.context of a manifest; empty if there " +
				"are none.",
			Schema:   schema(``, `"query": {"type": "string", "description": "The agent's input."}`, scopeField),
			ReadOnly: true,
			Private:  true,
			Call:     m.relevant,
		},
		{
			Name: "open_items",
			Description: "All open items with channel and due date, the next due first; or all of another kind. " +
				"With accounts only what the person of these sees in private, and with own only what is theirs.",
			Schema: schema(``, scopeField, kindField, `"accounts": {"type": "array", "items": {"type": "string"}}`,
				`"own": {"type": "boolean"}`),
			ReadOnly: true,
			Private:  true,
			Call:     m.openItems,
		},
		{
			Name:        "export_memories",
			Description: "Export all memories as a Markdown document.",
			Schema:      schema(``, scopeField),
			ReadOnly:    true,
			Private:     true,
			Call:        m.exportAll,
		},
		{
			Name: "import_memories",
			Description: "Import a Markdown document, written by export_memories or by a person: " +
				"either all of it, or nothing, with an error for each invalid line.",
			Schema: schema(`"text"`, `"text": {"type": "string", "description": "The document."}`,
				`"scope": {"type": "string", "description": "The scope of memories without one. Default: personal."}`,
				`"replace": {"type": "boolean", "description": "Forget the memories that are not in the document."}`,
				`"check": {"type": "boolean", "description": "Only report the changes."}`,
				`"upload": {"type": "string", "pattern": "^[A-Za-z0-9]{1,64}$", "description":
					"Joins the parts of a document that is too long for one call."}`,
				`"part": {"type": "integer", "minimum": 0, "maximum": 9999}`,
				`"more": {"type": "boolean", "description": "Only store this part. The last part starts the import."}`),
			Idempotent: true,
			Private:    true,
			Call:       m.importAll,
		},
		{
			Name:        "forget_all",
			Description: "Forget everything, or everything of one scope.",
			Schema:      schema(``, `"scope": {"type": "string"}`),
			Idempotent:  true,
			Private:     true,
			Call:        m.forgetAll,
		},
	}
}
