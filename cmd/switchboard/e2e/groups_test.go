package e2e

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// secret is a word that only private conversations have.
const secret = "sapphire"

// knowing is an agent that has every tool there is.
const knowing = `api: 1
id: %[1]s
name: The %[1]s
version: 1.0.0
description: Is the %[1]s.
agent:
  model: default
  instructions: You are the %[1]s.
  uses_tools: [core/*, memory/*, memory/relevant, memory/open_items, memory/export_memories, memory/import_memories,
    memory/forget_all, scheduler/*, tasks/*, tasks/list, tasks/show, tasks/cancel, links/list_links,
    links/show_exchange, sessions/list_sessions, sessions/get_session, heartbeat/figures]
  context: [memory/relevant]
  memory: [personal]
`

// toolOrder is what has an agent call a tool.
var toolOrder = regexp.MustCompile(`(?m)call (\w+) (\{.*\})\s*$`)

func orderTo(tool string, args any) string {
	b, _ := json.Marshal(args)
	return "call " + tool + " " + string(b)
}

// obedient is a model that calls the tool it is told to call, and says what came of it.
func obedient(r openaitest.Request) openaitest.Answer {
	said, results := heard(r), strings.Join(r.Results(), "\n")
	switch m := toolOrder.FindStringSubmatch(said); {
	case strings.Contains(results, `"status":"concluded"`):
		return openaitest.Say("Done.")
	case results != "" && strings.Contains(said, "[message from "):
		return openaitest.CallTool("links__conclude_link", map[string]string{"summary": results})
	case results != "":
		return openaitest.Say("Result: " + results)
	case m != nil:
		return openaitest.CallTool(m[1], m[2])
	}
	return openaitest.Say("Heard: " + said)
}

// club is a world with two agents, in which Anna has told the assistant a secret in
// private.
type club struct {
	*world
	groups int64
	memory string // id of the secret
	task   string
	photo  string // hash of a file that memory keeps for her
}

func newClub(t *testing.T) *club {
	t.Helper()
	c := &club{world: newWorld(t, withTelegram(), withModel), groups: group}
	c.config(fmt.Sprintf(`channels: {telegram_channel: {allow_from: ["%d", "%d"]}}
agents: {default: keeper}
links: [{from: keeper, to: helper}]
extensions: {sessions: {}}
`, anna, boris))
	for _, id := range []string{"keeper", "helper"} {
		c.dropIn(id, "", fmt.Sprintf(knowing, id))
	}
	c.model.Handle(obedient)
	c.start()
	c.telegramReady()
	for _, id := range []string{"links", "keeper", "helper", "sessions"} {
		c.state(c.control(), id, "active")
	}
	for n, say := range []string{
		orderTo("memory__remember", map[string]any{"text": "The safe code is " + secret + "-47"}),
		orderTo("memory__remember", map[string]any{"text": "I prefer " + secret + " blue", "kind": "preference"}),
		orderTo("memory__remember", map[string]any{"text": "Sell the " + secret, "due": "2020-01-01"}),
		orderTo("memory__remember", map[string]any{"text": "The tea is green"}),
		orderTo("scheduler__schedule_once", map[string]any{"message": "Hide the " + secret, "delay_seconds": 86400}),
		orderTo("scheduler__schedule_recurring", map[string]any{"message": "Polish the " + secret, "every_seconds": 86400}),
		orderTo("tasks__push", map[string]any{"prompt": "Find the " + secret, "name": "plan-" + secret}),
	} {
		c.telegram.Say(anna, say)
		if got := c.told(anna, n+1).Text; strings.Contains(got, "error") {
			t.Fatal(got)
		}
	}
	data := photo(t, 40, 20)
	c.photo = fmt.Sprintf("%x", sha256.Sum256(data))
	c.telegram.Inject(telegramtest.Incoming{
		From: telegramtest.User{ID: anna}, Media: "photo", File: &telegramtest.File{Data: data},
		Text: "call memory__remember {\"text\": \"The portrait\", \"attachments\": [\"" + c.photo[:6] + "\"]}",
	})
	if got := c.told(anna, 8).Text; !strings.Contains(got, `"status":"remembered"`) {
		t.Fatal(got)
	}
	c.telegram.Say(anna, orderTo("links__send_agent_message", map[string]any{
		"target": "helper", "message": orderTo("memory__list_memories", struct{}{}),
	}))
	c.eventually("the result of the exchange", func() bool {
		return strings.Contains(strings.Join(c.texts(anna), "\n"), "Heard: [result from helper]")
	})
	c.settled()
	for _, m := range c.memories() {
		if strings.Contains(m.Text, "safe code") {
			c.memory = m.ID
		}
	}
	tasks := list[[]struct{ ID string }](c.world, "tasks", "list")
	if len(tasks) != 1 || c.memory == "" {
		t.Fatalf("there are the tasks %v and the memory %q", tasks, c.memory)
	}
	c.task = tasks[0].ID
	return c
}

