package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/sdk"
)

// Facts is what an extension's manifest says of it, and what it needs to run.
type Facts struct {
	ID       string
	Channel  bool     // provides.channel
	Drafts   bool     // provides.channel.drafts
	Tools    bool     // provides.tools
	Models   bool     // provides.models
	Commands []string // provides.commands
	// Subscriptions are topics that match the manifest's subscriptions, one of
	// each: garbage is delivered on them.
	Subscriptions []string
	// Options is a configuration that works; the suite also starts the
	// extension without any.
	Options Options
	// Leaks are goroutines that the extension may leave behind.
	Leaks []goleak.Option
}

// Conformance checks what every extension owes the kernel, whatever it does.
// The test that calls it must not be parallel: goroutines are counted.
func Conformance(t *testing.T, newExtension func() sdk.Extension, facts Facts) {
	t.Helper()
	if facts.Options.ID == "" {
		facts.Options.ID = facts.ID
	}
	c := conformance{newExtension: newExtension, facts: facts}
	t.Run("describes itself", c.describes)
	t.Run("names its tools well", c.tools)
	t.Run("refuses bad calls", c.badCalls)
	t.Run("survives garbage on its topics", c.garbage)
	t.Run("answers its commands", c.commands)
	t.Run("takes back a draft", c.drafts)
	t.Run("drops topics it does not know", c.unknownTopic)
	t.Run("is healthy while it works", c.health)
	t.Run("runs without configuration", c.unconfigured)
	t.Run("survives restarts with the same store", c.restarts)
	t.Run("ends when the kernel is gone", c.kernelGone)
	t.Run("stops before it was started", c.neverStarted)
}

type conformance struct {
	newExtension func() sdk.Extension
	facts        Facts
}

// start runs the extension and checks at the end that nothing is left of it.
func (c conformance) start(t *testing.T, options Options) *Kernel {
	t.Helper()
	c.watchLeaks(t)
	return Start(t, c.newExtension(), options)
}

func (c conformance) watchLeaks(t *testing.T) {
	t.Helper()
	ignore := append([]goleak.Option{goleak.IgnoreCurrent()}, c.facts.Leaks...)
	t.Cleanup(func() {
		if err := goleak.Find(ignore...); err != nil {
			t.Errorf("goroutines are left: %v", err)
		}
	})
}

func (c conformance) describes(t *testing.T) {
	k := c.start(t, c.facts.Options)
	d := k.Describe()
	if !proto.Equal(d, k.Describe()) {
		t.Error("a second Describe says something else")
	}
	if k.ID() != c.facts.ID {
		t.Errorf("its ID is %q, the manifest's is %q", k.ID(), c.facts.ID)
	}
	for _, have := range []struct {
		what               string
		reported, provided bool
	}{
		{"a channel", d.GetChannel(), c.facts.Channel},
		{"drafts", d.GetDrafts(), c.facts.Drafts},
		{"tools", len(d.GetTools()) > 0, c.facts.Tools},
		{"models", d.GetModels(), c.facts.Models},
	} {
		if have.reported && !have.provided {
			t.Errorf("it reports %s, which the manifest does not provide", have.what)
		}
		if have.provided && !have.reported {
			t.Errorf("the manifest provides %s, which it does not report", have.what)
		}
	}
	k.Restart(c.newExtension())
	if !proto.Equal(d, k.Describe()) {
		t.Error("after a restart Describe says something else")
	}
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

func (c conformance) tools(t *testing.T) {
	k := c.start(t, c.facts.Options)
	allowed := map[string]bool{}
	for _, command := range c.facts.Commands {
		allowed[command] = true
	}
	seen := map[string]bool{}
	for _, tool := range k.Describe().GetTools() {
		if !toolName.MatchString(tool.GetName()) {
			t.Errorf("tool %q: a name is made of lower-case letters, digits and underscores, at most 48", tool.GetName())
		}
		if seen[tool.GetName()] {
			t.Errorf("tool %s is there twice", tool.GetName())
		}
		seen[tool.GetName()] = true
		if tool.GetDescription() == "" {
			t.Errorf("tool %s has no description", tool.GetName())
		}
		if tool.GetCommand() != "" && !allowed[tool.GetCommand()] {
			t.Errorf("tool %s is the command /%s, which the manifest does not provide", tool.GetName(), tool.GetCommand())
		}
		if err := checkSchema(tool.GetSchema()); err != nil {
			t.Errorf("tool %s: schema: %v", tool.GetName(), err)
		}
	}
}

// checkSchema compiles a tool's schema, which has to describe an object.
func checkSchema(raw []byte) error {
	if _, err := schema.Compile(raw); err != nil {
		return err
	}
	var top struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &top); err != nil {
		return err
	}
	if top.Type != "object" {
		return contract.ErrInvalid
	}
	return nil
}

// garbageArguments fit no schema that asks for anything.
var garbageArguments = []string{
	"", "{", "null", "[]", `"text"`, "0", "{}", `{"\u0000":[{}]}`,
	`{"id":{},"name":[],"text":{},"message":17,"channel_id":[],"cron":{},"at":[],"delay_seconds":"x"}`,
	"\xff\xfe",
}

func (c conformance) badCalls(t *testing.T) {
	k := c.start(t, c.facts.Options)
	ctx := t.Context()
	if r, err := k.TryCall(ctx, "no_such_tool", []byte("{}")); err == nil && !r.GetIsError() {
		t.Error("a call of an unknown tool succeeds")
	}
	for _, tool := range k.Describe().GetTools() {
		for _, arguments := range garbageArguments {
			r, err := k.TryCall(ctx, tool.GetName(), []byte(arguments))
			c.noPanic(t, r.GetContent(), err)
			if invalid := !json.Valid([]byte(arguments)) && arguments != ""; invalid && err == nil && !r.GetIsError() {
				t.Errorf("tool %s succeeds with arguments that are no JSON: %q", tool.GetName(), arguments)
			}
		}
	}
	c.alive(t, k)
}

