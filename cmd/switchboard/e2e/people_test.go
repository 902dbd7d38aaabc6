package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// doesAsTold is a model that remembers what it is told to, and sets reminders.
func doesAsTold(r openaitest.Request) openaitest.Answer {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "assistant" || m.Role == "tool" {
			break
		}
		if _, what, found := strings.Cut(m.Content.Text, "remind me "); found {
			return openaitest.CallTool("scheduler__schedule_recurring", map[string]any{"message": what, "every_seconds": 36000})
		}
		if _, what, found := strings.Cut(m.Content.Text, "remember "); found {
			return openaitest.CallTool("memory__remember", map[string]any{"text": what, "kind": "fact"})
		}
	}
	return openaitest.Say("OK.")
}

// says has a person with a name write in Telegram, and waits for the next message.
func (w *world) says(user int64, name, text string) string {
	w.t.Helper()
	n := len(w.texts(user))
	w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: user, FirstName: name}, Text: text})
	return w.told(user, n+1).Text
}

// joins has a person write in Telegram and be approved, and returns what the command says.
func (w *world) joins(user int64, name string, flags ...string) string {
	w.t.Helper()
	m := pairingCode.FindStringSubmatch(w.says(user, name, "hello"))
	if m == nil {
		w.t.Fatalf("there is no code in %q", w.texts(user))
	}
	n := len(w.texts(user))
	out := w.must(append([]string{"pairing", "approve", m[1]}, flags...)...)
	w.told(user, n+1)
	return out
}

// refused runs a command that must fail, and looks for the words in what it says.
func (w *world) refused(words string, args ...string) {
	w.t.Helper()
	if out, complaint, code := w.cli(args...); code == 0 || !strings.Contains(complaint, words) {
		w.t.Errorf("%q ends with %d: %q%q; want %q", args, code, complaint, out, words)
	}
}

// personOf returns the row of `people list` with an account of this user.
func (w *world) personOf(user string) *adminv1.Person {
	w.t.Helper()
	for _, x := range list[[]*adminv1.Person](w, "people", "list") {
		for _, a := range x.Accounts {
			if a.UserId == user {
				return x
			}
		}
	}
	w.t.Fatalf("nobody has the account %s: %s", user, w.must("people", "list"))
	return nil
}

func TestPeopleAndTheirRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers(), withModel)
	w.model.Handle(doesAsTold)
	w.start()
	w.telegramReady()
	contains(t, "the first approval", w.joins(anna, "Anna"), "Anna (1001) is connected on telegram_channel as you, the owner.",
		"switchboard pairing revoke telegram_channel 1001")
	w.refused("give one of member, guest, owner", "pairing", "approve", "ABCD2345", "--role", "king")
	contains(t, "the second one", w.joins(boris, "Boris", "--role", "member"), "as a member.")
	contains(t, "the list", w.must("people", "list"), "Anna", "owner", "telegram_channel: 1001", "Boris", "member",
		"telegram_channel: 1002")
	contains(t, "a person", w.must("people", "show", "boris"), "Boris", "Role: member", "telegram_channel/1002",
		"0 conversations, 0 memories, 0 reminders, 0 tasks")

	w.says(boris, "Boris", "/quiet 22:00-07:00")
	w.says(boris, "Boris", "/timezone Europe/Lisbon")
	contains(t, "his settings", w.must("people", "show", "Boris"), "Time zone: Europe/Lisbon", "Quiet hours: 22:00-07:00")

	contains(t, "a guest", w.must("people", "role", "Boris", "guest"), "Boris is a guest now", "no tools that change something")
	w.says(boris, "Boris", "remind me of the pills")
	newest := w.model.Requests()[w.model.Total()-1]
	contains(t, "what the model gets for a guest", transcript(newest), "guest")
	if out := w.must("schedules", "list"); strings.Contains(out, "pills") {
		t.Errorf("a guest has set a reminder: %s", out)
	}
	if got := w.says(boris, "Boris", "how are you?"); got != "OK." {
		t.Errorf("a guest is told %q", got)
	}

	contains(t, "a blocked one", w.must("people", "role", "telegram_channel/1002", "blocked"), "Boris is blocked now")
	told, asked := len(w.texts(boris)), w.model.Total()
	w.read(w.telegram.Say(boris, "hello?"))
	w.says(anna, "Anna", "hello")
	w.settled()
	if n := len(w.texts(boris)); n != told || w.model.Total() != asked+1 {
		t.Errorf("a blocked person is told %q, and the model was asked %d times", w.texts(boris)[told:], w.model.Total()-asked)
	}
	w.must("people", "role", "Boris", "member")
	if got := w.says(boris, "Boris", "and now?"); got != "OK." {
		t.Errorf("a member again, he is told %q", got)
	}

	w.joins(clara, "Boris", "--role", "guest")
	w.refused("2 people are named \"Boris\": give an account (telegram_channel/1002, telegram_channel/1003)", "people", "show", "Boris")
	contains(t, "by an account", w.must("people", "show", "telegram_channel/1003"), "Role: guest")
	w.refused("there is no person \"Dora\"", "people", "show", "Dora")
	w.refused("`switchboard people list` lists them", "people", "role", "Dora", "guest")
	w.refused("there is no role \"king\": give one of owner, member, guest, blocked", "people", "role", "1002", "king")
	w.refused("the owner stays the owner", "people", "role", "Anna", "guest")
	w.refused("the owner can't be removed", "people", "remove", "Anna", "--yes")
	w.refused("there is no account \"nobody\"", "people", "unlink", "nobody")
	w.refused("isn't linked to another account", "people", "unlink", "telegram_channel/1002")
	w.refused("it is the owner's only account", "people", "unlink", "telegram_channel/1001")
}

