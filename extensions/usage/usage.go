// Package usage answers /usage: what models used today and in this month, in tokens and
// money. It reads the kernel's sums and keeps nothing. In a group it says nothing.
package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// ID is the extension's id.
const ID = "usage"

// New returns the extension.
func New() sdk.Extension {
	var k adminv1.ReadClient
	return sdk.Extension{
		ID: ID,
		Start: func(_ context.Context, kernel *sdk.Kernel) error {
			k = admin.Reader(kernel.Services().Conn)
			return nil
		},
		Tools: []sdk.Tool{{
			Name: "show", Command: "usage", Description: "Show what models used today and this month.",
			Schema: json.RawMessage(`{"type":"object","additionalProperties":false}`), ReadOnly: true, Private: true,
			Call: func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
				if c.Group {
					return sdk.ToolResult{Content: "Others can read this. Send /usage in a private chat."}, nil
				}
				text, err := Show(ctx, k, time.Now().In(c.Location))
				return sdk.ToolResult{Content: text}, err
			},
		}},
	}
}

// Show returns what models used today and in this month, in Markdown.
func Show(ctx context.Context, k adminv1.ReadClient, now time.Time) (string, error) {
	models, err := admin.ReadUsage(ctx, k, "model", now.Day())
	if err != nil {
		return "", err
	}
	days, err := admin.ReadUsage(ctx, k, "day", 1)
	if err != nil {
		return "", err
	}
	if len(models) == 0 {
		return "No language model was used this month. The offline model costs nothing.", nil
	}
	var today, month admin.Usage
	for _, u := range days {
		today.Add(u)
	}
	for _, u := range models {
		month.Add(u)
	}
	lines := []string{"Today: " + describe(today), "This month: " + describe(month), ""}
	for _, u := range models {
		lines = append(lines, "- "+u.Name+": "+describe(u))
	}
	status, err := k.Status(ctx, &adminv1.StatusRequest{})
	if err != nil {
		return "", err
	}
	for _, limit := range status.GetLimits() {
		lines = append(lines, "", limit)
	}
	return strings.Join(lines, "\n"), nil
}

// describe returns a sum in words.
func describe(u admin.Usage) string {
	text := humanize.Comma(u.Input+u.Output) + " tokens"
	if u.Cached > 0 {
		text += fmt.Sprintf(" (%s from a cache)", humanize.Comma(u.Cached))
	}
	if money := u.Money(); money != "" {
		text += ", " + money
	}
	return text
}
