package memory

import (
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// in makes a call in a group, which is the household's unless it is confined.
func in(group string, confined bool) sdktest.CallOption {
	return func(r *extensionv1.CallRequest) {
		r.Principal = contract.Principal{Person: "p1", Conversation: "c1", Group: group, Confined: confined}.Proto()
	}
}

func TestAGroupHasItsOwnMemories(t *testing.T) {
	t.Parallel()
	b := setup(t)
	club, team, home := in("club", true), in("team", true), in("home", false)
	private := b.remember(fields{"text": "The tea is green"})
	b.remember(fields{"text": "The safe is blue"})

	// The same text is another memory: whether it was said elsewhere is not told.
	own := b.remember(fields{"text": "the tea is green"}, club)
	if own.Status != "remembered" || own.ID == private.ID || len(own.Similar) > 0 {
		t.Errorf("in the group: %+v", own)
	}
	if again := b.remember(fields{"text": "The tea is green."}, club); again.Status != "updated" || again.ID != own.ID {
		t.Errorf("again in the group: %+v", again)
	}
	if again := b.remember(fields{"text": "The tea is green"}); again.Status != "known" || again.ID != private.ID {
		t.Errorf("again in private: %+v", again)
	}
	if again := b.remember(fields{"text": "The tea is green"}, home); again.Status != "known" || again.ID != private.ID {
		t.Errorf("again in the household's group: %+v", again)
	}
	for name, tt := range map[string]struct {
		in   sdktest.CallOption
		want []string
	}{
		"in private":               {as(""), []string{"The safe is blue", "The tea is green", "The tea is green."}},
		"in the household's group": {home, []string{"The safe is blue", "The tea is green", "The tea is green."}},
		"in the group":             {club, []string{"The tea is green."}},
		"in another one":           {team, nil},
		"in an unknown one":        {in("", true), nil},
	} {
		got := b.list("list_memories", fields{}, tt.in)
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if r := b.Ask("relevant", fields{"query": "tea"}, team); r.GetContent() != "" || r.GetNothing() {
		t.Errorf("what another group is told, or that there is nothing anywhere: %v", r)
	}
	b.refuses("forget", fields{"ids": []string{private.ID}}, "there is no memory", club)
	b.refuses("remember", fields{"id": private.ID, "kind": "preference"}, "there is no memory", club)
	b.refuses("forget", fields{"ids": []string{own.ID}}, "there is no memory", team)

	// The group becomes the household's: what is its own stays one memory.
	if again := b.remember(fields{"text": "the club meets"}, club); again.Status != "remembered" {
		t.Errorf("another one of the group: %+v", again)
	}
	if again := b.remember(fields{"text": "the club meets"}, in("club", false)); again.Status != "known" {
		t.Errorf("the same, when the group is the household's: %+v", again)
	}
	if got := b.list("list_memories", fields{"about": "club"}, club); len(got) != 1 {
		t.Errorf("the group has lost what is its own: %q", got)
	}
}

// A text of a group that is changed from outside of it is not told to the group.
func TestChangesFromOutsideOfAGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	club := in("club", true)
	own := b.remember(fields{"text": "The hall is booked"}, club)
	if !b.remember(fields{"id": own.ID}).InGroup {
		t.Error("in private it is not marked")
	}
	if got := b.list("list_memories", fields{}, club); len(got) != 1 {
		t.Errorf("saying the same in private took it from the group: %q", got)
	}
	b.remember(fields{"id": own.ID, "text": "The hall is booked for her surprise"})
	if got := b.list("list_memories", fields{}, club); len(got) != 0 {
		t.Errorf("the group is told %q", got)
	}
	b.wantList("list_memories", fields{}, "The hall is booked for her surprise")
}

func TestGroupsInADocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	club := in("club", true)
	b.remember(fields{"text": "The tea is green"})
	b.remember(fields{"text": "The tea is green"}, club)
	doc := b.MustCall("export_memories", fields{})
	b.wantImport(doc, fields{}, imported{Unchanged: 2})
	if got := b.MustCall("export_memories", fields{}, in("team", true)); got != "# Memory\n" {
		t.Errorf("another group exports %q", got)
	}
	b.MustCall("forget_all", fields{}, in("team", true))
	b.wantList("list_memories", fields{}, "The tea is green", "The tea is green")
	b.MustCall("forget_all", fields{})
	b.wantImport(doc, fields{}, imported{Added: 2})
	if got := b.list("list_memories", fields{}, club); len(got) != 1 {
		t.Errorf("after the import, the group has %q", got)
	}
	b.MustCall("import_memories", fields{"text": "- a guest comes"}, in("team", true))
	if got := b.list("list_memories", fields{}, in("team", true)); !slices.Equal(got, []string{"a guest comes"}) {
		t.Errorf("what a group imports is not its own: %q", got)
	}
}
