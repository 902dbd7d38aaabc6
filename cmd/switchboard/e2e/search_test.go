package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/sessions"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// searched runs a search on the command line and returns the texts that it finds.
func (w *world) searched(args ...string) (texts []string) {
	w.t.Helper()
	var found sessions.Found
	out := w.must(append([]string{"sessions", "search", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	for _, h := range found.Hits {
		texts = append(texts, h.Text)
	}
	return texts
}

// What was said is found once: at once, after kills of everything in the middle of indexing,
// and not any more after its session is deleted.
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		return openaitest.Say("noted: " + strings.ToUpper(r.Last("user")[len(r.Last("user"))-5:]))
	})
	w.start()
	p := w.attach()
	want := []string{}
	for i := range 20 {
		text := fmt.Sprintf("The plumber repairs kettle no%03d", i)
		p.ask(text)
		want = append(want, text)
	}
	slices.Reverse(want)
	w.settled()
	expect := func(when string, want []string, query ...string) {
		t.Helper()
		if got := w.searched(query...); !slices.Equal(got, want) {
			t.Errorf("%s: %q finds\n%q, want\n%q", when, query, got, want)
		}
	}
	for range 3 { // killed while a search reads everything: wherever that is
		search := w.command("sessions", "search", "plumber")
		if err := search.Start(); err != nil {
			t.Fatal(err)
		}
		w.restart()
		_ = search.Wait()
	}
	expect("after kills", want, "plumbers", "kettles", "-n", "100")
	p = w.attach()
	p.ask("Купи чайник")
	w.settled()
	expect("at once", []string{"Купи чайник"}, "чайником")
	expect("a phrase", want[:1], `"kettle no019"`)
	expect("a beginning", []string{"noted: NO019", want[0]}, "no019*")
	expect("no query is wrong", nil, `AND ( "`)
	expect("another agent", nil, "plumber", "--agent", "echo")
	text := w.must("sessions", "search", "чайник")
	contains(t, "the text for people", text, "Купи чайник")
	contains(t, "the text for people", text, "cli_channel terminal")
	session := list[[]struct{ ID string }](w, "sessions", "list")[0].ID
	w.must("sessions", "delete", session, "--yes")
	expect("deleted", nil, "plumber")
}

// An agent finds for each person what they may read, and nothing of others.
func TestSearchByPrincipal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if results := r.Results(); len(results) > 0 {
			return openaitest.Say("result: " + results[len(results)-1])
		}
		if strings.HasSuffix(r.Last("user"), "<search>") {
			return openaitest.CallTool("use_tool", map[string]any{
				"name": "sessions/search", "arguments": map[string]string{"query": "surprise"},
			})
		}
		return openaitest.Say("ok")
	})
	w.start()
	w.telegramReady()
	says := func(user, chat int64, name, text string) {
		t.Helper()
		answers := func() (n int) {
			for _, text := range w.texts(chat) {
				if text == "ok" || strings.HasPrefix(text, "result: ") {
					n++
				}
			}
			return n
		}
		n := answers()
		in := telegramtest.Incoming{From: telegramtest.User{ID: user, FirstName: name}, Text: text}
		if chat != user {
			in.Chat = telegramtest.Chat{ID: chat, Type: telegramtest.Group, Title: "Club"}
			in.Text = "@" + w.telegram.Bot().Username + " " + text
		}
		w.telegram.Inject(in)
		w.eventually("an answer to "+text, func() bool { return answers() > n })
	}
	says(anna, anna, "Anna", "a surprise for Boris: annas-secret")
	says(boris, boris, "Boris", "a surprise for Anna: boriss-secret")
	says(boris, boris, "Boris", "<search>")
	last := func(chat int64) string { all := w.texts(chat); return all[len(all)-1] }
	if got := last(boris); !strings.Contains(got, "boriss-secret") || strings.Contains(got, "annas-secret") {
		t.Errorf("Boris finds %q", got)
	}
	says(anna, anna, "Anna", "<search>")
	if got := last(anna); !strings.Contains(got, "annas-secret") || strings.Contains(got, "boriss-secret") {
		t.Errorf("Anna finds %q", got)
	}
	// So does a call for Boris outside of any turn, as a page makes it, with every tool.
	k := w.control()
	people, err := k.People(w.ctx(), &adminv1.PeopleRequest{})
	if err != nil {
		t.Fatal(err)
	}
	account := ""
	for _, one := range people.GetPeople() {
		if one.GetName() == "Boris" {
			account = one.GetAccounts()[0].GetId()
		}
	}
	if account == "" {
		t.Fatalf("Boris is unknown: %v", people)
	}
	for tool, arguments := range map[string]string{
		sessions.SearchTool: `{"query":"surprise"}`, "sessions/list_sessions": "{}", "sessions/get_session": `{"session_id":"s1"}`,
	} {
		for _, household := range []bool{false, true} {
			r, err := k.CallTool(w.ctx(), &adminv1.CallToolRequest{
				Name: tool, Arguments: []byte(arguments), Person: account, Household: household,
			})
			said := r.GetContent()
			if err != nil {
				said = err.Error()
			}
			if strings.Contains(said, "annas-secret") || strings.Contains(said, `"s1"`) && !r.GetIsError() {
				t.Errorf("%s gives Boris %s", tool, said)
			}
			if tool == sessions.SearchTool && !strings.Contains(said, "boriss-secret") {
				t.Errorf("Boris finds %s", said)
			}
		}
	}
	const group = -4711
	says(boris, group, "Boris", "no surprise: groups-secret")
	says(anna, group, "Anna", "<search>")
	if got := last(group); !strings.Contains(got, "groups-secret") || strings.Contains(got, "annas") ||
		strings.Contains(got, "boriss") {
		t.Errorf("Anna finds in the group %q", got)
	}
	if got := w.searched("surprise", "secret*", "-n", "100"); len(got) < 3 {
		t.Errorf("the owner's command line finds %q", got)
	}
}
