// Package agent is the run loop of an agent: the only code that runs a turn.
//
//	sdk.Serve(agent.Extension("chat", agent.Options{}))
//
// A turn is a durable execution by history. Each step is one commit under the
// lane token of the input: the loop records a model's answer before it runs the
// calls in it, the kernel records the result of a call together with the call's
// effects, and the final text is recorded together with the ack. The next step
// follows from the recorded rows alone (see next), so a turn that lost its
// process resumes after its last recorded step: no model is asked again for a
// recorded answer, and no finished call runs again.
//
// A plain turn (one input, one answer) is one commit: the ack with the input, the
// answer and the output. Until the first answer only the input is on disk, so
// after a crash the model is asked again.
//
// Promises: sessions are independent and concurrent; within one session the
// kernel's lane is the order. A turn that lost its lane (contract.ErrStale)
// stops and leaves nothing behind. Every turn ends with an output that says how it
// ended, unless the kernel ends it first. A history is kept in memory between
// turns, bounded, and used only while the kernel says that it is current.
// Drafts are best effort: they never hold up a turn, and may be lost.
//
// Not promised: which of two read-only calls of one answer runs first.
//
// # What a model sees
//
// A request begins with all of the request before it, so that a provider can
// cache it: the tools, the system prompt (Options.Prompts), the history, and what
// is new. The exceptions are a summary and what is left out without one, both in
// large steps, a changed tool or prompt, and context, which is shown in its own
// turn only.
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
// The word is the kind of the input (task, message, result, notice, record) or of
// the row (note, context, summary). In front of a text stands what changes while
// a conversation goes on, such as the time; see SplitTold. It is recorded with the
// message.
//
// Tools have the names of WireName. Those that the agent does not offer are found
// with core/find_tools and called through core/use_tool; the recorded call is that
// of the real tool.
package agent
