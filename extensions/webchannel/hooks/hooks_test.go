package hooks

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

const secret = "correct horse"

var options = sdktest.Options{
	Manifest: "testdata/web_channel.yaml", Secrets: map[string]string{"HOOK": secret},
	AllowFrom: []string{"nobody"}, // as in a home: a hook is no one's account before it is admitted
}

// bed is the hooks on a kernel, with an agent that the test plays.
type bed struct {
	*sdktest.Kernel
	t      *testing.T
	config Config
	hooks  *Hooks
	site   *httptest.Server
	read   adminv1.ReadClient
	manage adminv1.ManageClient

	mu    sync.Mutex
	heard []contract.AgentInput
}

func start(t *testing.T, c Config) *bed {
	t.Helper()
	b := &bed{t: t, config: c}
	b.Kernel = sdktest.Start(t, b.extension(), options)
	return b
}

func (b *bed) extension() sdk.Extension {
	c := chat.New(time.Now)
	return sdk.Extension{
		ID: "web_channel", Channel: c, HandleAgent: b.handle,
		Handle: func(ctx context.Context, e sdk.Event) (sdk.Effects, error) { return b.hooks.Handle(ctx, e) },
		Start: func(ctx context.Context, k *sdk.Kernel) error {
			c.Start(k)
			b.read, b.manage = admin.Reader(k.Services().Conn), admin.Manager(k.Services().Conn)
			var problems []string
			b.hooks, problems = New(Options{
				Config: b.config, Context: ctx, Channel: "web_channel", Chat: c, Store: k, Read: b.read, Manage: b.manage,
				Now: time.Now, Log: k.Log(),
			})
			if len(problems) > 0 {
				b.t.Errorf("problems: %q", problems)
			}
			mux := http.NewServeMux()
			b.hooks.Register(mux)
			b.site = httptest.NewServer(mux)
			return nil
		},
		Stop: func(context.Context) error {
			b.site.Close()
			c.Stop()
			return nil
		},
	}
}

func (b *bed) handle(_ context.Context, d sdk.Delivery) (sdk.Effects, error) {
	var in contract.AgentInput
	if err := d.Decode(&in); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.heard = append(b.heard, in)
	b.mu.Unlock()
	out := contract.AgentOutput{Outcome: contract.OutcomeOK, Text: "Noted."}
	return sdk.Effects{sdk.Publish(contract.TopicAgentOutput, out)}, nil
}

func (b *bed) inputs(n int) []contract.AgentInput {
	b.t.Helper()
	b.WaitUntil("the agent hears", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.heard) >= n
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.heard)
}

