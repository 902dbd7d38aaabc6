package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// purposeSummary is kept with what a summary costs.
	purposeSummary = "summary"
	// summaryTime is how long a turn waits for a summary before it goes on without.
	summaryTime = time.Minute
	// summaryPause is how long none is asked for after one that failed.
	summaryPause = 10 * time.Minute
	// summaryTokens is the most tokens of a summary.
	summaryTokens = 1000
	// summaryLine is the most bytes of one row that a summary is made from.
	summaryLine = 2000
)

const summaryInstructions = `You keep the memory of a conversation between an assistant and its user. Write down, in the language of the conversation and in at most 400 words, what the assistant needs to know to go on: who the user is and what they want, decisions, facts, names, dates, numbers, what was done and with which result, and what is still open. Leave out greetings and what is settled and of no further use. If there is an earlier summary, merge it in. Write the summary only.`

// summarize replaces the older half of the rows by a summary when a turn begins
// and not all of them fit into a request. The rows stay stored. If it fails, the
// turn goes on with the newest turns alone.
func (t *turn) summarize() error {
	if t.a.forgets || t.thread() != "" || len(t.own()) > 0 || len(t.history.rows) == 0 || time.Now().UnixNano() < t.a.unsummed.Load() {
		return nil
	}
	if err := t.compose(); err != nil {
		return err
	}
	rows := t.history.rows
	old := summaryOf(rows)
	rows = rows[firstBehind(rows, old.GetCovers()):]
	room := max(t.budget(old)-t.a.limits.bytes/4, t.a.limits.bytes/8) // a quarter is for what the turn itself will add
	if window(rows, len(rows), room, maxRows) == 0 {
		return nil
	}
	kept := window(rows, len(rows), room/2, maxRows/2)
	if kept == 0 {
		return nil
	}
	kept = summable(rows[:kept], t.a.limits.bytes*3/4-len(old.GetText()))
	text, err := t.summary(old, rows[:kept])
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case errors.Is(err, contract.ErrStale):
		return err
	case err != nil:
		t.a.log.Info("summarize a long history: leaving out its oldest turns", "session", t.context.GetSession(), "error", err)
		t.a.unsummed.Store(time.Now().Add(summaryPause).UnixNano())
		return nil
	}
	row := &busv1.Entry{Kind: contract.EntrySummary, Text: text, Covers: rows[kept-1].GetSeq()}
	t.fresh = append([]*busv1.Entry{row}, t.fresh...)
	return nil
}

// summable is how many of the rows fit into one request for a summary, up to the
// end of a turn, the first one in any case. What is behind them is for the next.
func summable(rows []row, bytes int) int {
	end := 0
	for i, r := range rows {
		if bytes -= min(r.bytes, entryOverhead+summaryLine); bytes < 0 && end > 0 {
			return end
		}
		if i+1 < len(rows) && rows[i+1].turn != r.turn {
			end = i + 1
		}
	}
	return len(rows)
}

// summary asks the model for one.
func (t *turn) summary(old *busv1.Entry, rows []row) (string, error) {
	var b strings.Builder
	if old != nil {
		fmt.Fprintf(&b, "Earlier summary:\n%s\n\n", old.GetText())
	}
	b.WriteString("The conversation since:\n")
	names := map[string]string{}
	for _, r := range rows {
		switch r.GetKind() {
		case contract.EntryAnswer:
			if r.GetText() != "" {
				fmt.Fprintf(&b, "assistant: %s\n", cutText(r.GetText(), summaryLine))
			}
			for _, c := range r.GetCalls() {
				names[c.GetCallId()] = c.GetName()
				fmt.Fprintf(&b, "assistant calls %s %s\n", c.GetName(), cutText(string(c.GetArguments()), summaryLine/4))
			}
		case contract.EntryResult:
			fmt.Fprintf(&b, "result of %s: %s\n", names[r.GetCallId()], cutText(r.GetText(), summaryLine/2))
		case contract.EntryInput, contract.EntryNote:
			fmt.Fprintf(&b, "%s\n", shown(r.Entry, true, summaryLine))
		}
	}
	ctx, cancel := context.WithTimeout(t.ctx, summaryTime)
	defer cancel()
	var text strings.Builder
	err := t.a.kernel.Complete(ctx, &kernelv1.CompleteRequest{
		Model: t.a.model, Purpose: purposeSummary, MaxTokens: summaryTokens,
		Messages: []*extensionv1.Message{
			{Role: "system", Content: summaryInstructions},
			{Role: "user", Content: cutText(b.String(), t.a.limits.bytes)},
		},
	}, func(d *sdk.Delta) error {
		text.WriteString(d.GetText())
		return nil
	})
	if err == nil && strings.TrimSpace(text.String()) == "" {
		err = errors.New("the model gave an empty summary")
	}
	return cutText(strings.TrimSpace(text.String()), t.a.limits.bytes/4), err
}

// summaryOf is the newest summary among rows; nil if there is none.
func summaryOf(rows []row) *busv1.Entry {
	for _, r := range slices.Backward(rows) {
		if r.GetKind() == contract.EntrySummary {
			return r.Entry
		}
	}
	return nil
}

// firstBehind is the index of the first row that a summary does not stand for.
func firstBehind(rows []row, covers int64) int {
	for i, r := range rows {
		if covers == 0 || r.GetSeq() > covers {
			return i
		}
	}
	return len(rows)
}