// hears has Boris write in a new group, and returns what he reads there: n messages.
func (c *club) hears(n int, texts ...string) string {
	c.t.Helper()
	c.groups--
	for _, text := range texts {
		c.in(c.groups, boris, text)
	}
	c.told(c.groups, n)
	c.settled()
	return strings.Join(c.texts(c.groups), "\n")
}

func (c *club) in(chat, person int64, text string) {
	c.t.Helper()
	bot := "@" + c.telegram.Bot().Username
	if name, rest, _ := strings.Cut(text, " "); strings.HasPrefix(name, "/") {
		text = strings.TrimSpace(name + bot + " " + rest)
	} else {
		text = bot + " " + text
	}
	c.telegram.Inject(telegramtest.Incoming{
		Chat: telegramtest.Chat{ID: chat, Type: telegramtest.Group, Title: "Club"},
		From: telegramtest.User{ID: person, FirstName: fmt.Sprint("Person", person)}, Text: text,
	})
}

// noSecret fails if a model was told the secret since a number of requests.
func (c *club) noSecret(since int) {
	c.t.Helper()
	for _, r := range c.model.Requests()[since:] {
		for _, m := range r.Messages {
			if strings.Contains(m.Content.Text, secret) {
				c.t.Errorf("a model is told:\n%s: %s", m.Role, m.Content.Text)
			}
		}
	}
}

// Nothing that was said or set in private reaches a group or another person: neither what
// people read there nor what a model is told for it.
func TestPrivateThingsStayPrivate(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"", "member", "guest"} {
		t.Run(cmp.Or(role, "in a group"), func(t *testing.T) {
			t.Parallel()
			c := newClub(t)
			if role != "" {
				c.isTold("hello")
				c.becomes(boris, role)
			}
			c.keepsPrivate(role)
		})
	}
}

// isTold has Boris write in private, and returns what he reads there.
func (c *club) isTold(texts ...string) string {
	c.t.Helper()
	n := len(c.texts(boris))
	for i, text := range texts {
		c.telegram.Say(boris, text)
		c.told(boris, n+i+1)
		c.settled()
	}
	return strings.Join(c.texts(boris)[n:], "\n")
}

