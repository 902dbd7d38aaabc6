package memory

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// The callers of the tests. Anna has two accounts.
var (
	anna        = contract.Principal{Person: "anna", Accounts: []string{"anna2"}, Own: true}
	annaOnSlack = contract.Principal{Person: "anna2", Accounts: []string{"anna"}, Own: true}
	boris       = contract.Principal{Person: "boris", Own: true}
	guest       = contract.Principal{Person: "guest", Confined: true, Own: true}
	atHome      = contract.Principal{Person: "anna", Group: "home"}
	atWork      = contract.Principal{Person: "anna", Accounts: []string{"anna2"}, Group: "work", Confined: true, Own: true}
	atTheClub   = contract.Principal{Person: "boris", Group: "club", Confined: true, Own: true}
	job         = contract.Principal{Person: "owner", Accounts: []string{"anna", "anna2"}, Own: true}
)

func by(p contract.Principal) sdktest.CallOption {
	return func(r *extensionv1.CallRequest) { r.Principal = p.Proto() }
}

// TestWhoseMemories has each caller try each tool on each memory.
func TestWhoseMemories(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := map[string]string{}
	for text, p := range map[string]contract.Principal{
		"tea from before":   {Person: "anna"},
		"tea at home":       atHome,
		"tea of Anna":       anna,
		"tea of Anna again": annaOnSlack,
		"tea of Boris":      boris,
		"tea at work":       atWork,
		"tea at the club":   atTheClub,
		"tea of a guest":    guest,
		"tea of a job":      job,
	} {
		made := b.remember(fields{"text": text, "kind": "open"}, by(p))
		if made.Status != "remembered" {
			t.Errorf("%q is %s", text, made.Status)
		}
		ids[text] = made.ID
	}
	household := []string{"tea from before", "tea at home"}
	annas := append([]string{"tea of Anna", "tea of Anna again", "tea at work"}, household...)
	for name, tt := range map[string]struct {
		p    contract.Principal
		sees []string
	}{
		"the command line":    {contract.Principal{}, slices.Collect(maps.Keys(ids))},
		"Anna":                {anna, annas},
		"Anna on Slack":       {annaOnSlack, annas},
		"Boris":               {boris, append([]string{"tea of Boris", "tea at the club"}, household...)},
		"a guest":             {guest, []string{"tea of a guest"}},
		"another guest":       {contract.Principal{Person: "guest2", Confined: true, Own: true}, nil},
		"the household group": {atHome, household},
		"a group at work":     {atWork, []string{"tea at work"}},
		"Boris in that group": {contract.Principal{Person: "boris", Group: "work", Confined: true, Own: true}, []string{"tea at work"}},
		"the club":            {atTheClub, []string{"tea at the club"}},
		"the owner's job":     {job, append([]string{"tea of a job"}, annas...)},
		"an unknown group":    {contract.Principal{Confined: true}, nil},
	} {
		for _, read := range []struct {
			tool string
			args fields
		}{
			{"list_memories", fields{}}, {"list_memories", fields{"about": "tea"}}, {"recall", fields{"query": "tea"}},
			{"open_items", fields{}}, {"export_memories", fields{}}, {"relevant", fields{"query": "tea"}},
		} {
			got := b.Ask(read.tool, read.args, by(tt.p))
			if got.GetIsError() || got.GetNothing() {
				t.Errorf("%s asks %s: %v", name, read.tool, got)
			}
			for text, id := range ids {
				told := strings.Contains(got.GetContent(), text+`"`) || strings.Contains(got.GetContent(), id)
				if want := slices.Contains(tt.sees, text); told != want {
					t.Errorf("%s asks %s and is told %q: %v", name, read.tool, text, told)
				}
			}
		}
		for text, id := range ids {
			if slices.Contains(tt.sees, text) {
				continue
			}
			b.refuses("remember", fields{"id": id, "text": "coffee"}, `there is no memory "`+id+`"`, by(tt.p))
			b.refuses("forget", fields{"ids": []string{id}}, "nothing was forgotten: there is no memory "+id, by(tt.p))
		}
	}
	b.refuses("remember", fields{"id": "m000000", "text": "coffee"}, `there is no memory "m000000"`, by(boris))

	// What belongs to others can't be forgotten or replaced all at once.
	b.MustCall("import_memories", fields{"text": "- coffee\n  - id: " + ids["tea of Anna"], "replace": true}, by(boris))
	b.MustCall("forget_all", fields{}, by(guest))
	b.MustCall("forget_all", fields{}, by(atWork))
	b.MustCall("forget_all", fields{}, by(job))
	b.wantList("list_memories", fields{"kind": "open"})
	if got := b.list("list_memories", fields{}, by(boris)); !slices.Equal(got, []string{"coffee"}) {
		t.Errorf("Boris has %q", got)
	}
}