func (b *bed) post(name, body, delivery string, header ...string) (status int, text string) {
	b.t.Helper()
	if len(header) == 0 {
		header = []string{"sha256=" + hex.EncodeToString(sign([]byte(secret), body))}
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.site.URL+"/hooks/"+name, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("X-Signature", header[0])
	r.Header.Set("X-Delivery", delivery)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	all, err := io.ReadAll(got.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return got.StatusCode, string(all)
}

func (b *bed) mustPost(name, body, delivery string) {
	b.t.Helper()
	if status, text := b.post(name, body, delivery); status != http.StatusOK {
		b.t.Fatalf("status %d: %s", status, text)
	}
}

func hook(to, template string) Hook {
	return Hook{Secret: "HOOK", Signature: "X-Signature", Dedupe: "X-Delivery", To: to, Template: template}
}

func TestAHookIsAMessageOfAGuest(t *testing.T) {
	t.Parallel()
	b := start(t, Config{Hooks: map[string]Hook{"ci": hook("message", "/stop {{.branch}} is {{.state}}, build {{.build}}")}})
	body := `{"branch": "main", "state": "red", "build": 12345678}`
	b.mustPost("ci", body, "d1")
	b.mustPost("ci", body, "d1")
	b.Restart(b.extension())
	b.mustPost("ci", body, "d1")
	b.mustPost("ci", body, "d2")
	got := b.inputs(2)
	if len(got) != 2 || got[0].Text != "/stop main is red, build 12345678" || got[0].ForwardedFrom != "hook ci" {
		t.Errorf("heard %+v", got)
	}
	known, err := b.read.People(t.Context(), &adminv1.PeopleRequest{})
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{}
	for _, p := range known.GetPeople() {
		for _, a := range p.GetAccounts() {
			roles[a.GetUserId()] = p.GetRole()
		}
	}
	if roles["hook:ci"] != "guest" {
		t.Errorf("roles %v", roles)
	}
	if _, err := b.manage.Revoke(t.Context(), &adminv1.RevokeRequest{Channel: "web_channel", UserId: "hook:ci"}); err != nil {
		t.Fatal(err)
	}
	if status, text := b.post("ci", body, "d3"); status != http.StatusForbidden {
		t.Errorf("after the owner has revoked it: status %d: %s", status, text)
	}
}

func TestAHookIsAnEvent(t *testing.T) {
	t.Parallel()
	b := start(t, Config{Hooks: map[string]Hook{"ci": hook("event", "")}})
	body := `{"n": 1.50, "of": [9007199254740993]}`
	b.mustPost("ci", body, "d1")
	b.Restart(b.extension())
	b.mustPost("ci", body, "d1")
	events := b.Published(TopicHook + "ci")
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	var got Received
	if err := json.Unmarshal(events[0].GetPayload(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Hook != "ci" || !strings.Contains(string(got.Body), "9007199254740993") {
		t.Errorf("payload %s", events[0].GetPayload())
	}
}

func TestAHookIsATaskOfAGuest(t *testing.T) {
	t.Parallel()
	b := start(t, Config{Hooks: map[string]Hook{"ci": hook("task", "Look at {{.branch}}.")}})
	b.mustPost("ci", `{"branch": "main"}`, "d1")
	b.mustPost("ci", `{"branch": "main"}`, "d1")
	b.mustPost("ci", `{"branch": "next"}`, "d2")
	got := b.inputs(2)
	if len(got) != 2 || got[0].Kind != contract.InputTask || got[0].Text != "Look at main." || got[0].Person == "" {
		t.Errorf("heard %+v", got)
	}
}

func TestWhatIsWrongIsRefused(t *testing.T) {
	t.Parallel()
	b := start(t, Config{Hooks: map[string]Hook{"ci": hook("event", "{{if .take}}taken{{end}}")}})
	good := hex.EncodeToString(sign([]byte(secret), "{}"))
	for what, one := range map[string]struct {
		hook, body, delivery, signature string
		want                            int
	}{
		"another hook":       {"cd", "{}", "d", good, http.StatusNotFound},
		"no signature":       {"ci", "{}", "d", "", http.StatusUnauthorized},
		"another body":       {"ci", "{ }", "d", good, http.StatusUnauthorized},
		"another secret":     {"ci", "{}", "d", hex.EncodeToString(sign([]byte("x"), "{}")), http.StatusUnauthorized},
		"no hexadecimal":     {"ci", "{}", "d", "zz", http.StatusUnauthorized},
		"no delivery":        {"ci", "{}", "", good, http.StatusBadRequest},
		"no JSON":            {"ci", "a=b", "d", hex.EncodeToString(sign([]byte(secret), "a=b")), http.StatusUnprocessableEntity},
		"a large body":       {"ci", strings.Repeat(" ", maxBody+1), "d", good, http.StatusRequestEntityTooLarge},
		"a signature of old": {"ci", "{}", "d", signature([]byte(secret), time.Now().Add(-time.Hour), []byte("{}")), http.StatusUnauthorized},
		"one with a time":    {"ci", "{}", "d", signature([]byte(secret), time.Now(), []byte("{}")), http.StatusOK},
	} {
		if status, text := b.post(one.hook, one.body, one.delivery, one.signature); status != one.want {
			t.Errorf("%s: status %d, want %d: %s", what, status, one.want, text)
		}
	}
	refused := 0
	for range 2 * atOnce {
		if status, _ := b.post("ci", "{}", "d"); status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no request was too many")
	}
}

func TestATemplateMayLeaveARequestOut(t *testing.T) {
	t.Parallel()
	b := start(t, Config{Hooks: map[string]Hook{"ci": hook("message", `{{if eq .state "red"}}It is red.{{end}}`)}})
	b.mustPost("ci", `{"state": "green"}`, "d1")
	b.mustPost("ci", `{"state": "red"}`, "d2")
	if got := b.inputs(1); got[0].Text != "It is red." {
		t.Errorf("heard %+v", got)
	}
}

func TestProblemsOfSettingsAreNamed(t *testing.T) {
	t.Parallel()
	_, problems := New(Options{Store: none{}, Config: Config{
		Hooks: map[string]Hook{"a": {Secret: "NO"}, "b": {Secret: "HOOK", Template: "{{"}},
		Webhooks: map[string]Webhook{
			"c": {URL: "http://example.org", Secret: "HOOK"}, "d": {URL: "https://10.0.0.1/x", Secret: "HOOK"},
			"e": {URL: "https://example.org", Secret: "HOOK", Topics: []string{"a b"}},
		},
	}})
	want := []string{"hooks.a: the secret NO is not set", "hooks.b.template: ", "webhooks.c: url has to begin with https",
		"webhooks.d: url: ", "webhooks.e: topics: "}
	for i, w := range want {
		if len(problems) != len(want) || !strings.HasPrefix(problems[i], w) {
			t.Fatalf("problems %q", problems)
		}
	}
}

type none struct{ Store }

func (none) Secret(name string) string { return map[string]string{"HOOK": secret}[name] }

// deadLetters counts the events for webhooks that were given up.
func (b *bed) deadLetters() (n int) {
	rows, err := b.read.Deliveries(b.t.Context(), &adminv1.DeliveriesRequest{Dead: true})
	for err == nil {
		var d *adminv1.Delivery
		if d, err = rows.Recv(); err == nil && d.GetTopic() == TopicWebhook {
			n++
		}
	}
	return n
}
