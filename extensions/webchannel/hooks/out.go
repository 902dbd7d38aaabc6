package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/netguard"
)

// Webhook is one entry of the setting webhooks.
type Webhook struct {
	URL     string   `json:"url"`
	Topics  []string `json:"topics"` // patterns
	Secret  string   `json:"secret"` // name of the secret
	Private bool     `json:"private"`
}

// TopicWebhook is the topic of the events that are to be sent, to which the extension
// subscribes.
const TopicWebhook = "web_channel.webhook"

// sending is the payload of TopicWebhook.
type sending struct {
	Webhook string `json:"webhook"`
	Event   string `json:"event"` // id
}

// Event is what a receiver gets.
type Event struct {
	ID            string          `json:"id"`
	Seq           int64           `json:"seq"`
	Topic         string          `json:"topic"`
	Key           string          `json:"key,omitempty"`
	Source        string          `json:"source"`
	CorrelationID string          `json:"correlation_id,omitempty"`
	CausationID   string          `json:"causation_id,omitempty"`
	CreatedAt     time.Time       `json:"created_at"`
	Payload       json.RawMessage `json:"payload"`
}

// outbound is one webhook.
type outbound struct {
	Webhook
	name   string
	secret []byte
	client *http.Client
}

const (
	sendTimeout = 15 * time.Second
	maxRetry    = time.Hour
)

func newOutbound(name string, w Webhook, secret string) (*outbound, error) {
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Hostname() == "":
		return nil, errors.New("url is not an address")
	case u.Scheme != "https" && !w.Private:
		return nil, errors.New("url has to begin with https://, unless private allows a receiver in your own network")
	case secret == "":
		return nil, fmt.Errorf("the secret %s is not set: add it to secrets.env", w.Secret)
	}
	for _, pattern := range w.Topics {
		if !topic.ValidPattern(pattern) {
			return nil, fmt.Errorf("topics: %q is not a topic or a pattern such as channel.send.*", pattern)
		}
	}
	o := netguard.Options{}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		o.Ports = []uint16{uint16(port)}
		if w.Private {
			o.Allow = []string{u.Host}
		}
	} else if w.Private {
		o.Allow = []string{u.Hostname()}
	}
	guard, err := netguard.New(o)
	if err == nil {
		err = guard.CheckURL(u)
	}
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return &outbound{
		Webhook: w, name: name, secret: []byte(secret),
		client: &http.Client{
			Transport: guard.Transport(), Timeout: sendTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// wants reports whether a webhook sends an event. What comes from webhooks themselves is
// not sent: it would never end.
func (o *outbound) wants(e *busv1.Event) bool {
	if e.GetTopic() == TopicWebhook {
		return false
	}
	if e.GetTopic() == contract.TopicDeliveryDead {
		var d contract.DeliveryDead
		if json.Unmarshal(e.GetPayload(), &d) != nil || d.Topic == TopicWebhook {
			return false
		}
	}
	for _, pattern := range o.Topics {
		if topic.Match(pattern, e.GetTopic()) {
			return true
		}
	}
	return false
}

// Handle sends one event; it handles the extension's subscription to TopicWebhook.
func (h *Hooks) Handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	var s sending
	if err := e.Decode(&s); err != nil {
		return nil, err
	}
	to := h.out[s.Webhook]
	if to == nil {
		return nil, sdk.Drop("there is no webhook " + s.Webhook + " in the configuration, or something is wrong with it")
	}
	events, err := h.o.Read.Events(ctx, &adminv1.EventsRequest{Ids: []string{s.Event}})
	if err != nil {
		return nil, err
	}
	found, err := events.Recv()
	if errors.Is(err, io.EOF) {
		return nil, sdk.Drop("the event " + s.Event + " is not kept any more")
	}
	if err != nil {
		return nil, err
	}
	return nil, to.send(ctx, found, h.o.Now())
}

func (o *outbound) refused(status int) error {
	return fmt.Errorf("webhook %s: the receiver answered with status %d", o.name, status)
}

// send sends an event to the receiver of a webhook.
func (o *outbound) send(ctx context.Context, e *busv1.Event, now time.Time) error {
	body, err := json.Marshal(Event{
		ID: e.GetId(), Seq: e.GetSeq(), Topic: e.GetTopic(), Key: e.GetKey(), Source: e.GetSource(),
		CorrelationID: e.GetCorrelationId(), CausationID: e.GetCausationId(),
		CreatedAt: time.UnixMicro(e.GetCreatedAtUs()).UTC(), Payload: e.GetPayload(),
	})
	if err != nil {
		return sdk.Drop(err.Error())
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL, bytes.NewReader(body))
	if err != nil {
		return sdk.Drop(err.Error())
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "switchboard")
	r.Header.Set("X-Switchboard-Signature", signature(o.secret, now, body))
	r.Header.Set("X-Switchboard-Event", e.GetId())
	r.Header.Set("X-Switchboard-Topic", e.GetTopic())
	answer, err := o.client.Do(r)
	if err != nil {
		if refusal, refused := errors.AsType[*netguard.Refusal](err); refused {
			return fmt.Errorf("webhook %s: %w", o.name, refusal)
		}
		return fmt.Errorf("webhook %s: the receiver doesn't answer: %w", o.name, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody))
	_ = answer.Body.Close()
	switch status := answer.StatusCode; {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusGone:
		return sdk.Drop("the receiver says that it is gone (410)")
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
			return sdk.Retry(min(time.Duration(seconds)*time.Second, maxRetry), o.refused(status))
		}
	}
	return o.refused(answer.StatusCode)
}
