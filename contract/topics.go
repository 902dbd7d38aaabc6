package contract

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
	TopicSchedulesDeclared = "schedules.declared"
	TopicSessionIdle       = "session.idle." // + extension id
	TopicModelUsage        = "model.usage"
)

// UserMessage is the payload of user.message. The channel is the event's
// source; what a channel says of the person is a report, and the router alone
// decides who is admitted.
type UserMessage struct {
	Text           string `json:"text"`
	UserID         string `json:"user_id"`
	UserName       string `json:"user_name,omitempty"` // as shown to people
	ConversationID string `json:"conversation_id"`     // the channel's own address
	ThreadID       string `json:"thread_id,omitempty"`
	// Group says that others can read the conversation: the sender is then
	// named to the agent, and strangers are met with silence.
	Group     bool   `json:"group,omitempty"`
	AgentID   string `json:"agent_id,omitempty"`
	MessageID string `json:"message_id,omitempty"` // the platform's, within the conversation
	// Edited says that MessageID was reported before and has changed: before its
	// turn the text is replaced, later the change is noted.
	Edited      bool         `json:"edited,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	// SentAt is when the person wrote it, Unix seconds, if the platform tells.
	SentAt int64 `json:"sent_at,omitempty"`
}

// Attachment is something a message carries besides text.
type Attachment struct {
	Kind string `json:"kind"` // photo, voice, document, ...
	Name string `json:"name,omitempty"`
	Blob string `json:"blob,omitempty"` // SHA-256 of the file, in hexadecimal; empty: it was not stored
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"` // in bytes; 0: unknown
}

// Action is a button that a message offers.
type Action struct {
	ID    string `json:"id"` // what the channel reports when a person presses it
	Label string `json:"label"`
}

// SessionIdle is the payload of session.idle.<extension>, which that extension
// has asked for.
type SessionIdle struct {
	Session string `json:"session"`
}

// AgentInput is the payload of agent.input.<agent>.
type AgentInput struct {
	Session string         `json:"session"`
	Kind    string         `json:"kind"`
	Sender  string         `json:"sender,omitempty"`
	Text    string         `json:"text"`
	ReplyTo string         `json:"reply_to,omitempty"`
	Group   bool           `json:"group,omitempty"`
	SentAt  int64          `json:"sent_at,omitempty"`
	Meta    map[string]any `json:"meta,omitempty"`
	// Thread names the conversation that it belongs to, where the session holds
	// several at once. A model sees of the others nothing.
	Thread string `json:"thread,omitempty"`
}

