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
	// purposeSummary is the purpose recorded with a summary's usage.
	purposeSummary = "summary"
	// summaryTimeout is how long a turn waits for a summary.
	summaryTimeout = time.Minute
	// summaryPause is the pause after a failed summary.
	summaryPause = 10 * time.Minute
	// summaryTokens bounds a summary, in tokens; small windows allow less.
	summaryTokens = 1000
	// maxSummaryLine bounds one row of the text to summarize, in bytes.
	maxSummaryLine = 2000
)

const summaryInstructions = "You keep the memory of a conversation between an assistant and its user. " +
	"Write down, in the language of the conversation and in at most %d words, what the assistant needs to know " +
	"to continue: who the user is and what they want, decisions, facts, names, dates, numbers, what was done " +
	"and with which result, and what is still open. Leave out greetings and settled points of no further use. " +
	"If there is an earlier summary, merge it in. Write only the summary."

// summarize replaces the older half of the rows with a summary if a turn begins and
// not all rows fit into a request. The rows stay stored. If it fails, requests have
// only the newest turns.
func (t *turn) summarize() error {
	if t.a.noHistory || t.thread() != "" || len(t.own()) > 0 || len(t.history.rows) == 0 ||
		time.Now().UnixNano() < t.a.noSummary.Load() {
		return nil
	}
	if err := t.compose(); err != nil {
		return err
	}
	rows := t.history.rows
	old := summaryOf(rows)
	rows = rows[firstAfter(rows, old.GetCovers()):]
	room := max(t.budget(old)-t.room()/4, t.room()/8) // a quarter is reserved for the turn itself
	if window(rows, len(rows), room, maxRows) == 0 {
		return nil
	}
	kept := window(rows, len(rows), room/2, maxRows/2)
	if kept == 0 {
		return nil
	}
	kept = summaryPrefix(rows[:kept], t.a.room(t.a.model)*3/4-len(old.GetText()))
	text, err := t.summary(old, rows[:kept])
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case errors.Is(err, contract.ErrStale):
		return err
	case err != nil:
		t.a.log.Info("summarize a long history: leaving out its oldest turns",
			"session", t.context.GetSession(), "error", err)
		t.a.noSummary.Store(time.Now().Add(summaryPause).UnixNano())
		return nil
	}
	row := &busv1.Entry{Kind: contract.EntrySummary, Text: text, Covers: rows[kept-1].GetSeq()}
	t.fresh = append([]*busv1.Entry{row}, t.fresh...)
	return nil
}

// summaryPrefix returns the number of rows to summarize in one request: whole turns
// that fit, at least one. The next summary covers the others.
func summaryPrefix(rows []row, bytes int) int {
	end := 0
	for i, r := range rows {
		if bytes -= min(r.bytes, entryOverhead+maxSummaryLine); bytes < 0 && end > 0 {
			return end
		}
		if i+1 < len(rows) && rows[i+1].turn != r.turn {
			end = i + 1
		}
	}
	return len(rows)
}

// summary asks the model for a summary of the rows and the old summary.
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
				fmt.Fprintf(&b, "assistant: %s\n", cutText(r.GetText(), maxSummaryLine))
			}
			for _, c := range r.GetCalls() {
				names[c.GetCallId()] = c.GetName()
				fmt.Fprintf(&b, "assistant calls %s %s\n", c.GetName(), cutText(string(c.GetArguments()), maxSummaryLine/4))
			}
		case contract.EntryResult:
			fmt.Fprintf(&b, "result of %s: %s\n", names[r.GetCallId()], cutText(r.GetText(), maxSummaryLine/2))
		case contract.EntryInput, contract.EntryNote:
			fmt.Fprintf(&b, "%s\n", render(r.Entry, true, maxSummaryLine))
		}
	}
	room := t.a.room(t.a.model)
	tokens := min(summaryTokens, room/8/bytesPerToken)
	ctx, cancel := context.WithTimeout(t.ctx, summaryTimeout)
	defer cancel()
	var text strings.Builder
	err := t.a.kernel.Complete(ctx, &kernelv1.CompleteRequest{
		Model: t.a.model, Purpose: purposeSummary, MaxTokens: int64(tokens),
		Messages: []*extensionv1.Message{
			{Role: "system", Content: fmt.Sprintf(summaryInstructions, tokens*2/5)},
			{Role: "user", Content: cutText(b.String(), room)},
		},
	}, func(d *sdk.Delta) error {
		text.WriteString(d.GetText())
		return nil
	})
	if err == nil && strings.TrimSpace(text.String()) == "" {
		err = errors.New("the model returned an empty summary")
	}
	return cutText(strings.TrimSpace(text.String()), room/8), err
}

// summaryOf returns the newest summary among rows; nil if there is none.
func summaryOf(rows []row) *busv1.Entry {
	for _, r := range slices.Backward(rows) {
		if r.GetKind() == contract.EntrySummary {
			return r.Entry
		}
	}
	return nil
}

// firstAfter returns the index of the first row that a summary does not cover.
func firstAfter(rows []row, covers int64) int {
	for i, r := range rows {
		if covers == 0 || r.GetSeq() > covers {
			return i
		}
	}
	return len(rows)
}