func TestAccountsAreLinkedAndUnlinked(t *testing.T) {
	t.Parallel()
	d := &discordWorld{newWorld(t, strangers(), withModel), discordtest.Start(t)}
	w := d.world
	w.env["DISCORD_BOT_TOKEN"], w.env["DISCORD_API_URL"] = d.discord.Token(), d.discord.URL()
	w.model.Handle(doesAsTold)
	w.start()
	w.telegramReady()
	d.ready()
	w.joins(anna, "Anna")
	w.joins(boris, "Boris", "--role", "member")
	w.attach().ask("hello")
	dm := discordtest.DM(borisDiscord)
	says := func(text string) string {
		n := len(d.texts(dm))
		d.discord.Say(borisDiscord, text)
		return d.told(dm, n+1).Text
	}
	code := pairingCode.FindStringSubmatch(says("hello"))
	if code == nil {
		t.Fatalf("there is no code in %q", d.texts(dm))
	}
	out := w.must("pairing", "approve", code[1])
	contains(t, "the first one on another channel", out, "on discord_channel as you, the owner.")
	undo := regexp.MustCompile("`switchboard ([^`]*)`").FindStringSubmatch(out)
	if undo == nil {
		t.Fatalf("the approval names no undo: %q", out)
	}
	if x := w.personOf(borisDiscord); x.Role != "owner" {
		t.Fatalf("the first one on Discord: %v", x)
	}
	contains(t, "the undo", w.must(strings.Fields(undo[1])...), "discord_channel/1002 is a person of its own now, a member",
		"discord_channel has no owner now")
	if x := w.personOf(borisDiscord); x.Role != "member" || len(x.Accounts) != 1 {
		t.Errorf("unlinked from the owner: %v", x)
	}
	d.told(dm, 2)

	link := regexp.MustCompile(`/link [A-Z2-9]{8}`).FindString(w.says(boris, "Boris", "/link"))
	says(link)
	says(link + " yes")
	contains(t, "the linked person", w.must("people", "show", "Boris"), "telegram_channel/1002", "discord_channel/1002")
	says("remember the blue door")
	contains(t, "memories, in the other account", w.says(boris, "Boris", "/memories"), "blue door")
	contains(t, "unlinking", w.must("people", "unlink", "discord_channel/1002"), "a person of its own now",
		"Boris keeps: telegram_channel/1002")
	w.refused("isn't linked to another account", "people", "unlink", "discord_channel/1002")
	if got := w.says(boris, "Boris", "/memories"); strings.Contains(got, "blue door") {
		t.Errorf("after unlinking he reads %q", got)
	}
	contains(t, "memories of the account", says("/memories"), "blue door")
	w.refused("the terminal is always the owner's", "people", "unlink", "cli_channel/local")

	// Removed with both accounts, what was set up from either goes.
	w.says(boris, "Boris", "remember the red door")
	w.says(anna, "Anna", "remember the green door")
	link = regexp.MustCompile(`/link [A-Z2-9]{8}`).FindString(w.says(boris, "Boris", "/link"))
	says(link + " yes")
	removed := list[struct {
		Deleted struct{ Conversations, Memories int }
		Pending []string
	}](w, "people", "remove", "boris", "--yes")
	if removed.Deleted.Memories != 2 || removed.Deleted.Conversations != 2 || len(removed.Pending) > 0 {
		t.Errorf("the removal tells %+v", removed)
	}
	if out := w.must("memory", "list"); strings.Contains(out, "blue") || strings.Contains(out, "red") || !strings.Contains(out, "green") {
		t.Errorf("after the removal there is: %s", out)
	}
}

