package heartbeat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// The tools of memory that are asked.
const (
	openItems    = "memory/open_items"
	listMemories = "memory/list_memories"
)

// item is something that remains to be done.
type item struct {
	ID        string `json:"id"`
	Text      string `json:"text"`
	ChannelID string `json:"channel_id"`
	Due       string `json:"due"` // a day, or a moment with its offset
	Created   string `json:"created"`

	due  bool   // now, or since some time
	mark string // equal for items that say the same, as long as both are due or neither is
}

// preference is how something is to be done.
type preference struct {
	Text      string `json:"text"`
	ChannelID string `json:"channel_id"`
}

// read asks memory what is open. Whatever is wrong with it is an error.
func (h *heartbeat) read(ctx context.Context, now time.Time) ([]item, error) {
	var found struct {
		Items []item `json:"memories"`
	}
	if err := h.remembered(ctx, openItems, struct{}{}, &found); err != nil {
		return nil, err
	}
	for i := range found.Items {
		found.Items[i].look(now, h.zone)
	}
	return found.Items, nil
}

// preferences asks memory how things are to be done: the newest first.
func (h *heartbeat) preferences(ctx context.Context) ([]preference, error) {
	var found struct {
		Preferences []preference `json:"memories"`
	}
	err := h.remembered(ctx, listMemories, map[string]any{"kind": "preference", "limit": maxPreferences}, &found)
	return found.Preferences, err
}

func (h *heartbeat) remembered(ctx context.Context, tool string, arguments, into any) error {
	r, err := h.k.Ask(ctx, tool, arguments)
	switch {
	case err != nil:
		return err
	case r.IsError:
		return fmt.Errorf("%s: %s", tool, r.Content)
	}
	if err := json.Unmarshal([]byte(r.Content), into); err != nil {
		return fmt.Errorf("read the answer of %s: %w", tool, err)
	}
	return nil
}

func (i *item) look(now time.Time, zone *time.Location) {
	i.due = passed(i.Due, now, zone)
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%s\n%v", normalized(i.Text), i.ChannelID, i.Due, i.due)
	i.mark = hex.EncodeToString(sum.Sum(nil)[:12])
}

// passed says whether a due date has come. One that cannot be read has not.
func passed(due string, now time.Time, zone *time.Location) bool {
	if at, err := time.Parse(time.RFC3339, due); err == nil {
		return !now.Before(at)
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", time.DateTime} {
		if at, err := time.ParseInLocation(layout, due, zone); err == nil {
			return !now.Before(at)
		}
	}
	return false
}

// normalized is a text without what may differ between two ways to write it.
func normalized(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}), " ")
}

// line is an item as models read it.
func (i item) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- [%s] %s", i.ID, strings.Join(strings.Fields(i.Text), " "))
	if i.ChannelID != "" {
		fmt.Fprintf(&b, " (channel: %s)", i.ChannelID)
	}
	switch {
	case i.due:
		fmt.Fprintf(&b, " (due: %s, that is now or past)", i.Due)
	case i.Due != "":
		fmt.Fprintf(&b, " (due: %s)", i.Due)
	}
	if i.Created != "" {
		fmt.Fprintf(&b, " (noted: %s)", i.Created)
	}
	return b.String()
}

func lines(items []item) string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = items[i].line()
	}
	return strings.Join(out, "\n")
}
