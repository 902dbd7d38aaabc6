package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/schema"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/sdk"
)

// Conformance checks what every extension owes the kernel, whatever it does. The
// options name the manifest and a configuration that works; the suite also starts the
// extension without any. Goroutines that the extension may leave behind are ignored
// with leaks. The test that calls it must not be parallel: goroutines are counted.
func Conformance(t *testing.T, newExtension func() sdk.Extension, options Options, leaks ...goleak.Option) {
	t.Helper()
	manifest, err := options.manifest()
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	if manifest == nil {
		t.Fatal("sdktest: the suite needs the manifest: set Options.Manifest")
	}
	spec := manifest.Spec()
	c := conformance{newExtension: newExtension, options: options, leaks: leaks, spec: &spec}
	t.Run("keeps the rules of the protocol", c.protocol)
	t.Run("describes itself", c.describes)
	t.Run("names its tools well", c.tools)
	t.Run("refuses bad calls", c.badCalls)
	t.Run("survives garbage on its topics", c.garbage)
	t.Run("takes the results of its calls", c.results)
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
	options      Options
	leaks        []goleak.Option
	spec         *kernel.Spec // as the manifest has it
}

// start runs the extension and checks at the end that nothing is left of it.
func (c conformance) start(t *testing.T) *Kernel {
	t.Helper()
	c.watchLeaks(t)
	return Start(t, c.newExtension(), c.options)
}

func (c conformance) watchLeaks(t *testing.T) {
	t.Helper()
	ignore := append([]goleak.Option{goleak.IgnoreCurrent()}, c.leaks...)
	t.Cleanup(func() {
		if err := goleak.Find(ignore...); err != nil {
			t.Errorf("goroutines are left: %v", err)
		}
	})
}