// written returns the text of all files of a directory, by their names.
func written(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAPersonIsExportedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers(), withModel)
	w.model.Handle(doesAsTold)
	w.start()
	w.telegramReady()
	w.joins(anna, "Anna")
	w.joins(boris, "Boris", "--role", "member")
	for user, name := range map[int64]string{anna: "Anna", boris: "Boris"} {
		w.says(user, name, "remember the secret of "+name)
		w.says(user, name, "remind me of the pills of "+name)
		w.says(user, name, "/push name=plan"+name+" the plan of "+name)
	}
	photo, reference := sentPhoto("look at this", "a picture of the lake")
	photo.From = telegramtest.User{ID: boris, FirstName: "Boris"}
	n := len(w.texts(boris))
	w.telegram.Inject(photo)
	w.told(boris, n+1)
	w.settled()

	dir := w.file("of boris")
	contains(t, "the export", w.must("people", "export", "Boris", dir),
		"1 conversation, 1 memory, 1 reminder, 1 task.", "Written to "+dir)
	w.refused("is not empty", "people", "export", "Boris", dir)
	files := written(t, dir)
	all := fmt.Sprint(files)
	contains(t, "person.json", files["person.json"], `"role": "member"`, `"user_id": "1002"`)
	contains(t, "memories.md", files["memories.md"], "the secret of Boris")
	contains(t, "schedules.json", files["schedules.json"], "the pills of Boris")
	contains(t, "tasks.json", files["tasks.json"], "planBoris", "the plan of Boris")
	contains(t, "all files", all, "a picture of the lake", reference, "remember the secret of Boris")
	for _, name := range []string{"Anna", "1001"} {
		if strings.Contains(all, name) {
			t.Errorf("the export of Boris has %q: %s", name, all)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "memories.md")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("memories.md is %v, %v", info, err)
	}

	w.refused("add --yes to confirm", "people", "remove", "Boris")
	contains(t, "before it is confirmed", w.must("people", "show", "Boris"), "1 memory, 1 reminder, 1 task")
	contains(t, "the removal", w.must("people", "remove", "Boris", "--yes"), "What goes with Boris:",
		"- 1 account: telegram_channel/1002", "- of their own: 1 conversation, 1 memory, 1 reminder, 1 task",
		"Boris is removed.", "Ended: ", "1 reminder")
	w.refused("there is no person \"Boris\"", "people", "remove", "Boris", "--yes")
	w.settled()
	for _, look := range [][]string{{"memory", "list"}, {"schedules", "list", "--all"}, {"tasks", "list", "--all"}, {"people", "list"}} {
		out := w.must(look...)
		if strings.Contains(out, "Boris") {
			t.Errorf("%v after the removal: %s", look, out)
		}
		contains(t, look[0], out, "Anna")
	}
	if rows := w.query(`SELECT count(*) FROM history WHERE instr(row, 'Boris') > 0`); rows[0] != "0" {
		t.Errorf("%s rows of his conversation are left", rows[0])
	}
	if got := w.says(boris, "Boris", "hello again"); !pairingCode.MatchString(got) {
		t.Errorf("removed, he is told %q", got)
	}
	if dead := w.dead(); len(dead) > 0 {
		t.Errorf("dead letters: %q", dead)
	}
}

func TestRemovalTellsWhomTheConfigurationAdmits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(doesAsTold)
	w.start()
	w.telegramReady()
	w.says(boris, "Boris", "hello")
	contains(t, "the removal", w.must("people", "remove", "Boris", "--yes"), "Boris is removed.",
		"config.yaml (channels.telegram_channel.allow_from) still admits 1002")
}
