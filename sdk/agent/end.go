package agent

import (
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// maxOutput bounds a final text, in bytes: an event holds 1 MiB of JSON, which may
// need six bytes for one byte of text.
const maxOutput = 128 << 10

// output ends the turn: one commit records the remaining rows and publishes the text. A
// person whose message was cut is told so.
func (t *turn) output(outcome, text string) sdk.Effects {
	if longest := t.longestCut(); longest > 0 && !contract.Blank(text) {
		text = words.Say(t.language, "Your message was too long: I read the first %d of its %d kB.\n\n",
			t.inputLimit()/1000, longest/1000) + text
	}
	if said := t.understood(); said != "" && !contract.Blank(text) {
		text = words.Say(t.language, "I heard: %s", said) + "\n\n" + text
	}
	if missed := t.missed(); missed != "" {
		text = strings.TrimSpace(missed + "\n\n" + text)
	}
	return outputEffects(t.context.GetSession(), t.history.seq, t.fresh, outcome, text, "")
}

// longestCut returns the size of the longest message of a person in this turn that
// requests hold only in part; 0: there is none.
func (t *turn) longestCut() (longest int) {
	note := func(e *busv1.Entry) {
		fromPerson := e.GetKind() == contract.EntryInput && e.GetInputKind() == contract.InputUser
		if fromPerson && len(e.GetText()) > t.inputLimit() {
			longest = max(longest, len(e.GetText()))
		}
	}
	for _, r := range t.own() {
		note(r.Entry)
	}
	for _, e := range t.fresh {
		note(e)
	}
	return longest
}

// end ends the turn without an answer of the model.
func (t *turn) end(outcome string, e Ending) sdk.Effects {
	e.Language = t.language
	text, partial := t.a.endingText(e), cutText(t.partial, maxOutput/2)
	if partial != "" {
		text = partial + "\n\n" + text
	}
	t.fresh = append(t.fresh, &busv1.Entry{Kind: contract.EntryNote, Text: fmt.Sprintf(
		"This turn ended without an answer (%s). The user got this text instead:\n%s", outcome, cutText(text, maxOutput))})
	return outputEffects(t.context.GetSession(), t.history.seq, t.fresh, outcome, text, partial)
}

// endingText returns the text of an ending, which is never empty. A text that is not
// built in stays as it is.
func (a *Agent) endingText(e Ending) string {
	text, err := a.prompts.Say(e)
	if err == nil && strings.TrimSpace(text) != "" {
		return words.Translate(e.Language, strings.TrimSpace(text))
	}
	if err != nil {
		a.log.Warn("render the text of an ending: using the plain one", "ending", e.Why, "error", err)
	}
	text, _ = Plain{}.Say(e)
	return words.Translate(e.Language, text)
}

// echo answers with the text of the input.
func (a *Agent) echo(d sdk.Delivery, in contract.AgentInput) sdk.Effects {
	answer := &busv1.Entry{Kind: contract.EntryAnswer, Text: in.Text}
	entries := []*busv1.Entry{inputRow(d.ID, in), answer}
	if d.Turn.GetResumed() {
		entries = entries[1:]
	}
	return outputEffects(d.Turn.GetSession(), d.Turn.GetHistorySeq(), entries, contract.OutcomeOK, in.Text, "")
}

// outputEffects ends a turn with a text, which begins with partial, the beginning of
// an answer that was cut off.
func outputEffects(session string, seq int64, entries []*busv1.Entry, outcome, text, partial string) sdk.Effects {
	var effects sdk.Effects
	if len(entries) > 0 {
		effects = append(effects, appendRows(session, seq, entries))
	}
	return append(effects, sdk.Publish(contract.TopicAgentOutput, contract.AgentOutput{
		Session: session, Outcome: outcome, Text: cutText(text, maxOutput), Partial: partial,
	}, sdk.Key(session)))
}

func appendRows(session string, seq int64, entries []*busv1.Entry) sdk.Effect {
	return sdk.Raw(&busv1.Append{Session: session, ExpectedSeq: seq, Entries: entries})
}
