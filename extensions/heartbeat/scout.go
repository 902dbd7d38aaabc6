package heartbeat

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	scoutModel   = "scout"
	scoutPurpose = "triage"
	// scoutTimeout is shorter than the ack wait of a beat.
	scoutTimeout = time.Minute
	// The most items and preferences in one question.
	maxItems       = 50
	maxPreferences = 20
	// maxAnswer is the most bytes of an answer.
	maxAnswer = 16 << 10
)

//go:embed prompts/scout.md
var scoutPrompt string

//go:embed prompts/escalation.md
var escalationPrompt string

// answer is the scout's answer.
type answer struct {
	text          string
	input, output int64 // tokens
}

// ask calls the scout once.
func (h *heartbeat) ask(ctx context.Context, question string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, scoutTimeout)
	defer cancel()
	messages := []*extensionv1.Message{
		{Role: "system", Content: scoutPrompt},
		{Role: "user", Content: question},
	}
	var text strings.Builder
	err = h.k.Complete(ctx, scoutModel, scoutPurpose, messages, func(d *sdk.Delta) error {
		if u := d.GetUsage(); u != nil {
			a.input, a.output = u.GetInputTokens(), u.GetOutputTokens()
		}
		if text.Len()+len(d.GetText()) > maxAnswer {
			return fmt.Errorf("scout's answer is longer than %d bytes", maxAnswer)
		}
		text.WriteString(d.GetText())
		return nil
	})
	a.text = text.String()
	return a, err
}

// question returns the prompt for the scout.
func (h *heartbeat) question(items []item, prefer []preference, channel string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "It is %s (%s).\n", now.Format("Monday 2006-01-02 15:04"), now.Location())
	fmt.Fprintf(&b, "The default channel is %s.\n", cmp.Or(channel, "unknown"))
	if len(prefer) > 0 {
		b.WriteString("\nPreferences:\n")
		for _, p := range prefer {
			fmt.Fprintf(&b, "- %s", oneLine(p.Text))
			if p.ChannelID != "" {
				fmt.Fprintf(&b, " (channel: %s)", p.ChannelID)
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "\nOpen items:\n%s\n", lines(items))
	return b.String()
}

// defaultChannel returns the channel of messages that name none, or "" if it is
// unknown.
func (h *heartbeat) defaultChannel(ctx context.Context) (string, error) {
	channels, err := h.k.Channels(ctx)
	if err != nil {
		return "", fmt.Errorf("list channels: %w", err)
	}
	for _, c := range channels {
		if c.GetDefault() {
			return c.GetId(), nil
		}
	}
	for _, c := range channels {
		if c.GetReadiness().GetState() == extensionv1.Readiness_STATE_READY {
			return c.GetId(), nil
		}
	}
	return "", nil
}

// escalation returns the prompt of the agent's task.
func escalation(reason string, items []item, channel string) string {
	return strings.NewReplacer(
		"{{reason}}", reason,
		"{{items}}", lines(items),
		"{{channel}}", cmp.Or(channel, "the default of list_channels"),
	).Replace(strings.TrimSpace(escalationPrompt))
}