// describes compares the description with the manifest: the kernel refuses more than
// that provides, and the suite also less.
func (c conformance) describes(t *testing.T) {
	k := c.start(t)
	d := k.Describe()
	if !proto.Equal(d, k.Describe()) {
		t.Error("a second Describe says something else")
	}
	p := c.spec.Provides
	for _, have := range []struct {
		what               string
		reported, provided bool
	}{
		{"a channel", d.GetChannel(), p.Channel != nil},
		{"drafts", d.GetDrafts(), p.Channel != nil && p.Channel.Drafts},
		{"tools", len(d.GetTools()) > 0, p.Tools},
		{"models", d.GetModels(), len(p.Models) > 0},
	} {
		if have.reported && !have.provided {
			t.Errorf("it reports %s, which the manifest does not provide", have.what)
		}
		if have.provided && !have.reported {
			t.Errorf("the manifest provides %s, which it does not report", have.what)
		}
	}
	for _, command := range p.Commands {
		if !slices.ContainsFunc(d.GetTools(), func(t *extensionv1.Tool) bool { return t.GetCommand() == command.Name }) {
			t.Errorf("the manifest provides the command /%s, and no tool is it", command.Name)
		}
	}
	k.Restart(c.newExtension())
	if !proto.Equal(d, k.Describe()) {
		t.Error("after a restart Describe says something else")
	}
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

func (c conformance) tools(t *testing.T) {
	k := c.start(t)
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

// badCalls calls the tools with what the kernel lets pass, and with what it does not.
func (c conformance) badCalls(t *testing.T) {
	k := c.start(t)
	ctx := t.Context()
	direct := extensionv1.NewToolsClient(k.Conn())
	for _, tool := range append(k.Describe().GetTools(), &extensionv1.Tool{Name: "no_such_tool"}) {
		for n, arguments := range garbageArguments {
			r, err := direct.Call(ctx, &extensionv1.CallRequest{
				CallId: fmt.Sprint(tool.GetName(), n), Name: tool.GetName(), Arguments: []byte(arguments),
			})
			c.noPanic(t, r.GetContent(), err)
			switch failed := err != nil || r.GetIsError(); {
			case failed:
			case tool.GetDescription() == "":
				t.Error("a call of an unknown tool succeeds")
			case !json.Valid([]byte(arguments)) && arguments != "":
				t.Errorf("tool %s succeeds with arguments that are no JSON: %q", tool.GetName(), arguments)
			}
		}
		if tool.GetApprove() || tool.GetInterruptible() {
			continue // it waits
		}
		r, err := k.TryCall(ctx, tool.GetName(), []byte("{}"))
		c.noPanic(t, r.GetContent(), err)
		if err != nil {
			t.Errorf("tool %s has no result for the kernel: %v", tool.GetName(), err)
		}
	}
	c.alive(t, k)
}

func (c conformance) noPanic(t *testing.T, said string, err error) {
	t.Helper()
	if err != nil {
		said += err.Error()
	}
	if strings.Contains(said, "panic: ") {
		t.Errorf("it panicked: %s", said)
	}
}

// hand hands a delivery over that the kernel would not make.
func (c conformance) hand(t *testing.T, k *Kernel, topic string, payload []byte) Outcome {
	t.Helper()
	o := k.Hand(topic, payload)
	c.noPanic(t, o.Reason, o.Lost)
	if o.Kind == busv1.Outcome_KIND_UNSPECIFIED {
		t.Errorf("%s with %q has no outcome: %s", topic, payload, o)
	}
	return o
}

func (c conformance) garbage(t *testing.T) {
	k := c.start(t)
	for _, topic := range topics(c.spec) {
		for _, payload := range []string{"null", "[]", `"text"`, "0", `{"text":17}`, `{"session":[]}`, "\xff"} {
			c.hand(t, k, topic, []byte(payload))
		}
	}
	c.alive(t, k)
}

// results hands over results of calls by the effect call: of a call that it never made or has
// forgotten, a failed one, and one that is no JSON, each twice, as after a crash. No repetition
// would help, so each has to be taken or dropped.
func (c conformance) results(t *testing.T) {
	if len(c.spec.Permissions.Tools) == 0 {
		t.Skip("it calls no tools")
	}
	k := c.start(t)
	if !k.Describe().GetEvents() {
		t.Skip("it handles no events, so it gets no results")
	}
	tool := strings.TrimSuffix(c.spec.Permissions.Tools[0], "*")
	for n, r := range []contract.ToolResult{
		{Content: `{"status":"ok"}`}, {Content: "the outcome is unknown", Error: true}, {Content: "\x00 no JSON"}, {},
	} {
		r.ID, r.Tool = fmt.Sprint("conformance ", n), tool
		for range 2 {
			o := c.hand(t, k, contract.TopicToolResult+c.spec.ID, encode(t, r))
			if o.Kind != busv1.Outcome_KIND_ACK && o.Kind != busv1.Outcome_KIND_DROP {
				t.Errorf("the result %q of a call that it did not make is neither taken nor dropped: %s", r.Content, o)
			}
		}
	}
	c.alive(t, k)
}

// commands gives every command in unusual ways.
func (c conformance) commands(t *testing.T) {
	k := c.start(t)
	described := k.Describe().GetTools()
	for _, command := range c.spec.Provides.Commands {
		texts := []string{"--no_such_parameter=1", "", "--", `"not closed`, "=", "—x\u0000", "{}",
			strings.Repeat("many words ", 1000)}
		if slices.ContainsFunc(described, func(t *extensionv1.Tool) bool {
			return t.GetCommand() == command.Name && t.GetInterruptible()
		}) {
			texts = texts[:1] // it waits if it can be read
		}
		for _, text := range texts {
			answer := k.Command(command.Name, text)
			c.noPanic(t, answer, nil)
		}
	}
	c.alive(t, k)
}

// drafts ends a draft with nothing to say, twice, and one that there never was.
func (c conformance) drafts(t *testing.T) {
	if c.spec.Provides.Channel == nil || !c.spec.Provides.Channel.Drafts {
		t.Skip("it shows no drafts")
	}
	k := c.start(t)
	update := &extensionv1.DraftUpdate{Conversation: "1", DraftId: "d1", Text: "Well"}
	if err := k.Draft(t.Context(), update); err != nil {
		t.Errorf("a draft is refused: %v", err)
	}
	for _, id := range []string{"d1", "d1", "d2"} {
		m := contract.ChannelSend{Kind: contract.SendReply, Conversation: "1", DraftID: id}
		if k.Readiness().GetState() == sdk.Ready {
			if o := k.Send(m); !o.Acked() {
				t.Errorf("draft %s cannot be removed: %s", id, o)
			}
			continue
		}
		// The kernel holds what a channel that is not ready is to send.
		o := c.hand(t, k, contract.TopicChannelSend+c.spec.ID, encode(t, m))
		if o.Kind != busv1.Outcome_KIND_ACK {
			t.Errorf("draft %s cannot be removed: %s", id, o)
		}
	}
	c.alive(t, k)
}

func (c conformance) unknownTopic(t *testing.T) {
	k := c.start(t)
	o := c.hand(t, k, "nobody.knows_this", []byte("{}"))
	if o.Kind != busv1.Outcome_KIND_DROP || o.Reason == "" {
		t.Errorf("an unknown topic is not dropped with a reason: %s", o)
	}
}

func (c conformance) health(t *testing.T) {
	k := c.start(t)
	stream, err := extensionv1.NewEventsClient(k.Conn()).Deliver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	frame, cancels := &extensionv1.DeliverFrame{}, &extensionv1.DeliverFrame{}
	for n, topic := range topics(c.spec) {
		token := fmt.Sprint(n)
		frame.Deliveries = append(frame.Deliveries, &busv1.Delivery{
			Token: token, Attempt: 1, Subscription: topic,
			Event: &busv1.Event{Id: "e" + token, Topic: topic, Source: contract.KernelSource, Payload: []byte(`{}`)},
		})
		cancels.Cancels = append(cancels.Cancels, token)
	}
	send := func(f *extensionv1.DeliverFrame) {
		if err := stream.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	send(frame)
	c.alive(t, k)
	send(cancels)
	for answered := 0; answered < len(cancels.GetCancels()); {
		f, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		answered += len(f.GetOutcomes())
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
	options := c.options
	options.Config, options.Secrets = nil, nil
	c.watchLeaks(t)
	k := New(t, options)
	if err := k.TryStart(c.newExtension()); err != nil {
		c.noPanic(t, "", err)
		t.Fatalf("without configuration it does not start; it should be unconfigured: %v", err)
	}
	c.alive(t, k)
	if c.spec.Provides.Channel != nil {
		m := contract.ChannelSend{Kind: contract.SendReply, Text: "hello"}
		c.hand(t, k, contract.TopicChannelSend+c.spec.ID, encode(t, m))
	}
}

func (c conformance) restarts(t *testing.T) {
	k := c.start(t)
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
	k := c.start(t)
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