// becomes gives a person a role.
func (w *world) becomes(user int64, role string) {
	w.t.Helper()
	all, err := w.control().People(w.ctx(), &adminv1.PeopleRequest{})
	for _, p := range all.GetPeople() {
		if err == nil && p.GetAccounts()[0].GetUserId() == fmt.Sprint(user) {
			_, err = w.control().SetRole(w.ctx(), &adminv1.SetRoleRequest{Person: p.GetId(), Role: role})
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// keepsPrivate tries every tool and command in a group or, with a role, in private.
func (c *club) keepsPrivate(role string) {
	t := c.t
	terminal := c.attach() // reads what a job sends there: unread, it would stay pending
	session := ""
	for _, s := range list[[]*adminv1.Session](c.world, "sessions", "list") {
		if strings.HasPrefix(s.Key, "chan:telegram_channel:1001") {
			session = s.Id
		}
	}
	exchange := regexp.MustCompile(`x\d+`).FindString(c.must("links", "list", "--all"))
	before, since := c.must("memory", "list", "--json")+c.must("schedules", "list", "--json"), c.model.Total()
	memories := orderTo("memory__list_memories", struct{}{})
	none := struct{}{}
	ids := func(tool string, args map[string]any) string { return orderTo(tool, args) }
	for _, tt := range []struct {
		name  string
		texts []string
		n     int    // messages that the group gets; 0: 1
		want  string // in them
	}{
		{"context", []string{"what is the safe code?"}, 1, "Heard:"},
		{"recall", []string{ids("memory__recall", map[string]any{"query": "safe code"})}, 1, `"memories":[]`},
		{"list", []string{memories}, 1, "I don't remember anything yet"},
		{"list about", []string{ids("memory__list_memories", map[string]any{"about": "safe"})}, 1, "No memories found"},
		{"relevant", []string{ids("memory__relevant", map[string]any{"query": "safe code"})}, 1, ""},
		{"open items", []string{orderTo("memory__open_items", none)}, 1, `"memories":[]`},
		{"export", []string{orderTo("memory__export_memories", none)}, 1, "# Memory"},
		{"forget", []string{ids("memory__forget", map[string]any{"ids": []string{c.memory}})}, 1, "there is no memory"},
		{"change", []string{ids("memory__remember", map[string]any{"id": c.memory, "text": "nothing"})}, 1, "there is no memory"},
		{"forget all", []string{orderTo("memory__forget_all", none)}, 1, "forgotten: 0"},
		{"the same text", []string{ids("memory__remember", map[string]any{"text": "The tea is green"})}, 1, `"status":"remembered"`},
		{"schedules", []string{orderTo("scheduler__list_schedules", map[string]any{"all": true})}, 1, "No schedules."},
		{"cancel", []string{ids("scheduler__cancel_schedule", map[string]any{"id": "r1"})}, 1, "nothing is scheduled"},
		{"edit", []string{ids("scheduler__update_schedule", map[string]any{"id": "r2", "action": "pause"})}, 1, "nothing is scheduled"},
		{"queue", []string{orderTo("tasks__queue", none)}, 1, "The queue is empty"},
		{"tasks", []string{orderTo("tasks__list", map[string]any{"all": true})}, 1, `"tasks":[]`},
		{"a task", []string{ids("tasks__show", map[string]any{"id": c.task})}, 1, "there is no task"},
		{"cancel a task", []string{ids("tasks__cancel", map[string]any{"id": c.task})}, 1, "there is no task"},
		{"links", []string{orderTo("links__list_links", map[string]any{"all": true})}, 1, `"exchanges":[]`},
		{"an exchange", []string{ids("links__show_exchange", map[string]any{"id": exchange})}, 1, "there is no exchange"},
		{"peers", []string{orderTo("links__peers", none)}, 1, "helper"},
		{"sessions", []string{orderTo("sessions__list_sessions", none)}, 1, `"sessions":[`},
		{"a session", []string{ids("sessions__get_session", map[string]any{"session_id": session})}, 1, "no other session"},
		{"figures", []string{orderTo("heartbeat__figures", none)}, 1, ""},
		{"channels", []string{orderTo("core__list_channels", none)}, 1, "telegram_channel"},
		{"delegation", []string{ids("tasks__delegate_task", map[string]any{"agent": "helper", "prompt": memories})}, 1,
			"I don't remember anything yet"},
		{"a task of a task", []string{ids("tasks__delegate_task", map[string]any{"agent": "helper", "prompt": ids(
			"tasks__delegate_task", map[string]any{"agent": "keeper", "prompt": orderTo("scheduler__list_schedules", none)},
		)})}, 1, "No schedules."},
		{"a link", []string{ids("links__send_agent_message", map[string]any{"target": "helper", "message": memories})}, 2,
			"I don't remember anything yet"},
		{"a queued task", []string{"/push deliver=announce -- " + memories, "/run"}, 3, "I don't remember anything yet"},
		{"a job", []string{ids("scheduler__schedule_once", map[string]any{
			"message": memories, "delay_seconds": 1, "topic": "system.agent.task",
		})}, 2, "I don't remember anything yet"},
		{"a job on another channel", []string{ids("scheduler__schedule_once", map[string]any{
			"message": "elsewhere " + memories, "delay_seconds": 1, "topic": "system.agent.task", "channel_id": "cli_channel",
		})}, 1, "cli_channel"},
		{"a job in the background", []string{ids("scheduler__schedule_once", map[string]any{
			"message": "background " + memories, "delay_seconds": 1, "topic": "system.agent.background",
		})}, 1, "scheduled"},
		{"a file in memory", []string{ids("memory__remember", map[string]any{
			"text": "mine", "attachments": []string{c.photo},
		})}, 1, "there is no file"},
		{"a file in a document", []string{ids("memory__import_memories", map[string]any{
			"text": "- mine\n  - file: [image " + c.photo + ": x.jpg]",
		})}, 1, "1 files were left out"},
		{"a file in a reminder", []string{ids("scheduler__schedule_once", map[string]any{
			"message": "mine", "delay_seconds": 86400, "attachments": []string{c.photo},
		})}, 1, "there is no file"},
		{"a file that is sent", []string{ids("core__send_to_channel", map[string]any{
			"channel_id": "telegram_channel", "text": "mine", "attachments": []string{c.photo},
		})}, 1, "there is no file"},
		{"/memories", []string{"/memories"}, 1, "I don't remember anything yet"},
		{"/memories about", []string{"/memories safe"}, 1, "No memories found"},
		{"/forget", []string{"/forget " + c.memory}, 1, "there is no memory"},
		{"/schedules", []string{"/schedules all"}, 1, "Nothing is scheduled"},
		{"/queue", []string{"/queue all"}, 1, "The queue is empty"},
		{"/inbox", []string{"/inbox all"}, 1, "The inbox is empty"},
		{"/questions", []string{"/questions"}, 1, ""},
		{"/status", []string{"/status"}, 1, "idle"},
		{"/agent", []string{"/agent"}, 1, "keeper"},
	} {
		if role != "" { // what was tried before is Boris' own
			got := c.isTold(tt.texts...)
			kept := role == "guest" || !strings.HasPrefix(tt.name, "a file") || strings.Contains(got, tt.want)
			if got == "" || strings.Contains(got, secret) || !kept {
				t.Errorf("%s: a %s reads %q", tt.name, role, got)
			}
			continue
		}
		got := c.hears(max(1, tt.n), tt.texts...)
		if strings.Contains(got, secret) || !strings.Contains(got, tt.want) {
			t.Errorf("%s: the group reads, instead of %q:\n%s", tt.name, tt.want, got)
		}
	}
	for _, word := range []string{"elsewhere", "background"} {
		c.eventually("the job that works "+word, func() bool {
			return role == "guest" || slices.ContainsFunc(c.model.Requests()[since:], func(r openaitest.Request) bool {
				return strings.HasPrefix(heard(r), "[task from scheduler]") && strings.Contains(heard(r), word) && len(r.Results()) > 0
			})
		})
	}
	if role != "guest" {
		terminal.hearsLike("Result: ")
	}
	c.settled()
	if got := strings.Join(terminal.texts(), "\n"); strings.Contains(got, secret) {
		t.Errorf("the terminal shows %q", got)
	}
	c.noSecret(since)
	if all := list[[]struct{ ID string }](c.world, "schedules", "list"); role == "guest" && len(all) > 2 {
		t.Errorf("a guest has set something: %v", all)
	}
	if after := c.must("memory", "list", "--json") + c.must("schedules", "list", "--json"); !strings.Contains(after, c.memory) ||
		strings.Count(after, secret) != strings.Count(before, secret) {
		t.Errorf("a group has changed what is private:\n%s\nwas\n%s", after, before)
	}

	// That a group has nothing to go by is not taken for private turns after it.
	c.in(c.groups-1, boris, "hello")
	c.told(c.groups-1, 1)
	n := len(c.texts(anna))
	c.telegram.Say(anna, "hello")
	c.told(anna, n+1)
	contains(t, "the context in private", contextOf(c.model.Requests()[c.model.Total()-1]), secret)
}

// What a person sets in a group is usable there and by them in private, and with /household the
// group uses the rest, too.
func TestAGroupHasItsOwnThingsAndTheHouseholdsIfTheOwnerSaysSo(t *testing.T) {
	t.Parallel()
	c := newClub(t)
	n := 0
	says := func(person int64, text, want string) string {
		t.Helper()
		n++
		c.in(group, person, text)
		got := c.told(group, n).Text
		if !strings.Contains(got, want) {
			t.Errorf("%s: the group reads %q, want %q", text, got, want)
		}
		c.settled()
		return got
	}
	since := c.model.Total()
	c.must("memory", "add", "The skis are in the cellar")
	c.must("schedules", "add", "Wax the skis", "--in", "24h")
	says(boris, "/remember The club meets in the quartz hall", "Remembered: The club meets in the quartz hall")
	says(boris, orderTo("scheduler__schedule_once", map[string]any{"message": "Bring the quartz", "delay_seconds": 86400}), "r4")
	says(boris, "/memories", "quartz hall")
	says(boris, "/schedules", "Bring the quartz")
	contains(t, "the household's memories", c.must("memory", "list"), "quartz hall", secret)
	c.telegram.Say(boris, "/schedules")
	c.eventually("his schedules in private", func() bool {
		texts := c.texts(boris)
		return len(texts) > 0 && strings.Contains(texts[len(texts)-1], "Bring the quartz")
	})

	says(boris, "/household", "Only the owner can use /household")
	says(anna, "/household", "household group now")
	if got := says(boris, "/memories", "in the cellar"); strings.Contains(got, secret) {
		t.Errorf("what is hers alone is read in the household's group: %q", got)
	}
	says(boris, orderTo("memory__recall", map[string]any{"query": "where are the skis"}), "in the cellar")
	says(boris, orderTo("tasks__delegate_task", map[string]any{
		"agent": "helper", "prompt": orderTo("scheduler__list_schedules", struct{}{}),
	}), "Wax the skis")

	says(anna, "/household off", "only what is said in this group")
	if got := says(boris, "/memories", "quartz hall"); strings.Contains(got, "cellar") {
		t.Errorf("the group reads %q", got)
	}
	says(boris, "what is the safe code?", "Heard:")
	says(boris, orderTo("scheduler__cancel_schedule", map[string]any{"id": "r4"}), "cancelled: r4")
	c.noSecret(since)
}

// The offline model reads and changes in a group only what was set there.
func TestTheOfflineModelInAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.start()
	w.telegramReady()
	for n, text := range []string{"remind me tomorrow at 9 to hide the " + secret, "remember that the safe code is " + secret} {
		w.telegram.Say(anna, text)
		contains(t, "the answer", w.told(anna, n+1).Text, secret)
	}
	c := &club{world: w, groups: group}
	for _, text := range []string{
		"what reminders do I have?", "when is my next reminder?", "cancel r1", "cancel the first one", "cancel that",
		"cancel everything", "move it to 6pm", "snooze", "undo", "what do you know about the safe?", "list my memories",
		"forget everything", "/schedules", "/memories", "какие у меня напоминания?", "отмени все напоминания",
	} {
		if got := c.hears(1, text); strings.Contains(got, secret) {
			t.Errorf("%s: the group reads %q", text, got)
		}
	}
	contains(t, "what is private", w.must("schedules", "list")+w.must("memory", "list"),
		"hide the "+secret, "the safe code is "+secret)
}

// A group that an earlier version knew keeps what it had if the owner alone is admitted;
// the command line lists the groups and changes them.
func TestGroupsOfAnEarlierVersionAndOnTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.config(fmt.Sprintf(`channels: {telegram_channel: {allow_from: ["%d"]}}`, anna))
	w.model.Handle(obedient)
	c := &club{world: w, groups: group}
	w.start()
	w.telegramReady()
	contains(t, "no groups", w.must("groups", "list"), "There are no groups yet")
	w.telegram.Say(anna, orderTo("memory__remember", map[string]any{"text": "The safe code is " + secret}))
	w.told(anna, 1)
	c.in(group, anna, "hello")
	contains(t, "the offer", w.told(group, 1).Text, "only what is said in it", "/household")
	w.told(group, 2)
	w.settled()
	w.stop()
	w.change(`DELETE FROM kv WHERE owner = 'kernel' AND key LIKE 'group/%'`) // as the earlier version left it
	w.start()
	w.telegramReady()
	c.in(group, anna, "hello again")
	contains(t, "what the group is told once", w.told(group, 3).Text, "household group", "/household off")
	w.told(group, 4)
	contains(t, "the context", transcript(w.model.Requests()[w.model.Total()-1]), "Heard: ") // the conversation goes on
	c.in(group, anna, "/memories")
	contains(t, "the memories", w.told(group, 5).Text, secret)

	groups := list[[]*adminv1.Group](w, "groups", "list")
	if len(groups) != 1 || groups[0].Name != "Club" || !groups[0].Household {
		t.Fatalf("there are the groups %v", groups)
	}
	contains(t, "the list", w.must("groups", "list"), "Club", "everything of the household")
	contains(t, "the output", w.must("groups", "household", "club", "--off"), "Club uses only what is said in it now")
	c.in(group, anna, "/memories")
	contains(t, "the memories", w.told(group, 6).Text, "I don't remember anything yet")
	since := w.model.Total()
	c.in(group, anna, "what is the safe code?")
	w.told(group, 7)
	c.noSecret(since)
	contains(t, "the output", w.must("groups", "household", groups[0].Id), "Club is a household group now")
	_, complaint, code := w.cli("groups", "household", "nosuch")
	if contains(t, "the refusal", complaint, `there is no group "nosuch"`, "switchboard groups list"); code == 0 {
		t.Error("an unknown group is changed")
	}
}
