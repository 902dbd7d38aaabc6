package manifests_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/tools"
	"github.com/switchboard-run/switchboard/manifests"
)

const notes = `api: 1
id: notes
name: Notes
version: 1.0.0
run: {command: ./notes, env: [OPENAI_API_KEY, COLOR=no]}
`

// asks parses the manifest of an extension in a directory.
func asks(t *testing.T, dir, rest string, foreign ...string) manifests.Request {
	t.Helper()
	m, err := manifests.Parse(filepath.Join(dir, "notes", "manifest.yaml"), []byte(notes+rest))
	if err != nil {
		t.Fatal(err)
	}
	return m.Asks(foreign...)
}

func TestWhatIsItsOwnIsNotAskedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "notes", "texts"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := asks(t, dir, `provides: {channel: {max_length: 4000}, commands: [note]}
permissions:
  publish: [user.message, notes.*]
  subscribe: [notes.changed, session.idle.notes, {topic: agent.output, own: true}]
  network: ["*"]
  blobs: true
  files: [texts, later]
secrets: [NOTES_TOKEN]
`)
	if len(got) > 0 {
		t.Errorf("it asks for %v", got)
	}
}

func TestALinkOutOfItsDirectoryIsAskedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := filepath.Join(dir, "notes")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(own, "texts")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"texts", "texts/../../other", "../other", "texts/ssh"} {
		if got := asks(t, dir, "permissions: {files: ["+path+"]}\n"); len(got) != 1 || got[0].Kind != manifests.AskRead {
			t.Errorf("%s: it asks for %v", path, got)
		}
	}
}

func TestWhatReachesFurtherIsAskedForInPlainWords(t *testing.T) {
	t.Parallel()
	got := asks(t, t.TempDir(), `provides: {tools: true, models: [notes/*]}
permissions:
  publish: [system.user.notify, system.user.ask, system.agent.task, other.changed]
  subscribe: [user.message, agent.output, channel.send.*, "*"]
  effects: [session.ensure, input, turn.cancel, withdraw]
  network: [api.example.org]
  listen: [8080]
  files: [/srv, {path: ~/notes, write: true}]
  tools: [scheduler/list_schedules]
  models: [default]
  presence: true
  sessions: true
  admin: read
secrets: [NOTES_TOKEN]
agent: {instructions: Be brief., uses_tools: [memory/*], memory: [household]}
schedules: [{name: daily, every: 24h, topic: system.agent.background}]
`, "OPENAI_API_KEY").Lines("")
	want := []string{
		"accept network connections on port 8080", "answer as a language model, which sees the conversations that use it",
		"answer messages as an agent", "ask the language model default, which can cost money", "ask you questions",
		"give jobs to agents (system.agent.background)", "give jobs to agents (system.agent.task)", "give tools to agents",
		"open conversations with agents", "publish events of others (other.changed)", "read /srv",
		"read all conversations", "read and change memories of household", "read and change ~/notes",
		"read events of others (*)", "read every answer of agents", "read every message that people write",
		"read everything in Switchboard: conversations, people and settings",
		"read the secret OPENAI_API_KEY, which belongs to another extension", "read what is sent to people (channel.send.*)",
		"see when people were last active", "send you messages", "stop agents", "use the tool memory/*",
		"use the tool scheduler/list_schedules", "withdraw its messages before they arrive", "write to agents",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestHashAndCover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := asks(t, dir, "provides: {tools: true}\npermissions: {publish: [a.*, b.c], tools: [m/x, m/y], "+
		"files: [{path: /srv, write: true}]}\n")
	same := asks(t, dir, "description: other words\nprovides: {tools: true, commands: [note]}\npermissions: {tools: [m/y, m/x], "+
		"publish: [b.c, a.*], network: [x.org], files: [{path: /srv, write: true}]}\n")
	if all.Hash() != same.Hash() || !all.Covers(same) || !same.Covers(all) {
		t.Errorf("%v and %v differ", all, same)
	}
	less := asks(t, dir, "permissions: {publish: [a.b], files: [/srv]}\n")
	if !all.Covers(less) || less.Covers(all) || all.Hash() == less.Hash() {
		t.Errorf("%v does not cover %v", all, less)
	}
	more := asks(t, dir, "provides: {tools: true}\npermissions: {publish: [a.*, b.*], tools: [m/z]}\n")
	want := manifests.Request{{Kind: manifests.AskPublish, Value: "b.*"}, {Kind: manifests.AskTool, Value: "m/z"}}
	if got := all.Beyond(more); !slices.Equal(got, want) {
		t.Errorf("beyond it is %v, want %v", got, want)
	}
}

// tool is a described tool, with a hash as the kernel makes it.
func tool(description, schema string, set ...func(*extensionv1.Tool)) manifests.Ask {
	t := &extensionv1.Tool{Name: "look", Description: description, Schema: []byte(schema), Approve: true, Private: true}
	for _, f := range set {
		f(t)
	}
	return manifests.Offer(t, tools.Entry("notes", t).Sum)
}

func TestAToolThatReachesFurtherIsAskedFor(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object"}`
	allowed := manifests.Request{tool("Looks.", schema)}
	for want, more := range map[string]manifests.Ask{
		"give agents the changed tool look: Looks away. (before: Looks.)":                          tool("Looks\n\u202e away.", schema),
		"give agents the tool look, which takes other arguments now: Looks.":                       tool("Looks.", `{"type": "object"}`),
		"let agents use the tool look without asking you each time: Looks.":                        tool("Looks.", schema, func(t *extensionv1.Tool) { t.Approve = false }),
		"let agents use the tool look with fewer limits: Looks.":                                   tool("Looks.", schema, func(t *extensionv1.Tool) { t.Private = false }),
		"give agents the tool peek: Looks.":                                                        tool("Looks.", schema, func(t *extensionv1.Tool) { t.Name = "peek" }),
		"give agents the changed tool look: " + strings.Repeat("x", 300) + " ... (before: Looks.)": tool(strings.Repeat("x", 301), schema),
	} {
		if got := allowed.LinesOf(allowed.Beyond(manifests.Request{more}), ""); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	free := tool("Looks.", schema, func(t *extensionv1.Tool) { t.ReadOnly, t.Private, t.Approve = true, false, false })
	if got := (manifests.Request{free}).Beyond(allowed); len(got) > 0 {
		t.Errorf("it asks again for a tool with more limits: %v", got)
	}
	if got := allowed.With(manifests.Request{free}); !slices.Equal(got, manifests.Request{free}) {
		t.Errorf("the tool is allowed as %v", got)
	}
}
