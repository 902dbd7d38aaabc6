// Package usage answers /usage: what models used today and in this month, in tokens and
// money. It reads the kernel's sums and keeps nothing. In a group it says nothing.
package usage

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/words"
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
					return sdk.ToolResult{Content: words.Say(c.Language, "Others can read this. Send /usage in a private chat.")}, nil
				}
				text, err := Show(ctx, k, time.Now().In(c.Location), c.Language)
				return sdk.ToolResult{Content: text}, err
			},
		}},
	}
}

// Show returns what models used today and in this month, in Markdown, in a language.
func Show(ctx context.Context, k adminv1.ReadClient, now time.Time, language string) (string, error) {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	models, err := admin.ReadUsage(ctx, k, "model", now.Day())
	if err != nil {
		return "", err
	}
	days, err := admin.ReadUsage(ctx, k, "day", 1)
	if err != nil {
		return "", err
	}
	if len(models) == 0 {
		return say("No language model was used this month. The offline model costs nothing."), nil
	}
	var today, month admin.Usage
	for _, u := range days {
		today.Add(u)
	}
	for _, u := range models {
		month.Add(u)
	}
	lines := []string{
		say("Today: %s", describe(today, language)), say("This month: %s", describe(month, language)), "",
	}
	for _, u := range models {
		lines = append(lines, "- "+u.Name+": "+describe(u, language))
	}
	status, err := k.Status(ctx, &adminv1.StatusRequest{})
	if err != nil {
		return "", err
	}
	for _, limit := range status.GetLimits() {
		lines = append(lines, "", words.Translate(language, limit))
	}
	return strings.Join(lines, "\n"), nil
}

// describe returns a sum in words.
func describe(u admin.Usage, language string) string {
	n := u.Input + u.Output
	text := words.Count(language, "%s token", "%s tokens", int(n), humanize.Comma(n))
	if u.Cached > 0 {
		text += words.Say(language, " (%s from a cache)", humanize.Comma(u.Cached))
	}
	if money := u.Money(); money != "" {
		text += ", " + money
	}
	return text
}
