// Package agent is the run loop of an agent: the only code that runs a turn.
//
//	sdk.Serve(agent.Extension("chat", agent.Options{}))
//
// A turn is a durable execution by history. Every step is one commit under the
// lane token of the input being handled: the answer of a model is recorded
// before the calls that it asks for are run, the result of a call is recorded
// by the kernel together with the call's effects, and the final text is
// recorded together with the acknowledgement. What happens next follows from
// the recorded rows alone (see next), so a turn that lost its process goes on
// from its last recorded step: a model is not asked again for a recorded
// answer, and a finished call is not run again.
//
// A plain turn (one input, one answer) is one commit: the acknowledgement with
// the input, the answer and the output. Until the model has answered for the
// first time nothing of a turn is on disk but its input, so a crash before
// that asks the model again.
//
// Promises: sessions are independent and concurrent; within one session the
// kernel's lane is the order. A turn whose lane is lost (contract.ErrStale)
// stops without a trace. Every turn ends with an output that says how it
// ended, unless the kernel ends it first. A history is kept in memory between
// turns, bounded, and used only while the kernel says that it is current.
// Drafts are best effort: they never hold up a turn, and may be lost.
//
// Not promised: which of two read-only calls of one answer runs first.
//
// # What a model sees
//
// A user's text is a message of its own, as written; in a group it begins with
// "Name: ". Whatever does not come from a user is a message of this form, whose
// fence is longer than any in the text, so that the text cannot leave it:
//
//	[notice from scheduler]
//	~~~
//	the text
//	~~~
//
// with the kind of the input (task, message, result, notice, record) or of the
// row (note, context, summary). Names of tools are "send_to_channel" for
// core/send_to_channel. The system prompt comes from Options.Prompts.
package agent
