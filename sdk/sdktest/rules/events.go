package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

var eventRules = []rule{
	{
		name: "outcome", check: (*run).outcome,
		expected: "each delivery is answered by one outcome with its token",
		hint:     "answer also what you cannot handle: KIND_FAIL with a reason, or KIND_DROP",
	},
	{
		name: "unknown-topic", check: (*run).unknownTopic,
		expected: "a delivery of a topic that it does not know is dropped with a reason",
		hint:     "answer KIND_DROP: an ack of something unhandled hides a wrong subscription",
	},
	{
		name: "garbage", check: (*run).garbage,
		expected: "payloads that are no JSON, or other JSON, get an outcome, and the process lives on",
		hint:     "check what you decode, and answer KIND_DROP with a reason",
	},
	{
		name: "large", check: (*run).large,
		expected: "messages of more than 4 MiB are taken, up to 16 MiB",
		hint:     "raise the limit of received messages of your gRPC server to 16 MiB",
	},
	{
		name: "credit-returned", check: (*run).creditReturned,
		expected: "it gives back one credit for each delivery that a handler takes",
		hint:     "send OutcomeFrame{credit: 1} when a handler takes a delivery, not only at the start",
	},
	{
		name: "busy-health", check: (*run).busyHealth,
		expected: "Health answers while deliveries are handled",
		hint:     "handle deliveries beside the stream and beside Health, not in their thread",
	},
	{
		name: "cancel", check: (*run).cancels,
		expected: "a cancelled handler ends soon, with an outcome",
		hint:     "end the handler whose token DeliverFrame.cancels names; otherwise the process is restarted",
	},
	{
		name: "repeat", check: (*run).repeats,
		expected: "a repetition after a crash is handled like the first attempt, and publishes nothing twice",
		hint: "return what a handler publishes with its outcome; a commit of its own needs an id, or a " +
			"dedupe_key, that is the same in a repetition",
	},
}

func (r *run) outcome(ctx context.Context) (string, error) {
	s, err := r.events(ctx)
	if err != nil {
		return "", err
	}
	topics := r.topics()
	if len(topics) == 0 {
		topics = []string{unknownTopic}
	}
	var kinds []string
	for _, name := range topics {
		d := r.delivery(name, r.sample(name))
		if err := s.hand(ctx, d); err != nil {
			return "", err
		}
		outcomes, err := r.orCancelled(ctx, s, d)
		if err != nil {
			return "", err
		}
		if err := panicked(outcomes[0].GetReason(), nil); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		kinds = append(kinds, name+": "+kindName(outcomes[0]))
	}
	return strings.Join(kinds, "; "), nil
}

// orCancelled waits for the outcome of a delivery; a turn of an agent, which may last, is
// cancelled at once.
func (r *run) orCancelled(ctx context.Context, s *session, d *busv1.Delivery) ([]*busv1.Outcome, error) {
	if strings.HasPrefix(d.GetEvent().GetTopic(), contract.TopicAgentInput) {
		if err := s.send(&extensionv1.DeliverFrame{Cancels: []string{d.GetToken()}}); err != nil {
			return nil, err
		}
	}
	return s.answers(ctx, d)
}

// kindName is the kind of an outcome with its reason.
func kindName(o *busv1.Outcome) string {
	name := strings.TrimPrefix(o.GetKind().String(), "KIND_")
	if o.GetReason() != "" {
		name += " (" + contract.Truncate(o.GetReason(), 120, "…") + ")"
	}
	return name
}

// panicked is an error if a text tells of a handler that did not expect its input.
func panicked(said string, err error) error {
	if err != nil {
		said += err.Error()
	}
	if strings.Contains(said, "panic: ") {
		return fmt.Errorf("it panicked: %s", contract.Truncate(said, 200, "…"))
	}
	return nil
}

func (r *run) unknownTopic(ctx context.Context) (string, error) {
	s, err := r.events(ctx)
	if err != nil {
		return "", err
	}
	outcomes, err := s.deliver(ctx, r.delivery(unknownTopic, []byte("{}")))
	if err != nil {
		return "", err
	}
	if o := outcomes[0]; o.GetKind() != busv1.Outcome_KIND_DROP || o.GetReason() == "" {
		return "", errors.New(kindName(o))
	}
	return kindName(outcomes[0]), nil
}

var garbagePayloads = []string{"", "null", "[]", `"text"`, "0", "{", `{"text":17}`, `{"session":[]}`, "\xff", "\x00"}

