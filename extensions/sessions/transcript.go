package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Limits of one page of a transcript.
const (
	pageRows   = 30
	pageBytes  = contract.MaxToolResult - 4<<10
	rowBytes   = 4 << 10 // of one text
	aboutBytes = 500     // of a tool's arguments or result
)

type transcriptRow struct {
	Seq     int64     `json:"seq"`
	At      string    `json:"at"`
	Kind    string    `json:"kind"`
	Of      string    `json:"input_kind,omitempty"`
	From    string    `json:"from,omitempty"`
	Text    string    `json:"text,omitempty"`
	Calls   []callRow `json:"calls,omitempty"`
	CallID  string    `json:"call_id,omitempty"`
	IsError bool      `json:"is_error,omitempty"`
}

type callRow struct {
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments,omitempty"`
}

// page is a session with a part of its transcript.
type page struct {
	row
	Transcript []transcriptRow `json:"transcript"` // oldest first
	// Before asks for the rows in front of this page; 0: there are none.
	Before int64 `json:"before,omitempty"`
}

func (r *reader) get(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	args := struct {
		Session string `json:"session_id"`
		Limit   int32
		Before  int64
	}{Limit: pageRows}
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return sdk.ToolResult{}, err
	}
	history, err := r.sessions.History(ctx, &kernelv1.HistoryRequest{
		Lane: sdk.LaneOf(ctx), Session: args.Session, BeforeSeq: args.Before, Limit: args.Limit,
	})
	if err != nil {
		return sdk.ToolResult{}, contract.FromStatus(err)
	}
	rows, err := r.rows(ctx, c, &kernelv1.ListSessionsRequest{Lane: sdk.LaneOf(ctx), Session: args.Session})
	if err != nil || len(rows) == 0 {
		return sdk.ToolResult{}, err
	}
	p := page{row: rows[0]}
	p.Transcript, p.Before = r.transcript(c, history.GetEntries())
	return sdk.JSON(p)
}

// transcript is as many of the newest rows as fit, and where the rows in front of
// them end.
func (r *reader) transcript(c sdk.ToolCall, entries []*busv1.Entry) (rows []transcriptRow, before int64) {
	rows = []transcriptRow{}
	size := 0
	for _, e := range slices.Backward(entries) {
		row := transcriptRow{
			Seq: e.GetSeq(), At: r.time(c, e.GetCreatedAtUs()), Kind: e.GetKind(), Of: e.GetInputKind(), From: e.GetSender(),
			Text: shortened(e.GetText(), rowBytes), CallID: e.GetCallId(), IsError: e.GetIsError(),
		}
		if e.GetKind() == contract.EntryResult {
			row.Text = shortened(e.GetText(), aboutBytes)
		}
		for _, c := range e.GetCalls() {
			row.Calls = append(
				row.Calls,
				callRow{ID: c.GetCallId(), Tool: c.GetName(), Arguments: shortened(string(c.GetArguments()), aboutBytes)},
			)
		}
		b, _ := json.Marshal(row) // strings and numbers
		if size += len(b); size > pageBytes && len(rows) > 0 {
			break
		}
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	if len(rows) > 0 && rows[0].Seq > 1 {
		before = rows[0].Seq
	}
	return rows, before
}

func shortened(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + fmt.Sprintf(" [cut: %d bytes in all]", len(s))
}
