package memory

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/sdk"
)

// The parts of the schemas that several tools share.
const (
	kindField    = `"kind": {"enum": ["fact", "preference", "open"], "description": "%s"}`
	channelField = `
		"channel_id": {"type": "string", "description":
			"A channel of list_channels: the preferred one, or the one on which to bring up an open item."}`
	dueField = `
		"due": {"type": "string", "description":
			"When an open item is due: a date such as 2026-03-01, or a local date and time such as 2026-03-01T18:30."}`
	scopeField = `"scope": {"type": "string", "description": "Only if there are several scopes."}`
	limitField = `
		"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Maximum number. Default: %d."}`
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
			Description: "Remember something for later conversations: a fact, a preference (how the user " +
				"wants things done, such as which channel to use), or an open item (something to do, " +
				"with its due date). Save one statement at a time, with names instead of “he” and dates instead of " +
				"“tomorrow”. " +
				"The same text updates the existing memory. " +
				"The result lists similar memories: forget those that are no longer true.",
			Schema: schema(``,
				`"text": {"type": "string", "minLength": 1, "description":
					"One statement, in the user's language. Required unless id is given."}`,
				fmt.Sprintf(kindField, "Default: fact; open if due is given."), channelField, dueField,
				`"id": {"type": "string", "description":
					"The memory to change, instead of adding one. Omitted fields keep their values; `+
					`an empty due or channel_id is removed."}`, scopeField),
			Idempotent: true,
			Command:    "remember",
			Say:        sayRemembered,
			Call:       m.remember,
		},
		{
			Name: "recall",
			Description: "Search the memories by words in any form, the best match first, then the newest. " +
				"If two contradict each other, the newer one is right.",
			Schema: schema(`"query"`,
				`"query": {"type": "string", "minLength": 1, "description":
					"The important words, in the language of the memory."}`,
				fmt.Sprintf(kindField, "Only this kind."), scopeField, fmt.Sprintf(limitField, defaultRecall)),
			ReadOnly: true,
			Call:     m.recall,
		},
		{
			Name: "forget",
			Description: "Delete memories permanently: those that are wrong, those that the user wants forgotten, " +
				"and every open item that is done.",
			Schema: schema(`"ids"`, `"ids": {"type": "array", "minItems": 1, "maxItems": 100,
				"items": {"type": "string"}, "description": "Such as m4k2q7."}`),
			Idempotent: true,
			Command:    "forget",
			Call:       m.forget,
		},
		{
			Name:        "list_memories",
			Description: "List the memories: preferences, then open items by due date, then facts, the newest first.",
			Schema: schema(``,
				`"about": {"type": "string", "description": "Only those with one of these words."}`,
				fmt.Sprintf(kindField, "Only this kind."),
				scopeField, fmt.Sprintf(limitField, defaultList),
				`"offset": {"type": "integer", "minimum": 0, "description": "How many to skip."}`),
			ReadOnly: true,
			Command:  "memories",
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
			Name:        "open_items",
			Description: "All open items with channel and due date, the next due first.",
			Schema:      schema(``, scopeField),
			ReadOnly:    true,
			Private:     true,
			Call:        m.openItems,
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
