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

// openItems is the tool of memory that the heartbeat calls.
const openItems = "memory/open_items"

// item is an open item of memory.
type item struct {
	ID        string `json:"id"`
	Text      string `json:"text"`
	ChannelID string `json:"channel_id"`
	Due       string `json:"due"` // a day, or a moment with its offset
	Created   string `json:"created"`

	due  bool   // the due time has come
	mark string // the same for items with the same content and value of due
}

// preference is a preference of memory.
type preference struct {
	Text      string `json:"text"`
	ChannelID string `json:"channel_id"`
}

// read returns the open items of a person.
func (h *heartbeat) read(ctx context.Context, of person, now time.Time) ([]item, error) {
	var found struct {
		Items []item `json:"memories"`
	}
	if err := h.askMemory(ctx, of, "open", &found); err != nil {
		return nil, err
	}
	for i := range found.Items {
		found.Items[i].setDue(now, of.zone)
	}
	return found.Items, nil
}

// preferences returns the preferences of a person.
func (h *heartbeat) preferences(ctx context.Context, of person) ([]preference, error) {
	var found struct {
		Preferences []preference `json:"memories"`
	}
	err := h.askMemory(ctx, of, "preference", &found)
	return found.Preferences[:min(len(found.Preferences), maxPreferences)], err
}

func (h *heartbeat) askMemory(ctx context.Context, of person, kind string, into any) error {
	r, err := h.k.Ask(ctx, openItems, map[string]any{"kind": kind, "accounts": of.accounts, "own": !of.isOwner()})
	switch {
	case err != nil:
		return err
	case r.IsError:
		return fmt.Errorf("%s: %s", openItems, r.Content)
	}
	if err := json.Unmarshal([]byte(r.Content), into); err != nil {
		return fmt.Errorf("decode result of %s: %w", openItems, err)
	}
	return nil
}

// setDue sets due and mark.
func (i *item) setDue(now time.Time, zone *time.Location) {
	i.due = passed(i.Due, now, zone)
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%s\n%v", normalized(i.Text), i.ChannelID, i.Due, i.due)
	i.mark = hex.EncodeToString(sum.Sum(nil)[:12])
}

// passed reports whether a due date has come; false if it is invalid.
func passed(due string, now time.Time, zone *time.Location) bool {
	if at, err := time.Parse(time.RFC3339, due); err == nil {
		return !now.Before(at)
	}
	for _, layout := range []string{
		time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", time.DateTime,
	} {
		if at, err := time.ParseInLocation(layout, due, zone); err == nil {
			return !now.Before(at)
		}
	}
	return false
}

// normalized returns the words of a text in lower case.
func normalized(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}), " ")
}

// line formats an item for a model.
func (i item) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- [%s] %s", i.ID, strings.Join(strings.Fields(i.Text), " "))
	if i.ChannelID != "" {
		fmt.Fprintf(&b, " (channel: %s)", i.ChannelID)
	}
	switch {
	case i.due:
		fmt.Fprintf(&b, " (due: %s, now or overdue)", i.Due)
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
