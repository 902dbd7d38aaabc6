package heartbeat

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	scoutModel   = "scout"
	scoutPurpose = "triage"
	// scoutTimeout ends before the beat's own time does.
	scoutTimeout = time.Minute
	// maxItems is how many items one question is about, maxAnswer how many bytes
	// an answer may have.
	maxItems       = 50
	maxPreferences = 20
	maxAnswer      = 16 << 10
)

//go:embed prompts/scout.md
var scoutPrompt string

//go:embed prompts/escalation.md
var escalationPrompt string

// answer is what the scout said, and what it took.
type answer struct {
	text          string
	input, output int64
}

// ask asks the scout, once.
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
			return errors.New("the scout does not stop talking")
		}
		text.WriteString(d.GetText())
		return nil
	})
	a.text = text.String()
	return a, err
}

// question is what the scout judges.
func (h *heartbeat) question(items []item, prefer []preference, home string, now time.Time) string {
	var b strings.Builder
	local := now.In(h.zone)
	fmt.Fprintf(&b, "It is %s (%s).\n", local.Format("Monday 2006-01-02 15:04"), h.zone)
	fmt.Fprintf(&b, "The default channel is %s.\n", cmp.Or(home, "not known"))
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

// defaultChannel is where something goes that names no channel; empty if that
// is not known.
func (h *heartbeat) defaultChannel(ctx context.Context) (string, error) {
	channels, err := h.k.Channels(ctx)
	if err != nil {
		return "", fmt.Errorf("list the channels: %w", err)
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

// escalation is what the agent is asked to do.
func escalation(reason string, items []item, home string) string {
	return strings.NewReplacer(
		"{{reason}}", reason, "{{items}}", lines(items), "{{channel}}", cmp.Or(home, "the one that list_channels calls the default"),
	).Replace(strings.TrimSpace(escalationPrompt))
}