func (r *run) garbage(ctx context.Context) (string, error) {
	s, err := r.events(ctx)
	if err != nil {
		return "", err
	}
	topics, n := r.topics(), 0
	for _, name := range topics {
		for _, payload := range garbagePayloads {
			d := r.delivery(name, []byte(payload))
			if err := s.hand(ctx, d); err != nil {
				return "", fmt.Errorf("%s with %q: %w", name, payload, err)
			}
			outcomes, err := r.orCancelled(ctx, s, d)
			if err == nil {
				err = panicked(outcomes[0].GetReason(), nil)
			}
			if err != nil {
				return "", fmt.Errorf("%s with %q: %w", name, payload, err)
			}
			n++
		}
	}
	if n == 0 {
		return "", skipped("it subscribes to nothing")
	}
	if _, err := s.health(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, each with an outcome", plural(n, "delivery", "deliveries")), nil
}

// largePayload is what a frame of several deliveries may have.
const largePayload = 6 << 20

func (r *run) large(ctx context.Context) (string, error) {
	text := []byte(`{"text":"` + strings.Repeat("x", largePayload) + `"}`)
	s, err := r.events(ctx)
	var skip skipped
	if errors.As(err, &skip) && len(r.described.GetTools()) > 0 {
		return r.largeCall(ctx, text)
	}
	if err != nil {
		return "", err
	}
	outcomes, err := s.deliver(ctx, r.delivery(unknownTopic, text))
	if err != nil {
		return "", err
	}
	return kindName(outcomes[0]), nil
}

func (r *run) largeCall(ctx context.Context, text []byte) (string, error) {
	s, err := r.active(ctx)
	if err != nil {
		return "", err
	}
	_, err = s.call(ctx, &extensionv1.CallRequest{Name: r.described.GetTools()[0].GetName(), Arguments: text})
	if err != nil && strings.Contains(err.Error(), "larger than max") {
		return "", err
	}
	if _, err := s.health(ctx); err != nil {
		return "", err
	}
	return "a call with arguments of 6 MiB is answered", nil
}

// mostCredit bounds how many deliveries are handed out to use up the credit.
const mostCredit = 4096

func (r *run) creditReturned(ctx context.Context) (string, error) {
	s, err := r.events(ctx)
	if err != nil {
		return "", err
	}
	if err := s.wait(ctx, "credit", func() bool { return s.given > 0 }); err != nil {
		return "", err
	}
	s.mu.Lock()
	n := min(s.credit, mostCredit) + 8
	s.mu.Unlock()
	var all []*busv1.Delivery
	for range n {
		d := r.delivery(unknownTopic, []byte("{}"))
		if err := s.hand(ctx, d); err != nil {
			return "", fmt.Errorf("after %d deliveries: %w", len(all), err)
		}
		all = append(all, d)
	}
	if _, err := s.answers(ctx, all...); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d deliveries one after the other", n), nil
}

func (r *run) busyHealth(ctx context.Context) (string, error) {
	s, err := r.events(ctx)
	if err != nil {
		return "", err
	}
	all := []*busv1.Delivery{r.delivery(unknownTopic, []byte("{}"))}
	for _, name := range r.topics() {
		all = append(all, r.delivery(name, r.sample(name)))
	}
	if err := s.wait(ctx, "credit", func() bool { return s.given > 0 }); err != nil {
		return "", err
	}
	s.mu.Lock()
	taken := s.given + len(all)
	s.mu.Unlock()
	for _, d := range all {
		if err := s.hand(ctx, d); err != nil {
			return "", err
		}
	}
	if err := s.wait(ctx, "credit for what handlers have taken", func() bool { return s.given >= taken }); err != nil {
		return "", err
	}
	if _, err := s.health(ctx); err != nil {
		return "", err
	}
	for _, d := range all {
		if _, err := r.orCancelled(ctx, s, d); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("it answers with %s in flight", plural(len(all), "delivery", "deliveries")), nil
}

func (r *run) cancels(ctx context.Context) (string, error) {
	s, err := r.events(ctx)
	if err != nil {
		return "", err
	}
	topics := r.topics()
	if len(topics) == 0 {
		return "", skipped("it subscribes to nothing")
	}
	for _, name := range topics {
		d := r.delivery(name, r.sample(name))
		if err := s.hand(ctx, d); err != nil {
			return "", err
		}
		if err := s.send(&extensionv1.DeliverFrame{Cancels: []string{d.GetToken(), "no-such-token"}}); err != nil {
			return "", err
		}
		if _, err := s.answers(ctx, d); err != nil {
			return "", fmt.Errorf("after its cancel: %w", err)
		}
	}
	if _, err := s.health(ctx); err != nil {
		return "", err
	}
	return plural(len(topics), "handler", "handlers") + " ended", nil
}

func (r *run) repeats(ctx context.Context) (string, error) {
	s, err := r.events(ctx)
	if err != nil {
		return "", err
	}
	topics := r.topics()
	if len(topics) == 0 {
		return "", skipped("it subscribes to nothing")
	}
	var kinds []string
	for _, name := range topics {
		first := r.delivery(name, r.sample(name))
		if strings.HasPrefix(name, contract.TopicAgentInput) {
			continue // a turn resumes from its history, which is not played
		}
		if _, err := s.deliver(ctx, first); err != nil {
			return "", err
		}
		second := r.again(first)
		outcomes, err := s.deliver(ctx, second)
		if err != nil {
			return "", fmt.Errorf("the repetition: %w", err)
		}
		if apart := r.kernel.publishedApart(second.GetToken()); len(apart) > 0 {
			return "", fmt.Errorf("a repetition of %s published %s again", name, apart[0])
		}
		kinds = append(kinds, name+": "+kindName(outcomes[0]))
	}
	if len(kinds) == 0 {
		return "", skipped("it handles turns only")
	}
	return strings.Join(kinds, "; "), nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