// Kinds of an input.
const (
	InputUser    = "user"    // a person wrote it
	InputTask    = "task"    // work to do
	InputMessage = "message" // another agent wrote it
	InputResult  = "result"  // what became of a task
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

// AgentOutput is the payload of agent.output. Publishing it under the lane of
// a turn ends that turn: its inputs are settled, its open calls are closed, and
// the text goes to the reply target.
type AgentOutput struct {
	Session string `json:"session"`
	Turn    int64  `json:"turn"`    // assigned by the kernel
	Outcome string `json:"outcome"` // ok, error, cancelled, timeout, capped, dead
	Text    string `json:"text"`
	ReplyTo string `json:"reply_to,omitempty"` // assigned by the kernel
	// Of a session whose outbound is an extension, assigned by the kernel: the
	// extension, by what it knows the session, and the thread of the turn's input.
	Extension string `json:"extension,omitempty"`
	Key       string `json:"key,omitempty"`
	Thread    string `json:"thread,omitempty"`
	// Partial, published by an agent, is the words of an answer that did not end,
	// with which its text begins. An extension gets, if the turn did not end well, all
	// that the model had said in it so far, and the text without those words.
	Partial string `json:"partial,omitempty"`
	// Input is the dedupe key under which that extension had queued the first
	// input of the turn; empty: somebody else had, or without one.
	Input string `json:"input,omitempty"`
}

// Keys of an input's meta that the run loop of an agent heeds.
const (
	MetaModel        = "model"        // asked in this turn instead of the agent's own
	MetaInstructions = "instructions" // in this turn instead of the agent's own; it is asked without agent.context
	// What tools of agent.context would say about this turn, as texts by the names
	// of the tools. It is recorded with the input, and they are not asked.
	MetaContext = "context"
)

// SkippedCall is the result of a call that was not run because a newer message
// of the user interrupted its turn.
const SkippedCall = "skipped: new message"

// MaxInterruptions is how often a turn may be interrupted by newer messages of
// its user; after that it runs to its end first.
const MaxInterruptions = 3

// Outcomes of a turn.
const (
	OutcomeOK        = "ok"
	OutcomeError     = "error"
	OutcomeCancelled = "cancelled"
	OutcomeTimeout   = "timeout"
	OutcomeCapped    = "capped"
	OutcomeDead      = "dead"
)

// ChannelSend is the payload of channel.send.<channel>: one part of one text. Its
// first part takes the place of the draft. A channel that shows drafts may also
// get a draft with an empty text: there is nothing to say, the draft is removed.
type ChannelSend struct {
	// Text is what to show. In a repetition that people may see twice it begins with
	// RepeatMark, which the kernel puts there when it hands the send out.
	Text string `json:"text"`
	// Unmarked is Text without that mark, for what repeats nothing, such as editing a
	// draft; empty: Text has no mark.
	Unmarked     string `json:"unmarked,omitempty"`
	Conversation string `json:"conversation,omitempty"` // empty: the default recipient
	Thread       string `json:"thread,omitempty"`
	Owner        string `json:"owner,omitempty"`    // user id of the owner on this channel, if known
	ReplyTo      string `json:"reply_to,omitempty"` // the platform's message id
	DraftID      string `json:"draft_id,omitempty"`
	Part         int    `json:"part,omitempty"` // from 1
	Parts        int    `json:"parts,omitempty"`
	Kind         string `json:"kind"`              // reply, notice, send
	Session      string `json:"session,omitempty"` // the session that sent it
	Call         string `json:"call,omitempty"`    // the tool call that waits for the receipt
	// Question is the id of the question that this text asks.
	Question string `json:"question,omitempty"`
	// Attachments and Actions belong to the last part of the text.
	Attachments []Attachment `json:"attachments,omitempty"`
	Actions     []Action     `json:"actions,omitempty"`
	// Detours counts the channels this text was moved from.
	Detours []string `json:"detours,omitempty"`
	// Anywhere says that no channel was named and none was ready: the first one
	// that is may have it.
	Anywhere bool `json:"anywhere,omitempty"`
}

// RemovesDraft reports whether this only removes a draft.
func (s ChannelSend) RemovesDraft() bool { return s.Text == "" && s.DraftID != "" }

// Kinds of a send.
const (
	SendReply  = "reply"  // answers a message; never leaves its conversation
	SendNotice = "notice" // a reminder or the result of a job
	SendDirect = "send"   // asked for by name: send_to_channel, channels send
)

// UserNotify is the payload of system.user.notify: tell the person something.
type UserNotify struct {
	Text      string `json:"text"`
	ChannelID string `json:"channel_id,omitempty"`
	ReplyTo   string `json:"reply_to,omitempty"`
}

// UserAsk is the payload of system.user.ask: ask a person something. It holds
// nothing up: the answer, or that none came in time, is an event of its own.
type UserAsk struct {
	Text string `json:"text"`
	// Kind is approve (yes or no), choose (one of Options) or answer (any text).
	Kind    string   `json:"kind"`
	Options []string `json:"options,omitempty"`
	// ExpiresSeconds is how long an answer is waited for; 0: a day.
	ExpiresSeconds int64  `json:"expires_seconds,omitempty"`
	ChannelID      string `json:"channel_id,omitempty"`
	ReplyTo        string `json:"reply_to,omitempty"` // as of a notice
	// Topic is where the answer is published: one that the asking extension owns.
	Topic string `json:"topic"`
	Ref   string `json:"ref,omitempty"` // handed back with the answer
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

// Command is the payload of command.<name>: a person gave a slash command that
// an extension declares. The answer goes back to ReplyTo.
type Command struct {
	Name    string   `json:"name"`
	Text    string   `json:"text,omitempty"` // what stood behind the name
	Session string   `json:"session"`        // of the conversation, with the agent that answers there
	Agent   string   `json:"agent"`
	ReplyTo string   `json:"reply_to"`
	Channel string   `json:"channel"`
	Group   bool     `json:"group,omitempty"`
	Sender  string   `json:"sender,omitempty"`
	Memory  []string `json:"memory,omitempty"` // scopes of memory that the agent may read and write
	// MessageID is the platform's id of the message with the command.
	MessageID string `json:"message_id,omitempty"`
}

// AgentTask is the payload of system.agent.task: have an agent do something.
type AgentTask struct {
	Prompt    string `json:"prompt"`
	ChannelID string `json:"channel_id,omitempty"`
	ReplyTo   string `json:"reply_to,omitempty"`
	AgentID   string `json:"agent_id,omitempty"`
	Name      string `json:"name,omitempty"` // of the job; empty: one session per event
	// Quiet says that only what the agent sends by itself reaches anybody; its
	// final text stays in the session's history.
	Quiet bool `json:"quiet,omitempty"`
}

// AgentBackground is the payload of system.agent.background: as a task, whose
// final text stays in the session's history.
type AgentBackground struct {
	Prompt  string `json:"prompt"`
	AgentID string `json:"agent_id,omitempty"`
	Name    string `json:"name,omitempty"`
}

// DeliveryDead is the payload of system.delivery.dead.
type DeliveryDead struct {
	EventID   string `json:"event_id"`
	Topic     string `json:"topic"`
	Extension string `json:"extension"`
	Attempts  int    `json:"attempts"`
	Reason    string `json:"reason"`
}

// ExtensionState is the payload of system.extension.<state>.
type ExtensionState struct {
	Extension string `json:"extension"`
	State     string `json:"state"`
	Readiness string `json:"readiness,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// SchedulesDeclared is the payload of schedules.declared: all schedules that
// one extension's manifest declares now. An empty list removes them.
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
	Model        string `json:"model"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	CachedTokens int64  `json:"cached_tokens,omitempty"` // of the input: those that the provider had in its cache
	Purpose      string `json:"purpose,omitempty"`       // empty: a step of a turn
	// Estimated: the provider did not say; the tokens follow from sizes.
	Estimated bool `json:"estimated,omitempty"`
}

// KernelSource is the source of events that the kernel publishes.
const KernelSource = "kernel"