// The same text is another memory for each person. What the household knows is not
// stored again.
func TestSameTextOfSeveralPeople(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hers := b.remember(fields{"text": "I like tea"}, by(anna))
	his := b.remember(fields{"text": "I like tea"}, by(boris))
	ours := b.remember(fields{"text": "I like tea"}, by(atHome))
	for _, made := range []remembered{hers, his, ours} {
		if made.Status != "remembered" || len(made.Similar) > 0 && made.ID != ours.ID {
			t.Errorf("the same text: %+v", made)
		}
	}
	if hers.ID == his.ID || ours.ID == hers.ID || ours.ID == his.ID {
		t.Errorf("one memory for all: %s %s %s", hers.ID, his.ID, ours.ID)
	}
	for id, p := range map[string]contract.Principal{hers.ID: annaOnSlack, his.ID: boris, ours.ID: atHome} {
		if again := b.remember(fields{"text": "i like tea"}, by(p)); again.ID != id || again.Status != "updated" {
			t.Errorf("said again by %s: %+v", p.Person, again)
		}
	}
	b.remember(fields{"id": ours.ID, "text": "We like tea"}, by(boris))
	if got := b.list("list_memories", fields{}, by(atHome)); !slices.Equal(got, []string{"We like tea"}) {
		t.Errorf("changed by one person, the household has %q", got)
	}
	if known := b.remember(fields{"text": "We like tea"}, by(anna)); known.ID != ours.ID || known.Status != "known" {
		t.Errorf("what the household knows: %+v", known)
	}
	b.remember(fields{"text": "I drink coffee"}, by(anna))
	b.refuses("remember", fields{"id": hers.ID, "text": "I drink coffee."}, "already has this text", by(anna))
	if changed := b.remember(fields{"id": his.ID, "text": "I drink coffee"}, by(boris)); changed.ID != his.ID {
		t.Errorf("Boris is told of Anna's coffee: %+v", changed)
	}
}

// That one person has no memories holds for no other: agents ask relevant no more for a
// while when they are told so.
func TestNothingHoldsForAllPeople(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if !b.Ask("relevant", fields{"query": "tea"}, by(anna)).GetNothing() {
		t.Error("without memories, there is something")
	}
	b.remember(fields{"text": "I like tea"}, by(boris))
	if r := b.Ask("relevant", fields{"query": "tea"}, by(anna)); r.GetNothing() || r.GetContent() != "" {
		t.Errorf("Anna is told %v", r)
	}
}

func TestOwnersInADocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	people := map[string]contract.Principal{
		"Anna": anna, "Boris": boris, "home": atHome, "work": atWork, "a guest": guest,
	}
	see := func() map[string][]string {
		all := map[string][]string{}
		for name, p := range people {
			all[name] = b.list("list_memories", fields{}, by(p))
			slices.Sort(all[name])
		}
		return all
	}
	for _, name := range []string{"Anna", "Boris", "work", "a guest", "home"} { // what the household knows is not repeated
		b.remember(fields{"text": "tea, said " + name}, by(people[name]))
		b.remember(fields{"text": "said by all"}, by(people[name]))
	}
	before := see()
	doc := b.MustCall("export_memories", fields{})
	if !strings.Contains(doc, "  - owner: boris\n") || strings.Contains(doc, "household") {
		t.Errorf("the document is\n%s", doc)
	}
	b.wantImport(doc, fields{}, imported{Unchanged: 10})
	b.MustCall("forget_all", fields{})
	b.wantImport(doc, fields{}, imported{Added: 10})
	if after := see(); encode(t, after) != encode(t, before) {
		t.Errorf("after the import, people see %v, before %v", after, before)
	}
	without := strings.Split(doc, "\n")
	without = slices.DeleteFunc(without, func(l string) bool { return strings.HasPrefix(l, "  - id: ") })
	b.wantImport(strings.Join(without, "\n"), fields{}, imported{Unchanged: 10})

	// A person's own document names what is the household's.
	doc = b.MustCall("export_memories", fields{}, by(anna))
	b.MustCall("forget_all", fields{}, by(anna))
	b.MustCall("import_memories", fields{"text": doc}, by(anna))
	if after := see(); encode(t, after) != encode(t, before) {
		t.Errorf("after her import, people see %v, before %v", after, before)
	}
	b.MustCall("import_memories", fields{"text": "- forged\n  - owner: boris\n- more\n  - owner: household"}, by(guest))
	if got := b.list("list_memories", fields{}, by(guest)); len(got) != 4 {
		t.Errorf("the guest has %q", got)
	}
	if after := b.list("list_memories", fields{}, by(boris)); len(after) != len(before["Boris"]) {
		t.Errorf("Boris has got %q", after)
	}
}

func TestRemovedPersonIsForgotten(t *testing.T) {
	t.Parallel()
	b, hash := withFile(t)
	b.remember(fields{"text": "her cat", "attachments": []string{"[image " + hash + ": cat.jpg]"}}, by(anna))
	b.remember(fields{"text": "her club"}, by(contract.Principal{Person: "anna", Group: "club", Confined: true, Own: true}))
	b.remember(fields{"text": "his dog"}, by(boris))
	b.remember(fields{"text": "our garden"}, by(atHome))
	b.remember(fields{"text": "her other account"}, by(annaOnSlack))
	remove := func(p contract.PersonRevoked) {
		t.Helper()
		if o := b.Deliver(contract.TopicPersonRevoked, p); !o.Acked() {
			t.Fatalf("the event ended as %s", o)
		}
	}
	remove(contract.PersonRevoked{Person: "anna"})
	if got := b.list("list_memories", fields{}); len(got) != 5 {
		t.Errorf("a person who is revoked and stays has lost something: %q", got)
	}
	remove(contract.PersonRevoked{Person: "anna", Removed: true})
	remove(contract.PersonRevoked{Removed: true})
	got := b.list("list_memories", fields{})
	if slices.Sort(got); !slices.Equal(got, []string{"her other account", "his dog", "our garden"}) {
		t.Errorf("after the removal: %q", got)
	}
	if r := b.Hand("other.topic", json.RawMessage(`{}`)); r.Acked() {
		t.Errorf("another event ended as %s", r)
	}
}

// A person can tell the household something in private.
func TestAMemoryForTheHousehold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	shared := b.remember(fields{"text": "The key is under the vase", "household": true}, by(anna))
	hers := b.remember(fields{"text": "The cellar is dry"}, by(anna))
	for name, p := range map[string]contract.Principal{"Boris": boris, "the household group": atHome} {
		if got := b.list("list_memories", fields{}, by(p)); !slices.Equal(got, []string{"The key is under the vase"}) {
			t.Errorf("%s sees %q", name, got)
		}
	}
	if got := b.remember(fields{"id": hers.ID, "household": true}, by(annaOnSlack)); got.Status != "updated" || got.ID != hers.ID {
		t.Errorf("what she shares later: %+v", got)
	}
	if got := b.remember(fields{"text": "the cellar is dry"}, by(boris)); got.ID != hers.ID {
		t.Errorf("Boris knows %+v", got)
	}
	if got := b.remember(fields{"id": shared.ID, "household": true}, by(boris)); got.Status != "known" {
		t.Errorf("what is the household's already: %+v", got)
	}
	b.refuses("remember", fields{"text": "for all", "household": true}, "nothing can be stored for the household here", by(guest))
	b.refuses("remember", fields{"text": "for all", "household": true}, "nothing can be stored for the household here", by(atWork))
	mine := b.remember(fields{"text": "I like tea"}, by(boris))
	b.remember(fields{"text": "I like tea", "household": true}, by(anna))
	b.refuses("remember", fields{"id": mine.ID, "household": true}, "already has this text", by(boris))
}
