// Package coretool describes the kernel's own tools to models, and searches all tools
// by words. The kernel runs these tools.
package coretool

import "github.com/switchboard-run/switchboard/contract/extensionv1"

// Extension is the first part of the names of these tools.
const Extension = "core"

const (
	noArguments = `{"type":"object","properties":{},"additionalProperties":false}`
	nonEmpty    = `{"type":"string","minLength":1}`
)

// All describes the tools, under their short names.
func All() []*extensionv1.Tool {
	return []*extensionv1.Tool{
		{
			Name: "list_channels", ReadOnly: true,
			Description: "List the channels: id, name, readiness.", Schema: []byte(noArguments),
		},
		{
			Name: "list_agents", ReadOnly: true,
			Description: "List the agents, and what each is for.", Schema: []byte(noArguments),
		},
		{
			Name:        "send_to_channel",
			Description: "Send on a channel that the user named, or to a person there. Not for answers.",
			Schema: []byte(`{"type":"object","properties":{"channel_id":{"type":"string"},` +
				`"person":{"type":"string"},"text":` + nonEmpty + `,"attachments":{"type":"array","maxItems":10,` +
				`"items":{"type":"string"}}},"required":["channel_id","text"],"additionalProperties":false}`),
		},
		{
			Name:        "send_to_person",
			Description: "Send a message to another person, who gets it in private with the name of the one who asked for it.",
			Schema: []byte(`{"type":"object","properties":{"person":{"type":"string","minLength":1,` +
				`"description":"their name"},"text":` + nonEmpty + `,` +
				`"channel_id":{"type":"string","description":"if they use several"},` +
				`"attachments":{"type":"array","maxItems":10,` +
				`"items":{"type":"string","description":"such as [image 3f2a9c: cat.jpg]"}}},` +
				`"required":["person","text"],"additionalProperties":false}`),
		},
		{
			Name: "find_person", ReadOnly: true, Private: true,
			Description: "Find where a message for a person goes.",
			Schema: []byte(`{"type":"object","properties":{"person":` + nonEmpty + `,"channel_id":{"type":"string"}},` +
				`"required":["person"],"additionalProperties":false}`),
		},
		{
			Name: "send_to_all_channels", Approve: true,
			Description: "Send on every channel, only when asked to.",
			Schema: []byte(`{"type":"object","properties":{"text":` + nonEmpty + `},` +
				`"required":["text"],"additionalProperties":false}`),
		},
		{
			Name: "ask_user", Interruptible: true,
			Description: "Ask the user during a task and wait for the answer.",
			Schema: []byte(`{"type":"object","properties":{"question":{"type":"string","minLength":1,"maxLength":4000},` +
				`"options":{"type":"array","items":{"type":"string","minLength":1,"maxLength":200},"minItems":2,"maxItems":20},` +
				`"timeout_seconds":{"type":"integer","minimum":10,"maximum":86400}},` +
				`"required":["question"],"additionalProperties":false}`),
		},
		{
			Name: "find_tools", ReadOnly: true,
			Description: "Find more tools by words; use_tool calls them.",
			Schema: []byte(`{"type":"object","properties":{"query":{"type":"string"}},` +
				`"required":["query"],"additionalProperties":false}`),
		},
		{
			Name: "use_tool", ReadOnly: true,
			Description: "Call a tool from find_tools.",
			Schema: []byte(`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},` +
				`"required":["name"],"additionalProperties":false}`),
		},
	}
}