func (c conformance) noPanic(t *testing.T, said string, err error) {
	t.Helper()
	if err != nil {
		said += err.Error()
	}
	if bytes.Contains([]byte(said), []byte("panic: ")) {
		t.Errorf("it panicked: %s", said)
	}
}

func (c conformance) garbage(t *testing.T) {
	k := c.start(t, c.facts.Options)
	topics := c.facts.Subscriptions
	if c.facts.Channel {
		topics = append(slices.Clip(topics), contract.TopicChannelSend+c.facts.ID)
	}
	for _, topic := range topics {
		for _, payload := range []string{"null", "[]", `"text"`, "0", `{"text":17}`, `{"session":[]}`, "\xff"} {
			o := k.Deliver(topic, []byte(payload))
			c.noPanic(t, o.Reason, o.Lost)
			if o.Kind == busv1.Outcome_KIND_UNSPECIFIED {
				t.Errorf("%s with %q has no outcome: %s", topic, payload, o)
			}
		}
	}
	c.alive(t, k)
}

// commands gives every command in ways that nobody thinks of.
func (c conformance) commands(t *testing.T) {
	k := c.start(t, c.facts.Options)
	for _, command := range c.facts.Commands {
		o := k.Command(command, "--no_such_parameter=1", contract.Command{})
		c.noPanic(t, o.Reason+o.Content, o.Lost)
		if !o.Acked() || o.Content == "" {
			t.Errorf("/%s with a parameter that does not exist is not answered: %s", command, o)
		}
		for _, text := range []string{"", "--", `"not closed`, "=", "—x\u0000", "{}", strings.Repeat("many words ", 1000)} {
			o := k.Command(command, text, contract.Command{}, Until(time.Now())) // it may be one that waits
			c.noPanic(t, o.Reason+o.Content, o.Lost)
			if o.Kind == busv1.Outcome_KIND_UNSPECIFIED {
				t.Errorf("/%s %.20s has no outcome: %s", command, text, o)
			}
		}
	}
	c.alive(t, k)
}

// drafts ends a draft with nothing to say, twice, and one that there never was.
func (c conformance) drafts(t *testing.T) {
	if !c.facts.Drafts {
		t.Skip("it shows no drafts")
	}
	k := c.start(t, c.facts.Options)
	update := &extensionv1.DraftUpdate{Conversation: "1", DraftId: "d1", Text: "Well"}
	if err := k.Draft(t.Context(), update); err != nil {
		t.Errorf("a draft is refused: %v", err)
	}
	for _, id := range []string{"d1", "d1", "d2"} {
		if o := k.Send(contract.ChannelSend{Conversation: "1", DraftID: id}); !o.Acked() {
			t.Errorf("draft %s cannot be removed: %s", id, o)
		}
	}
	c.alive(t, k)
}

func (c conformance) unknownTopic(t *testing.T) {
	k := c.start(t, c.facts.Options)
	o := k.Deliver("nobody.knows_this", map[string]string{})
	c.noPanic(t, o.Reason, o.Lost)
	if o.Kind != busv1.Outcome_KIND_DROP || o.Reason == "" {
		t.Errorf("an unknown topic is not dropped with a reason: %s", o)
	}
}

func (c conformance) health(t *testing.T) {
	k := c.start(t, c.facts.Options)
	working := make([]*Handling, 0, len(c.facts.Subscriptions))
	for _, topic := range c.facts.Subscriptions {
		working = append(working, k.Begin(topic, []byte(`{}`)))
	}
	c.alive(t, k)
	for _, w := range working {
		w.Cancel()
		w.Wait()
	}
	c.alive(t, k)
}

func (c conformance) alive(t *testing.T, k *Kernel) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	r, err := k.Health(ctx)
	if err != nil {
		t.Fatalf("health: %v", err)
	}
	if r.GetState() == extensionv1.Readiness_STATE_UNSPECIFIED {
		t.Error("health says nothing")
	}
}

func (c conformance) unconfigured(t *testing.T) {
	options := c.facts.Options
	options.Config, options.Secrets = nil, nil
	c.watchLeaks(t)
	k := New(t, options)
	if err := k.TryStart(c.newExtension()); err != nil {
		c.noPanic(t, "", err)
		t.Fatalf("without configuration it does not start; it should be unconfigured: %v", err)
	}
	c.alive(t, k)
	if c.facts.Channel {
		o := k.Send(contract.ChannelSend{Text: "hello"})
		c.noPanic(t, o.Reason, o.Lost)
	}
}

func (c conformance) restarts(t *testing.T) {
	k := c.start(t, c.facts.Options)
	for range 2 {
		k.Restart(c.newExtension())
		c.alive(t, k)
	}
	k.Lose()
	if err := k.TryStart(c.newExtension()); err != nil {
		t.Fatalf("after its kernel was gone it does not start again: %v", err)
	}
	c.alive(t, k)
}

func (c conformance) kernelGone(t *testing.T) {
	k := c.start(t, c.facts.Options)
	k.Lose()
}

func (c conformance) neverStarted(t *testing.T) {
	c.watchLeaks(t)
	server, err := sdk.NewServer(Logger(t), c.newExtension())
	if err != nil {
		t.Fatal(err)
	}
	server.Close(Patience)
	<-server.Done()
}
