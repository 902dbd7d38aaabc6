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
	channelField = `"channel_id": {"type": "string", "description": "A channel of list_channels that it is about: the preferred one, or where an open item is to be raised."}`
	dueField     = `"due": {"type": "string", "description": "When an open item is due: a date such as 2026-03-01, or a local date and time such as 2026-03-01T18:30."}`
	scopeField   = `"scope": {"type": "string", "description": "Only if several scopes are in use."}`
	limitField   = `"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "At most so many; %d if not given."}`
)

func schema(required string, fields ...string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type": "object", "additionalProperties": false, "required": [%s], "properties": {%s}}`,
		required, strings.Join(fields, ", ")))
}

// tools are offered to agents and, by name, to the command line and to other
// extensions. All may be repeated: what a call changes is committed with its
// result, and ids follow from texts.
func (m *memory) tools() []sdk.Tool {
	return []sdk.Tool{
		{
			Name: "remember",
			Description: "Keep something for later conversations. It is a fact, a preference (how the user wants things done, such as the channel to be written to), " +
				"or an open item (something that remains to be done, with a due date if there is one). One statement each, that stands alone: names instead of “he”, dates instead of “tomorrow”. " +
				"The same text again updates it. The result names similar memories: forget those that are no longer true.",
			Schema: schema(``,
				`"text": {"type": "string", "minLength": 1, "description": "One statement, in the language of the user. Needed unless id is given."}`,
				fmt.Sprintf(kindField, "fact if not given; open if due is given."), channelField, dueField,
				`"id": {"type": "string", "description": "Of a memory to change, instead of adding one. What is not given stays; an empty due or channel_id is removed."}`, scopeField),
			Idempotent: true,
			Command:    "remember",
			Say:        sayRemembered,
			Call:       m.remember,
		},
		{
			Name:        "recall",
			Description: "Search what is remembered, by words in any form; the best match first, of equal ones the newest. Where two contradict each other, the newer one holds.",
			Schema: schema(`"query"`,
				`"query": {"type": "string", "minLength": 1, "description": "The words that matter, in the language in which it was said."}`,
				fmt.Sprintf(kindField, "Only these."), scopeField, fmt.Sprintf(limitField, defaultRecall)),
			ReadOnly: true,
			Call:     m.recall,
		},
		{
			Name:        "forget",
			Description: "Forget memories for good. Do so with what is wrong, what the user wants forgotten, and every open item that is done: forgetting is how an open item is finished.",
			Schema:      schema(`"ids"`, `"ids": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "string"}, "description": "Such as m4k2q7."}`),
			Idempotent:  true,
			Command:     "forget",
			Call:        m.forget,
		},
		{
			Name:        "list_memories",
			Description: "List what is remembered. Preferences come first, then open items by due date, then facts, the newest first.",
			Schema: schema(``, `"about": {"type": "string", "description": "Only what has one of these words."}`, fmt.Sprintf(kindField, "Only these."),
				scopeField, fmt.Sprintf(limitField, defaultList),
				`"offset": {"type": "integer", "minimum": 0, "description": "Leave out so many of the first."}`),
			ReadOnly: true,
			Command:  "memories",
			Call:     m.list,
		},
		{
			Name: "relevant",
			Description: "What an agent should know before it answers: all preferences, the memories that fit the query best, and the open items that are due. " +
				"Made to be named under agent.context of a manifest; empty if there is nothing.",
			Schema:   schema(``, `"query": {"type": "string", "description": "What the agent was told."}`, scopeField),
			ReadOnly: true,
			Private:  true,
			Call:     m.relevant,
		},
		{
			Name:        "open_items",
			Description: "All open items with channel and due date, those due first.",
			Schema:      schema(``, scopeField),
			ReadOnly:    true,
			Private:     true,
			Call:        m.openItems,
		},
		{
			Name:        "export_memories",
			Description: "Everything remembered as a Markdown document.",
			Schema:      schema(``, scopeField),
			ReadOnly:    true,
			Private:     true,
			Call:        m.exportAll,
		},
		{
			Name:        "import_memories",
			Description: "Take over a Markdown document as export_memories writes it, or as a person has edited or written it: all of it, or nothing and the lines that are wrong.",
			Schema: schema(`"text"`, `"text": {"type": "string", "description": "The document."}`,
				`"scope": {"type": "string", "description": "Of what names none; personal if not given."}`,
				`"replace": {"type": "boolean", "description": "Forget what the document does not hold."}`,
				`"check": {"type": "boolean", "description": "Change nothing: only say what would be."}`,
				`"upload": {"type": "string", "pattern": "^[A-Za-z0-9]{1,64}$", "description": "Joins the parts of a document that is too long for one call."}`,
				`"part": {"type": "integer", "minimum": 0, "maximum": 9999}`,
				`"more": {"type": "boolean", "description": "Only keep this part: others follow, and the last one has the document read."}`),
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
