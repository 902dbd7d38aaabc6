package memory

import (
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

func TestRememberAndRecall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.wantList("recall", fields{"query": "kettle"})
	b.wantList("list_memories", nil)
	b.remember(fields{"text": "The kettle is in the kitchen"})
	b.pass(time.Hour)
	b.remember(fields{"text": "Чайник стоит на кухне"})
	b.pass(time.Hour)
	b.remember(fields{"text": "Mother’s birthday is on 3 May"})
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"kettles", []string{"The kettle is in the kitchen"}},
		{"where is the KETTLE?", []string{"The kettle is in the kitchen"}},
		{"чайнику", []string{"Чайник стоит на кухне"}},
		{"что ты помнишь о чайнике на кухнях", []string{"Чайник стоит на кухне"}},
		{"my mother's birthdays", []string{"Mother’s birthday is on 3 May"}},
		{"mothers", []string{"Mother’s birthday is on 3 May"}},
		{"kitch", []string{"The kettle is in the kitchen"}}, // same beginning
		{"the is of", nil},
		{"elephant", nil},
		{"*\"'(", nil},
	} {
		b.wantList("recall", fields{"query": c.query}, c.want...)
	}
	b.wantList("list_memories", nil, "Mother’s birthday is on 3 May", "Чайник стоит на кухне",
		"The kettle is in the kitchen")
}

func TestRememberingTheSameTextUpdatesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.remember(fields{"text": "Buy milk."}, func(r *extensionv1.CallRequest) { r.Sender = "Anna" })
	b.pass(24 * time.Hour)
	again := b.remember(fields{"text": "  buy MILK\n", "due": "2026-03-09"})
	if first.Status != "remembered" || again.Status != "updated" || again.ID != first.ID {
		t.Errorf("got %+v and %+v", first, again)
	}
	if again.Kind != "open" || again.By != "Anna" || again.Created.Equal(again.Updated) ||
		!again.Created.Equal(first.Created) {
		t.Errorf("got %+v", again)
	}
	if known := b.remember(fields{"text": "buy MILK"}); known.Status != "known" || known.Due.String() != "2026-03-09" {
		t.Errorf("got %+v", known)
	}
	if keys := b.Keys(rowPrefix); len(keys) != 1 {
		t.Errorf("stored are %q", keys)
	}
}

func TestContradictionsAreKeptTheNewestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.remember(fields{"text": "The car is parked in Main Street"})
	b.pass(time.Hour)
	newer := b.remember(fields{"text": "The car is parked behind the old station"})
	if len(newer.Similar) != 1 || newer.Similar[0].Text != "The car is parked in Main Street" {
		t.Errorf("named as similar: %+v", newer.Similar)
	}
	b.wantList("recall", fields{"query": "where is the car parked"}, "The car is parked behind the old station",
		"The car is parked in Main Street")
}

func TestChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.remember(fields{"text": "Call the dentist", "due": "2026-03-02T09:00", "channel_id": "telegram_channel"})
	if made.Due.String() != "2026-03-02T09:00:00+01:00" || made.DueLocal != "Mon 2 Mar 2026 09:00" || made.IsDue ||
		made.Overdue {
		t.Errorf("got %+v", made)
	}
	changed := b.remember(fields{"id": "#" + strings.ToUpper(made.ID), "text": "Call the dentist about the tooth"})
	if changed.ID != made.ID || changed.ChannelID != "telegram_channel" || !changed.Due.Equal(made.Due) ||
		changed.Status != "updated" {
		t.Errorf("got %+v", changed)
	}
	b.wantList("recall", fields{"query": "tooth"}, "Call the dentist about the tooth")
	cleared := b.remember(fields{"id": made.ID, "text": "Call the dentist", "due": "", "channel_id": ""})
	if !cleared.Due.IsZero() || cleared.ChannelID != "" || cleared.Kind != "open" {
		t.Errorf("got %+v", cleared)
	}
	if later := b.remember(fields{"id": made.ID, "due": "2026-03-07"}); later.Text != "Call the dentist" ||
		later.Due.String() != "2026-03-07" {
		t.Errorf("got %+v", later)
	}
	b.refuses("remember", fields{"due": "2026-03-07"}, "text is empty")
	other := b.remember(fields{"text": "Something else"})
	b.refuses("remember", fields{"id": other.ID, "text": "call the dentist"},
		"memory "+made.ID+" already has this text")
	b.refuses("remember", fields{"id": "mnothing", "text": "x"}, `there is no memory "mnothing"`)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		f     fields
		words string
	}{
		{fields{"text": " \n "}, "text is empty"},
		{fields{"text": strings.Repeat("я", 3000)}, "at most 4000"},
		{fields{"text": "x", "due": "soon"}, `parse due date "soon"`},
		{fields{"text": "x", "due": "0000-01-01"}, "out of range"},
		{fields{"text": "x", "kind": "fact", "due": "2026-03-01"}, "a fact cannot have a due date"},
		{fields{"text": "x", "channel_id": "pager"},
			`there is no channel "pager": use one of slack_channel (Slack), telegram_channel (Telegram)`},
		{fields{"text": "x", "scope": "Not a scope"}, `invalid scope "Not a scope"`},
		{fields{"text": "x\x00y"}, "not valid UTF-8"},
	} {
		b.refuses("remember", c.f, c.words)
	}
	if made := b.remember(fields{"text": "x", "channel_id": "slack_channel"}); len(made.Notes) != 1 {
		t.Errorf("a channel that is not configured: %+v", made)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.remember(fields{"text": "one thing"}), b.remember(fields{"text": "another thing"})
	got := decode[forgotten](t, b.MustCall("forget", fields{"ids": []string{one.ID, one.ID, "mx"}}))
	if len(got.Forgotten) != 1 || got.Forgotten[0].Text != "one thing" || len(got.Unknown) != 1 {
		t.Errorf("got %+v", got)
	}
	b.refuses("forget", fields{"ids": []string{one.ID}}, "nothing was forgotten")
	b.wantList("recall", fields{"query": "thing"}, "another thing")
	if again := b.remember(fields{"text": "one thing"}); again.Status != "remembered" || again.ID != one.ID {
		t.Errorf("remembered again: %+v", again)
	}
	b.remember(fields{"text": "at work", "scope": "work"})
	b.MustCall("forget_all", fields{"scope": "personal"})
	b.wantList("list_memories", nil, "at work")
	b.MustCall("forget_all", nil)
	b.wantList("list_memories", nil)
	if keys := b.Keys(rowPrefix); len(keys) != 0 {
		t.Errorf("left are %q, of %s and %s", keys, one.ID, two.ID)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.remember(fields{"text": "personal thing"}, as("chat", "personal", "work"))
	b.remember(fields{"text": "work thing", "scope": "work"}, as("chat", "personal", "work"))
	work := b.remember(fields{"text": "default thing"}, as("worker", "work"))
	if work.Scope != "work" {
		t.Errorf("the default is not the first scope: %+v", work)
	}
	if got := b.list("recall", fields{"query": "thing"}, as("worker", "work")); len(got) != 2 {
		t.Errorf("worker sees %q", got)
	}
	if got := b.list("recall", fields{"query": "thing", "scope": "personal"},
		as("chat", "personal", "work")); len(got) != 1 {
		t.Errorf("chat sees %q in personal", got)
	}
	if got := b.list("list_memories", nil); len(got) != 3 {
		t.Errorf("without an agent: %q", got)
	}
	const lacks = `the manifest of "worker" lacks "memory: [personal]"`
	for tool, f := range map[string]fields{
		"remember":        {"text": "x", "scope": "personal"},
		"recall":          {"query": "x", "scope": "personal"},
		"list_memories":   {"scope": "personal"},
		"relevant":        {"query": "x", "scope": "personal"},
		"open_items":      {"scope": "personal"},
		"export_memories": {"scope": "personal"},
		"import_memories": {"text": "## Scope: personal\n- x"},
		"forget_all":      {"scope": "personal"},
	} {
		b.refuses(tool, f, lacks, as("worker", "work"))
	}
	for tool, f := range map[string]fields{
		"remember": {"text": "x"}, "recall": {"query": "x"}, "list_memories": {}, "relevant": {}, "open_items": {},
		"export_memories": {},
		"import_memories": {"text": "- x"}, "forget": {"ids": []string{work.ID}}, "forget_all": {},
	} {
		b.refuses(tool, f, `the manifest of "worker" lacks "memory: [personal]" under agent; it grants no scopes`,
			as("worker"))
	}
	b.refuses("forget", fields{"ids": []string{work.ID}}, "there is no memory", as("chat", "personal"))
	b.refuses("remember", fields{"id": work.ID, "text": "x"}, "there is no memory", as("chat", "personal"))
	b.refuses("import_memories", fields{"text": "- stolen\n  - id: " + work.ID},
		"line 1: id "+work.ID+" belongs to another scope", as("chat", "personal"))
	if got := b.MustCall("relevant", fields{"query": "default thing"}, as("chat", "personal")); strings.Contains(got,
		"default") {
		t.Errorf("another scope is relevant: %s", got)
	}
}

func TestOpenItems(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.remember(fields{"text": "no date", "kind": "open"})
	b.remember(fields{"text": "today", "due": "2026-03-01"})
	b.remember(fields{"text": "tomorrow", "due": "2026-03-02", "channel_id": "telegram_channel"})
	b.remember(fields{"text": "this morning", "due": "2026-03-01 09:00"})
	b.remember(fields{"text": "a fact"})
	b.wantList("open_items", nil, "today", "this morning", "tomorrow", "no date")
	all := decode[listing](t, b.MustCall("open_items", nil)).Memories
	for i, want := range []struct{ due, overdue bool }{{true, false}, {true, true}, {false, false}, {false, false}} {
		if all[i].IsDue != want.due || all[i].Overdue != want.overdue {
			t.Errorf("%s: due %v, overdue %v", all[i].Text, all[i].IsDue, all[i].Overdue)
		}
	}
	if all[2].ChannelID != "telegram_channel" || all[2].Due.String() != "2026-03-02" {
		t.Errorf("got %+v", all[2])
	}
	b.wantList("list_memories", fields{"kind": "open", "limit": 2, "offset": 1}, "this morning", "tomorrow")
}
