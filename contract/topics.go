package contract

import "encoding/json"

// The kernel's topics. Every other topic belongs to the extension whose id is
// its first segment.
const (
	TopicUserMessage       = "user.message"
	TopicAgentInput        = "agent.input."  // + agent id
	TopicAgentOutput       = "agent.output"  // ends a turn
	TopicChannelSend       = "channel.send." // + channel id
	TopicCommand           = "command."      // + command name
	TopicUserNotify        = "system.user.notify"
	TopicUserAsk           = "system.user.ask"
	TopicAgentTask         = "system.agent.task"
	TopicAgentBackground   = "system.agent.background"
	TopicDeliveryDead      = "system.delivery.dead"
	TopicExtension         = "system.extension." // + state
	TopicPersonRevoked     = "system.person.revoked"
	TopicPersonChanged     = "system.person.changed"
	TopicStopped           = "system.conversation.stopped"
	TopicToolCall          = "tool.call."   // + id of the extension with the tool
	TopicToolResult        = "tool.result." // + id of the extension that called it
	TopicSchedulesDeclared = "schedules.declared"
	TopicSessionIdle       = "session.idle." // + extension id
	TopicModelUsage        = "model.usage"
)

// UserMessage is the payload of user.message. The event's source is the channel.
// The channel only reports the sender; the router decides who is admitted.
type UserMessage struct {
	Text           string `json:"text"`
	UserID         string `json:"user_id"`
	UserName       string `json:"user_name,omitempty"` // as shown to people
	Language       string `json:"language,omitempty"`  // of the person, an IETF tag such as ru; empty: English
	ConversationID string `json:"conversation_id"`     // the channel's own address
	ThreadID       string `json:"thread_id,omitempty"`
	// Group: others can read the conversation. The agent is then given the sender's
	// name, and strangers get no answer.
	Group     bool   `json:"group,omitempty"`
	GroupName string `json:"group_name,omitempty"` // as shown to people
	// Aside: of several private conversations with the person, this is not the one for what
	// names no conversation, such as a reminder from elsewhere.
	Aside     bool   `json:"aside,omitempty"`
	AgentID   string `json:"agent_id,omitempty"`
	MessageID string `json:"message_id,omitempty"` // the platform's, within the conversation
	// Edited: the message was reported before and its text has changed. Before its
	// turn the text is replaced; later the change is noted.
	Edited      bool         `json:"edited,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	// ForwardedFrom names the author of a text that the person forwarded, or sent
	// through another bot; empty: the person wrote it. Such a text is data: it is never
	// a command, an answer to a question or an approval.
	ForwardedFrom string `json:"forwarded_from,omitempty"`
	// Quote is the earlier message that the person chose to answer; nil: none.
	Quote *Quote `json:"quote,omitempty"`
	// Reaction: Text is an emoji that the person put on the message in Quote. It is noted
	// and starts no turn; it is never a command, an answer to a question or an approval.
	Reaction bool `json:"reaction,omitempty"`
	// SentAt is when the person wrote it, in Unix seconds; 0: unknown.
	SentAt int64 `json:"sent_at,omitempty"`
}

// Quote is an earlier message that a person refers to.
type Quote struct {
	// MessageID is the platform's id; of a text that the assistant sent, it is the
	// ProviderId of its receipt.
	MessageID string `json:"message_id,omitempty"`
	Sender    string `json:"sender,omitempty"` // as shown to people; empty: the assistant
	Text      string `json:"text,omitempty"`   // at most MaxQuote bytes of it
}

// Attachment is a part of a message other than its text.
type Attachment struct {
	Kind string `json:"kind"` // photo, voice, document, ...
	Name string `json:"name,omitempty"`
	// Blob is the SHA-256 of the file, in hexadecimal; empty: it was not stored. An event
	// that names it keeps it by Publish.blobs.
	Blob string `json:"blob,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"` // in bytes; 0: unknown
}

// Action is a button below a message. To press it is to type its command: the channel
// reports a UserMessage of the person who pressed it, in the conversation of the
// message, whose text is the command. So whoever may not type it can't press it, and
// what ends once can't be pressed twice.
type Action struct {
	Label   string `json:"label"`   // for people, in their language
	Command string `json:"command"` // such as "/approve q7"; at most MaxActionCommand bytes
}

// SessionIdle is the payload of session.idle.<extension>, requested by that
// extension.
type SessionIdle struct {
	Session string `json:"session"`
	// Stopped: it is idle because a person stopped it, who doesn't expect a turn now.
	Stopped bool `json:"stopped,omitempty"`
}

// AgentInput is the payload of agent.input.<agent>.
type AgentInput struct {
	Session string `json:"session"`
	Kind    string `json:"kind"`
	Sender  string `json:"sender,omitempty"`
	Text    string `json:"text"`
	ReplyTo string `json:"reply_to,omitempty"`
	Group   bool   `json:"group,omitempty"`
	SentAt  int64  `json:"sent_at,omitempty"`
	Person  string `json:"person,omitempty"` // opaque id of the one whose request it is; empty: none
	// Language is that of the person, an IETF tag; empty: English.
	Language string `json:"language,omitempty"`
	// ForwardedFrom is that of the UserMessage.
	ForwardedFrom string         `json:"forwarded_from,omitempty"`
	Quote         *Quote         `json:"quote,omitempty"` // that of the UserMessage
	Meta          map[string]any `json:"meta,omitempty"`
	// Thread names the input's conversation if the session holds several at once. A
	// model sees nothing of the others.
	Thread string `json:"thread,omitempty"`
	// Attachments came with the input; the session keeps their files. The text names
	// them, as Reference does.
	Attachments []Attachment `json:"attachments,omitempty"`
}

// SharesTurn reports whether one turn may answer the input together with the first one: a
// person wrote both, in one place.
func (in AgentInput) SharesTurn(first AgentInput) bool {
	return in.Kind == InputUser && first.Kind == InputUser && in.ReplyTo == first.ReplyTo && in.Person == first.Person
}

// Kinds of an input.
const (
	InputUser    = "user"    // a person wrote it
	InputTask    = "task"    // work to do
	InputMessage = "message" // another agent wrote it
	InputResult  = "result"  // the result of a task
	InputNotice  = "notice"  // something to know, with a turn
	InputRecord  = "record"  // something to know, without a turn
)

// Kinds of a history row.
const (
	EntryInput   = "input"
	EntryContext = "context"
	EntryAnswer  = "answer"
	EntryResult  = "result"
	EntryNote    = "note"
	EntrySummary = "summary"
)

// AgentOutput is the payload of agent.output. Publishing it in the lane of
// a turn ends that turn: its inputs are settled, its open calls are closed, and
// the text goes to the reply target.
type AgentOutput struct {
	Session string `json:"session"`
	Turn    int64  `json:"turn"`    // assigned by the kernel
	Outcome string `json:"outcome"` // ok, error, cancelled, timeout, capped, dead
	Text    string `json:"text"`
	ReplyTo string `json:"reply_to,omitempty"` // assigned by the kernel
	// For a session whose outbound is an extension, assigned by the kernel: the
	// extension, its key of the session, and the thread of the turn's input.
	Extension string `json:"extension,omitempty"`
	Key       string `json:"key,omitempty"`
	Thread    string `json:"thread,omitempty"`
	// Partial is the beginning of an answer that was cut off. An agent publishes it as
	// a prefix of Text. If the turn did not end well, an extension gets everything
	// that the model has said in the turn, and Text without it.
	Partial string `json:"partial,omitempty"`
	// Input is the dedupe key under which that extension queued the first input of
	// the turn; empty: it did not queue it, or without a key.
	Input string `json:"input,omitempty"`
}

// Keys of an input's meta that an agent's run loop uses.
const (
	MetaModel        = "model"        // for this turn instead of the agent's own
	MetaInstructions = "instructions" // for this turn instead of the agent's own; agent.context is left out
	// Results of agent.context tools for this turn: texts by tool name. They are
	// recorded with the input, and the tools are not called.
	MetaContext = "context"
)

// SkippedCall is the result of a call that did not run because a newer message of
// the user interrupted its turn.
const SkippedCall = "skipped: new message"

// InterruptedCall is the result of a call that waited until a newer message of the user
// came.
const InterruptedCall = "interrupted: the user has written something new; nothing was done. " +
	"Call it again if it is still needed."

// MaxInterruptions is how often newer messages of the user may interrupt a turn;
// after that it runs to its end first.
const MaxInterruptions = 3

// FinishAside is the finish of a model's answer that means nothing to another model,
// such as that it did not understand the person. Agents leave such an exchange out of
// the history.
const FinishAside = "aside"

// Outcomes of a turn.
const (
	OutcomeOK        = "ok"
	OutcomeError     = "error"
	OutcomeCancelled = "cancelled"
	OutcomeTimeout   = "timeout"
	OutcomeCapped    = "capped"
	OutcomeDead      = "dead"
)

// ChannelSend is the payload of channel.send.<channel>: one part of one text. The
// first part replaces the draft. A channel that shows drafts may also get a DraftID
// with an empty text, which removes the draft.
type ChannelSend struct {
	// Text is the text to show. The kernel prepends RepeatMark to a repetition that
	// people may see twice.
	Text string `json:"text"`
	// Unmarked is Text without that mark, for operations that repeat nothing, such as
	// editing a draft; empty: Text has no mark.
	Unmarked     string `json:"unmarked,omitempty"`
	Conversation string `json:"conversation,omitempty"` // the channel's own address; empty: the default recipient
	Thread       string `json:"thread,omitempty"`
	Owner        string `json:"owner,omitempty"`    // user id of the owner on this channel, if known
	Language     string `json:"language,omitempty"` // of the recipient, an IETF tag; empty: English or unknown
	ReplyTo      string `json:"reply_to,omitempty"` // the platform's message id
	DraftID      string `json:"draft_id,omitempty"`
	Part         int    `json:"part,omitempty"` // from 1
	Parts        int    `json:"parts,omitempty"`
	Kind         string `json:"kind"`              // reply, notice, send
	Session      string `json:"session,omitempty"` // the session that sent it
	Call         string `json:"call,omitempty"`    // the tool call that waits for the receipt
	// Question is the id of the question in this text.
	Question string `json:"question,omitempty"`
	// Attachments and Actions belong to the last part of the text.
	Attachments []Attachment `json:"attachments,omitempty"`
	Actions     []Action     `json:"actions,omitempty"`
	// Detours lists the channels that the text was moved from.
	Detours []string `json:"detours,omitempty"`
	// Anywhere: no channel was named and none was ready, so the first one to become
	// ready may send it.
	Anywhere bool `json:"anywhere,omitempty"`
	// Asked: the recipient asked for it at this time: quiet hours do not hold it back.
	Asked bool `json:"asked,omitempty"`
	// Private is that of the UserNotify.
	Private bool `json:"private,omitempty"`
}

// RemovesDraft reports whether s only removes a draft.
func (s ChannelSend) RemovesDraft() bool {
	return s.Text == "" && len(s.Attachments) == 0 && s.DraftID != ""
}

// Kinds of a send.
const (
	SendReply  = "reply"  // answers a message; never leaves its conversation
	SendNotice = "notice" // a reminder or the result of a job
	SendDirect = "send"   // names its channel: send_to_channel, channels send
)

// UserNotify is the payload of system.user.notify: a notice for the user.
type UserNotify struct {
	Text        string       `json:"text"`
	Attachments []Attachment `json:"attachments,omitempty"` // the event keeps their files
	// Actions use commands of the extension that publishes the notice. In a channel
	// without buttons the commands stand below the text.
	Actions   []Action `json:"actions,omitempty"`
	ChannelID string   `json:"channel_id,omitempty"`
	ReplyTo   string   `json:"reply_to,omitempty"`
	// Asked: the recipient asked for it at this time: quiet hours do not hold it back.
	Asked bool `json:"asked,omitempty"`
	// Private: it is for the owner alone, and never goes to a group.
	Private bool `json:"private,omitempty"`
	// Translate: the text and the labels were made with package words; the recipient gets
	// them in their language.
	Translate bool `json:"translate,omitempty"`
}

// UserAsk is the payload of system.user.ask: a question for a person. It blocks
// nothing: the answer, or its absence, comes as an event.
type UserAsk struct {
	Text string `json:"text"`
	// Kind is approve (yes or no), choose (one of Options) or answer (any text).
	Kind    string   `json:"kind"`
	Options []string `json:"options,omitempty"`
	// ExpiresSeconds is how long to wait for an answer; 0: a day.
	ExpiresSeconds int64  `json:"expires_seconds,omitempty"`
	ChannelID      string `json:"channel_id,omitempty"`
	ReplyTo        string `json:"reply_to,omitempty"` // see UserNotify
	// Topic is where the answer is published. The asking extension must own it.
	Topic string `json:"topic"`
	Ref   string `json:"ref,omitempty"` // handed back with the answer
	// Translate is that of the UserNotify. An option comes back as it was shown.
	Translate bool `json:"translate,omitempty"`
}

// Kinds of a question.
const (
	AskApprove = "approve"
	AskChoose  = "choose"
	AskAnswer  = "answer"
)

// UserAnswer is the payload of the event that ends a question.
type UserAnswer struct {
	Question string `json:"question"`
	Ref      string `json:"ref,omitempty"`
	Outcome  string `json:"outcome"`          // answered, expired, withdrawn
	Answer   string `json:"answer,omitempty"` // of approve: yes or no; of choose: the option
	By       string `json:"by,omitempty"`     // who answered, as shown to people
}

// Outcomes of a question.
const (
	AskAnswered  = "answered"
	AskExpired   = "expired"
	AskWithdrawn = "withdrawn"
)

// ToolCall is the payload of tool.call.<extension>: the event's source calls a tool of
// that extension by the effect call.
//
//	{"id": "tea", "call": "c7", "tool": "scheduler/schedule_once",
//	 "arguments": {"text": "Drink the tea", "in_seconds": 300}, "reply_to": "k3jx"}
type ToolCall struct {
	ID        string          `json:"id"`   // the caller's
	Call      string          `json:"call"` // the kernel's
	Tool      string          `json:"tool"` // <extension>/<tool>
	Arguments json.RawMessage `json:"arguments,omitempty"`
	ReplyTo   string          `json:"reply_to,omitempty"` // where the tool's own texts go; empty: the preferred channel
}

// ToolResult is the payload of tool.result.<extension>: how a call of that extension
// ended. It is caused by the tool.call event.
//
//	{"id": "tea", "tool": "scheduler/schedule_once", "content": "{\"id\": \"r1\", \"status\": \"scheduled\"}"}
type ToolResult struct {
	ID      string `json:"id"`   // of the call, as the extension chose it
	Tool    string `json:"tool"` // <extension>/<tool>
	Content string `json:"content"`
	// Error: the call failed or was refused, or its outcome is unknown; Content says why.
	Error bool `json:"error,omitempty"`
}

// Command is the payload of command.<name>: a person used a slash command of an
// extension. The answer goes to ReplyTo.
type Command struct {
	Name    string   `json:"name"`
	Text    string   `json:"text,omitempty"` // the text after the name
	Session string   `json:"session"`        // of the conversation, with the agent that answers there
	Agent   string   `json:"agent"`
	ReplyTo string   `json:"reply_to"`
	Channel string   `json:"channel"`
	Group   bool     `json:"group,omitempty"`
	Sender  string   `json:"sender,omitempty"`
	Memory  []string `json:"memory,omitempty"` // scopes of memory that the agent may read and write
	// MessageID is the platform's id of the message with the command.
	MessageID string    `json:"message_id,omitempty"`
	Language  string    `json:"language,omitempty"` // of the sender, an IETF tag; empty: English
	Timezone  string    `json:"timezone,omitempty"` // of the sender, an IANA name; empty: the configured one
	Principal Principal `json:"principal,omitzero"`
	Accounts  []string  `json:"accounts,omitempty"` // of the Principal
}

// Caller returns for whom the command is, with the Accounts.
func (c Command) Caller() Principal {
	p := c.Principal
	p.Accounts = c.Accounts
	return p
}

// ToolFindPerson is the private tool that returns the Recipient of a person's name:
// {person, channel_id?}, also of an account, as @ and its id. An extension asks for it when
// it is given a message to keep for them, and says whom it will reach.
const ToolFindPerson = "core/find_person"

// Recipient is where a message for a person goes.
type Recipient struct {
	Name      string `json:"name"`
	ChannelID string `json:"channel_id"`
	ReplyTo   string `json:"reply_to,omitempty"` // opaque handle; empty: no message was ever sent there
	Language  string `json:"language,omitempty"` // an IETF tag; empty: English
	From      string `json:"from"`               // the name of the person who sends it, in that language
	Text      string `json:"text"`               // for models, such as: Anna on Telegram (private)
	// Accounts are those of the person, with Owner for the owner; Timezone is an IANA name,
	// empty: the configured one; Quiet is the quiet hours, empty: none.
	Accounts []string `json:"accounts,omitempty"`
	Timezone string   `json:"timezone,omitempty"`
	Quiet    string   `json:"quiet,omitempty"`
}

// AgentTask is the payload of system.agent.task: a job for an agent.
type AgentTask struct {
	Prompt    string `json:"prompt"`
	ChannelID string `json:"channel_id,omitempty"`
	ReplyTo   string `json:"reply_to,omitempty"`
	AgentID   string `json:"agent_id,omitempty"`
	Name      string `json:"name,omitempty"` // of the job; empty: one session per event
	// Quiet: people get only messages that the agent sends with tools; its final
	// text stays in the session's history.
	Quiet bool `json:"quiet,omitempty"`
	// Principal is that of the call which asked for the job. The job may use no more
	// than its group may.
	Principal Principal `json:"principal,omitzero"`
}

// AgentBackground is the payload of system.agent.background: a job whose final text
// stays in the session's history.
type AgentBackground struct {
	Prompt    string    `json:"prompt"`
	AgentID   string    `json:"agent_id,omitempty"`
	Name      string    `json:"name,omitempty"`
	Principal Principal `json:"principal,omitzero"` // see AgentTask
}

// DeliveryDead is the payload of system.delivery.dead.
type DeliveryDead struct {
	EventID   string `json:"event_id"`
	Topic     string `json:"topic"`
	Extension string `json:"extension"`
	Attempts  int    `json:"attempts"`
	Reason    string `json:"reason"`
}

// States of an extension's process.
const (
	StateActive     = "active" // it serves
	StateInactive   = "inactive"
	StateStarting   = "starting"
	StateStopping   = "stopping"
	StateBackingOff = "backing_off"
	StateFailed     = "failed" // it stays down until the owner acts
)

// ExtensionState is the payload of system.extension.<state>.
type ExtensionState struct {
	Extension string `json:"extension"`
	State     string `json:"state"`
	Readiness string `json:"readiness,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// PersonRevoked is the payload of system.person.revoked: a person may not talk to the
// assistant any more. The kernel has ended what ran and waited for them. An extension
// ends what it keeps for the person, the conversations and the sessions, and may publish
// PersonEnded as <id>.ended, which the owner is shown.
type PersonRevoked struct {
	Person        string   `json:"person"`                  // opaque id of the account, as in Principal
	Removed       bool     `json:"removed,omitempty"`       // everything that is the person's own is deleted, too
	Conversations []string `json:"conversations,omitempty"` // handles, which reach no one any more
	Sessions      []string `json:"sessions,omitempty"`      // of these, and those made within them
}

// SetUp reports whether the person set something up, in private or in a group.
func (r PersonRevoked) SetUp(of Principal) bool { return r.Person != "" && r.Person == of.Person }

// Deletes reports whether something is deleted: it is the own of a person who is removed.
func (r PersonRevoked) Deletes(of Principal) bool { return r.Removed && of.Own && r.SetUp(of) }

// PersonChanged is the payload of system.person.changed: what has become of an account.
type PersonChanged struct {
	Account string `json:"account"` // opaque id, as in Principal
	Person  string `json:"person"`  // opaque id of the person whose account it is now
	Change  string `json:"change"`  // linked, unlinked, or a role
}

// PersonEnded is what an extension has ended for a person who was revoked.
type PersonEnded struct {
	Kind  string   `json:"kind"`  // in the singular: reminder
	Names []string `json:"names"` // for people
}

// ConversationStopped is the payload of system.conversation.stopped: a person stopped
// everything in a conversation. The kernel has ended its turns and what waited there.
// An extension ends what it does for the conversation without starting a turn there,
// and tells the person what that was.
type ConversationStopped struct {
	Conversation string   `json:"conversation"` // its handle
	Sessions     []string `json:"sessions"`     // of the agents that have talked there
	Language     string   `json:"language,omitempty"`
}

// SchedulesDeclared is the payload of schedules.declared: all schedules of one
// extension's manifest. An empty list removes them.
type SchedulesDeclared struct {
	Extension string             `json:"extension"`
	Schedules []DeclaredSchedule `json:"schedules"`
}

// DeclaredSchedule is one entry of a manifest's schedules.
type DeclaredSchedule struct {
	Name     string         `json:"name"`
	Cron     string         `json:"cron,omitempty"`
	Every    int64          `json:"every_seconds,omitempty"` // instead of Cron
	Topic    string         `json:"topic"`
	Timezone string         `json:"timezone,omitempty"`
	Payload  map[string]any `json:"payload,omitempty"`
}

// ModelUsage is the payload of model.usage.
type ModelUsage struct {
	Agent        string `json:"agent"`
	Session      string `json:"session"`
	Person       string `json:"person,omitempty"` // the account for whom; empty: no person
	Model        string `json:"model"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	CachedTokens int64  `json:"cached_tokens,omitempty"` // input tokens that came from the provider's cache
	AudioMS      int64  `json:"audio_ms,omitempty"`      // length of the recording that was transcribed
	CostMicros   int64  `json:"cost_micros,omitempty"`   // by the model's price, in millionths of the currency
	Currency     string `json:"currency,omitempty"`      // of the cost
	Purpose      string `json:"purpose,omitempty"`       // empty: a step of a turn
	// Estimated: the provider reported no usage; the tokens are estimated from sizes.
	Estimated bool `json:"estimated,omitempty"`
}

// KernelSource is the source of events that the kernel publishes.
const KernelSource = "kernel"
