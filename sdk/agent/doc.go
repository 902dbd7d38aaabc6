// Package agent implements the run loop of agents, which runs turns.
//
//	sdk.Serve(agent.Extension("chat", agent.Options{}))
//
// A turn is a durable execution, driven by its history. Each step is one commit
// under the lane token of the input: the loop records a model's answer before it
// runs the calls in it, the kernel records the result of a call together with the
// call's effects, and the final text is recorded together with the ack. The next
// step depends only on the recorded rows (see next), so after a crash a turn resumes
// after its last recorded step: no model is asked again for a recorded answer, and no
// finished call runs again.
//
// A plain turn (one input, one answer) is one commit: the ack with the input, the
// answer and the output. Until the first answer only the input is on disk, so
// after a crash the model is asked again.
//
// Promises: sessions are independent and concurrent; within one session the
// kernel's lane sets the order. A turn that lost its lane (contract.ErrStale) stops
// without further effects. Every turn ends with an output that has its outcome,
// unless the kernel ends it first. Histories are cached between turns, in bounded
// memory, and used only if the kernel confirms that they are current. Drafts are best
// effort: they never delay a turn, and may be lost.
//
// A picture that comes with an input is shown to the model in the turn of that input,
// scaled and without its metadata. Later turns only name it.
//
// Not promised: which of two read-only calls of one answer runs first.
//
// # What a model sees
//
// A request begins with the whole previous request, so that a provider can cache it:
// the tools, the system prompt (Options.Prompts), the history, and the new messages.
// The exceptions are a summary, old turns left out without one (both rare, in large
// steps), a changed tool or prompt, and context, which is sent only in its own turn.
//
// A user's text is a message of its own, as written; in a group it begins with
// "Name: ". A message that is not a user's has this form, with a fence that is
// longer than any in the text, so that the text cannot close it:
//
//	[notice from scheduler]
//	~~~
//	the text
//	~~~
//
// The first word is the kind of the input (task, message, result, notice, record) or
// of the row (note, context, summary). A preamble before the text has facts that
// change during a conversation, such as the time; see SplitPreamble. It is recorded
// with the message.
//
// WireName defines the names of tools. The model finds tools that the agent does not
// offer with core/find_tools and calls them through core/use_tool; the recorded call
// is that of the inner tool.
package agent
