package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// grace is the time for a shutdown, slack what its answer may take on top of it.
const (
	grace = 3 * time.Second
	slack = time.Second
)

var endRules = []rule{
	{
		name: "init-twice", check: (*run).initsTwice,
		expected: "a second Init in the same process starts over, with the new token",
		hint:     "the kernel missed the first answer: end what the first Init began, and use the new token and lane",
	},
	{
		name: "kill", check: (*run).killed, process: true,
		expected: "after kill -9 in the middle of its work it starts again and handles the repetition",
		hint:     "a lock file, a pid file or a half-written file of the killed process must not stop the next one",
	},
	{
		name: "kernel-gone", check: (*run).kernelGone, fresh: true,
		expected: "when its kernel has died, the process exits",
		hint:     "exit when the connection breaks: the next kernel starts another process on the same data",
	},
	{
		name: "shutdown", check: (*run).shutsDown, fresh: true,
		expected: "Shutdown returns within its grace, also with deliveries in flight",
		hint:     "finish or cancel what runs and return; after run.shutdown_grace the process is killed",
	},
	{
		name: "exit", check: (*run).exits, process: true, fresh: true,
		expected: "after plugin.GRPCController/Shutdown the process exits by itself",
		hint:     "answer the call and exit with status 0 within two seconds",
	},
}

func (r *run) initsTwice(ctx context.Context) (string, error) {
	s, err := r.active(ctx)
	if err != nil {
		return "", err
	}
	s.closeStream()
	if err := s.initialize(ctx); err != nil {
		return "", fmt.Errorf("the second Init: %w", s.why(err))
	}
	if d, err := s.describe(ctx); err != nil || !proto.Equal(d, r.described) {
		return "", errors.Join(errors.New("after the second Init it describes something else"), err)
	}
	if r.handlesEvents(r.described) {
		if _, err := s.deliver(ctx, r.delivery(unknownTopic, []byte("{}"))); err != nil {
			return "", fmt.Errorf("after the second Init: %w", err)
		}
	}
	if _, err := s.health(ctx); err != nil {
		return "", fmt.Errorf("after the second Init: %w", err)
	}
	return "it works with the second token", nil
}

func (r *run) killed(ctx context.Context) (string, error) {
	s, err := r.active(ctx)
	if err != nil {
		return "", err
	}
	var lost []*busv1.Delivery
	if r.handlesEvents(r.described) {
		for _, name := range r.topics() {
			lost = append(lost, r.delivery(name, r.sample(name)))
		}
		if err := s.hand(ctx, lost...); err != nil {
			return "", err
		}
	}
	r.discard()
	if s, err = r.active(ctx); err != nil {
		return "", err
	}
	for _, d := range lost {
		second := r.again(d)
		if err := s.hand(ctx, second); err != nil {
			return "", err
		}
		if _, err := r.orCancelled(ctx, s, second); err != nil {
			return "", fmt.Errorf("the repetition after the kill: %w", err)
		}
	}
	if _, err := s.health(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("it started again and answered %s", plural(len(lost), "repetition", "repetitions")), nil
}

func (r *run) kernelGone(ctx context.Context) (string, error) {
	s, err := r.active(ctx)
	if err != nil {
		return "", err
	}
	if _, err := s.health(ctx); err != nil {
		return "", err
	}
	began := time.Now()
	s.process.Cut()
	s.server.stop()
	timer := time.NewTimer(r.patience)
	defer timer.Stop()
	select {
	case <-s.process.Gone:
		return fmt.Sprintf("it ended after %s", time.Since(began).Round(time.Millisecond)), nil
	case <-timer.C:
		return "", fmt.Errorf("it still runs after %s", r.patience)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (r *run) shutsDown(ctx context.Context) (string, error) {
	s, err := r.active(ctx)
	if err != nil {
		return "", err
	}
	var all []*busv1.Delivery
	if r.handlesEvents(r.described) {
		for _, name := range r.topics() {
			all = append(all, r.delivery(name, r.sample(name)))
		}
		if err := s.hand(ctx, all...); err != nil {
			return "", err
		}
	}
	took, err := s.shutdown(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("after %s", took.Round(time.Millisecond)), nil
}

// shutdown asks the extension to shut down.
func (s *session) shutdown(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, grace+slack)
	defer cancel()
	_, err := s.extension().Shutdown(ctx, &extensionv1.ShutdownRequest{GraceMs: grace.Milliseconds()})
	if ctx.Err() != nil {
		return 0, fmt.Errorf("no answer within its grace of %s", grace)
	}
	if err != nil && !s.ended() {
		return 0, s.why(err)
	}
	return time.Since(began), nil
}

func (r *run) exits(ctx context.Context) (string, error) {
	s, err := r.active(ctx)
	if err != nil {
		return "", err
	}
	if _, err := s.shutdown(ctx); err != nil {
		return "", err
	}
	began := time.Now()
	s.process.Quit()
	timer := time.NewTimer(r.patience)
	defer timer.Stop()
	select {
	case <-s.process.Gone:
	case <-timer.C:
		return "", fmt.Errorf("it still runs after %s", r.patience)
	}
	if wasKilled, reason := s.process.Exit(); wasKilled {
		return "", errors.New(reason)
	}
	return fmt.Sprintf("it exited after %s", time.Since(began).Round(time.Millisecond)), nil
}

// noteRules are checked all the time, and reported at the end.
var noteRules = []rule{
	noteRule("outcomes", "outcomes are complete: a kind, a reason unless it is an ack, one for each token",
		"the reason is shown in the list of dead deliveries: name what was wrong"),
	noteRule("token", "each call of the kernel carries the token of the last Init in switchboard-token",
		"send the metadata switchboard-token with every request"),
	noteRule("lane", "a lane token is used for its delivery or call only, and not after its answer",
		"pass the token of the delivery, or the lane of the call, on to what is done for it"),
	noteRule("grants", "it does nothing that its manifest does not grant",
		"add the permission to manifest.yaml: the kernel refuses the commit, and the delivery is dead at once"),
	noteRule("payloads", "what it publishes is JSON of at most 1 MiB, and fits the topic",
		"the payloads of the kernel's topics have JSON Schemas in docs/schemas/payloads.json"),
	noteRule("read-only", "a tool that is described as read_only has no effects",
		"remove read_only: the kernel repeats such a call, and asks for no approval"),
	{
		name: "stdout", check: (*run).stdoutClean, note: true, process: true,
		expected: "nothing is written to stdout after the handshake",
		hint:     "log on stderr: standard output belongs to the protocol",
	},
}

func noteRule(name, expected, hint string) rule {
	return rule{name: name, expected: expected, hint: hint, note: true,
		check: func(r *run, _ context.Context) (string, error) {
			noted := r.kernel.noted(name)
			if len(noted) == 0 {
				return "nothing else was seen", nil
			}
			more := ""
			if len(noted) > 3 {
				more = fmt.Sprintf("; and %d more", len(noted)-3)
			}
			return "", errors.New(strings.Join(noted[:min(len(noted), 3)], "; ") + more)
		}}
}

func (r *run) stdoutClean(context.Context) (string, error) {
	r.discard()
	noise := slices.DeleteFunc(slices.Clone(r.stdout), func(l string) bool { return strings.TrimSpace(l) == "" })
	if len(noise) > 0 {
		return "", fmt.Errorf("%s, the first one: %q", count(len(noise), "line"), noise[0])
	}
	return "silence", nil
}
