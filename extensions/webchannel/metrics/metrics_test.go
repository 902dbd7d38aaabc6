package metrics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

var owner = door.Visitor{User: "owner", Person: "owner", Role: "owner"}

func get(t *testing.T, mux *http.ServeMux, path string, v door.Visitor) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(door.With(t.Context(), v), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestWhatHappensAfterTheFirstScrapeIsCounted(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	var kernel *sdk.Kernel
	var sent atomic.Int32
	k := sdktest.Start(t, sdk.Extension{
		ID: "web_channel",
		Channel: sdk.ChannelFunc(func(context.Context, sdk.Message) (sdk.Receipt, error) {
			sent.Add(1)
			return sdk.Receipt{}, nil
		}),
		HandleAgent: func(context.Context, sdk.Delivery) (sdk.Effects, error) {
			out := contract.AgentOutput{Outcome: contract.OutcomeOK, Text: "hello"}
			return sdk.Effects{sdk.Publish(contract.TopicAgentOutput, out)}, nil
		},
		Start: func(ctx context.Context, k *sdk.Kernel) error {
			kernel = k
			Register(mux, Options{Context: ctx, Read: admin.Reader(k.Services().Conn), Now: time.Now, Log: k.Log()})
			return nil
		},
	}, sdktest.Options{Manifest: "testdata/web_channel.yaml"})
	say := func() {
		t.Helper()
		err := kernel.Receive(t.Context(), sdk.UserMessage{Text: "hi", UserID: "anna", ConversationID: "anna"}, "")
		if err != nil {
			t.Fatal(err)
		}
	}
	say()
	k.WaitUntil("the answer is sent", func() bool { return sent.Load() == 1 })
	if _, body := get(t, mux, "/metrics", owner); strings.Contains(body, "switchboard_messages_total") {
		t.Errorf("counted before the first scrape: %s", body)
	}
	say()
	body := ""
	k.WaitUntil("the turn is counted", func() bool {
		_, body = get(t, mux, "/metrics", owner)
		return strings.Contains(body, `switchboard_turns_total{agent="web_channel",outcome="ok"} 1`)
	})
	for _, line := range []string{
		`switchboard_messages_total{channel="web_channel"} 1`,
		`switchboard_reply_seconds_count{channel="web_channel"} 1`,
		`switchboard_reply_seconds_bucket{channel="web_channel",le="+Inf"} 1`,
		`switchboard_turn_seconds_count{agent="web_channel"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("%s is missing in %s", line, body)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(body)); err != nil {
		t.Error(err)
	}
	for _, v := range []door.Visitor{{}, {Person: "p", Role: "member"}, {Person: "o", Role: "owner", Token: "t"}} {
		if status, _ := get(t, mux, "/metrics", v); status != http.StatusForbidden {
			t.Errorf("%+v: status %d", v, status)
		}
	}
}

// fake is a kernel that answers about its status alone.
type fake struct {
	adminv1.ReadClient
	err    error
	damage string
}

func (f *fake) Status(context.Context, *adminv1.StatusRequest, ...grpc.CallOption) (*adminv1.Status, error) {
	return &adminv1.Status{Damage: f.damage}, f.err
}

func TestChecksSayOkOrNotOk(t *testing.T) {
	t.Parallel()
	now, kernel := time.Now(), &fake{}
	mux := http.NewServeMux()
	Register(mux, Options{Context: t.Context(), Read: kernel, Now: func() time.Time { return now }, Log: hclog.NewNullLogger()})
	check := func(path string, want int) {
		t.Helper()
		text := "ok\n"
		if want != http.StatusOK {
			text = "not ok\n"
		}
		if status, body := get(t, mux, path, door.Visitor{}); status != want || body != text {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
	check("/readyz", http.StatusOK)
	kernel.err = errors.New("gone")
	check("/readyz", http.StatusOK) // asked once a second
	now = now.Add(readyKept)
	check("/readyz", http.StatusServiceUnavailable)
	check("/healthz", http.StatusOK)
	kernel.err, kernel.damage = nil, "a page is damaged"
	now = now.Add(readyKept)
	check("/readyz", http.StatusServiceUnavailable)
}
