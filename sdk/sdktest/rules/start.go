package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/schema"
)

var startRules = []rule{
	{
		name: "handshake", check: (*run).starts, basic: true,
		expected: "the process writes one line to stdout, 1|1|unix|SOCKET|grpc, and serves gRPC there",
		hint: "write the line first and flush it; log on stderr; listen on a unix socket in " +
			"$PLUGIN_UNIX_SOCKET_DIR",
	},
	{
		name: "grpc-health", check: (*run).grpcHealth, process: true,
		expected: "grpc.health.v1.Health/Check answers SERVING for the service \"plugin\"",
		hint:     "serve grpc.health.v1.Health",
	},
	{
		name: "describe", check: (*run).describes, basic: true,
		expected: "Describe answers before Init, and always the same",
		hint:     "describe what the program can do, whatever its configuration is",
	},
	{
		name: "provides", check: (*run).provides, basic: true,
		expected: "the description has what the manifest provides, no more and no less",
		hint:     "change provides in manifest.yaml or the description: the kernel refuses more",
	},
	{
		name: "tools", check: (*run).toolsDescribed,
		expected: "each tool has a name, a description, and a JSON Schema of an object",
		hint:     "names are lower-case letters, digits and underscores, at most 48, each once",
	},
	{
		name: "init", check: (*run).inits, basic: true,
		expected: "Init returns without an error, also without configuration and secrets",
		hint: "not set up yet is no error: answer with the readiness STATE_UNCONFIGURED, and do what takes " +
			"longer after Init",
	},
	{
		name: "health", check: (*run).healthy,
		expected: "Health answers at once, with a state",
		hint:     "answer from memory: after three probes without an answer the process is killed",
	},
	{
		name: "credit", check: (*run).gives, basic: true,
		expected: "the first frame of Events/Deliver gives credit",
		hint:     "send OutcomeFrame{credit: N} when the stream opens: without credit nothing is delivered",
	},
}

// starts starts the process.
func (r *run) starts(ctx context.Context) (string, error) {
	began := time.Now()
	if _, err := r.launched(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("ready for calls after %s", time.Since(began).Round(time.Millisecond)), nil
}

func (r *run) grpcHealth(ctx context.Context) (string, error) {
	s, err := r.launched(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	answer, err := healthpb.NewHealthClient(s.process.Conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "plugin"})
	if err != nil {
		return "", s.why(err)
	}
	if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return "", fmt.Errorf("it answers %s", answer.GetStatus())
	}
	return "SERVING", nil
}

func (r *run) describes(ctx context.Context) (string, error) {
	s, err := r.launched(ctx)
	if err != nil {
		return "", err
	}
	first, err := s.describe(ctx)
	if err != nil {
		return "", s.why(err)
	}
	second, err := s.describe(ctx)
	if err != nil {
		return "", fmt.Errorf("the second time: %w", s.why(err))
	}
	if !proto.Equal(first, second) {
		return "", errors.New("a second Describe says something else")
	}
	s.description, r.described = first, first
	return summary(first), nil
}

// summary is a description in a few words.
func summary(d *extensionv1.Description) string {
	var parts []string
	for _, part := range []struct {
		is   bool
		what string
	}{
		{d.GetChannel(), "a channel"}, {d.GetDrafts(), "drafts"}, {d.GetModels(), "models"},
		{d.GetEvents() && !d.GetChannel(), "events"}, {len(d.GetTools()) > 0, count(len(d.GetTools()), "tool")},
	} {
		if part.is {
			parts = append(parts, part.what)
		}
	}
	if len(parts) == 0 {
		return "nothing that others can use"
	}
	return strings.Join(parts, ", ")
}

func (r *run) provides(context.Context) (string, error) {
	d, p := r.described, r.Spec.Provides
	if err := r.Spec.Check(d); err != nil {
		return "", err
	}
	for _, have := range []struct {
		what               string
		reported, provided bool
	}{
		{"a channel", d.GetChannel(), p.Channel != nil},
		{"drafts", d.GetDrafts(), p.Channel != nil && p.Channel.Drafts},
		{"tools", len(d.GetTools()) > 0, p.Tools},
		{"models", d.GetModels(), len(p.Models) > 0},
	} {
		switch {
		case have.reported && !have.provided:
			return "", fmt.Errorf("it describes %s, which the manifest does not provide", have.what)
		case have.provided && !have.reported:
			return "", fmt.Errorf("the manifest provides %s, which it does not describe", have.what)
		}
	}
	for _, c := range p.Commands {
		if !slices.ContainsFunc(d.GetTools(), func(t *extensionv1.Tool) bool { return t.GetCommand() == c.Name }) {
			return "", fmt.Errorf("the manifest provides the command /%s, and no tool is it", c.Name)
		}
	}
	if len(r.topics()) > 0 && !r.handlesEvents(d) {
		return "", fmt.Errorf("the manifest subscribes to %s, and it describes no events", r.topics()[0])
	}
	return summary(d), nil
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

func (r *run) toolsDescribed(context.Context) (string, error) {
	described := r.described.GetTools()
	if len(described) == 0 {
		return "", skipped("it has no tools")
	}
	seen := map[string]bool{}
	for _, t := range described {
		switch name := t.GetName(); {
		case !toolName.MatchString(name):
			return "", fmt.Errorf("the name %q", name)
		case seen[name]:
			return "", fmt.Errorf("the tool %s twice", name)
		case strings.TrimSpace(t.GetDescription()) == "":
			return "", fmt.Errorf("the tool %s has no description", name)
		}
		seen[t.GetName()] = true
		if err := checkSchema(t.GetSchema()); err != nil {
			return "", fmt.Errorf("the schema of %s: %w", t.GetName(), err)
		}
	}
	return count(len(described), "tool"), nil
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
		return fmt.Errorf("its type is %q, not \"object\"", top.Type)
	}
	return nil
}

func (r *run) inits(ctx context.Context) (string, error) {
	s, err := r.launched(ctx)
	if err != nil {
		return "", err
	}
	s.description = r.described
	began := time.Now()
	if err := s.initialize(ctx); err != nil {
		return "", s.why(err)
	}
	return fmt.Sprintf("active after %s", time.Since(began).Round(time.Millisecond)), nil
}

func (r *run) healthy(ctx context.Context) (string, error) {
	s, err := r.active(ctx)
	if err != nil {
		return "", err
	}
	readiness, err := s.health(ctx)
	if err != nil {
		return "", err
	}
	if readiness.GetState() == extensionv1.Readiness_STATE_UNSPECIFIED {
		return "", errors.New("an answer without a state")
	}
	return strings.TrimSpace(stateName(readiness) + " " + readiness.GetDetail()), nil
}

func stateName(r *extensionv1.Readiness) string {
	return strings.ToLower(strings.TrimPrefix(r.GetState().String(), "STATE_"))
}

func (r *run) gives(ctx context.Context) (string, error) {
	s, err := r.events(ctx)
	if err != nil {
		return "", err
	}
	if err := s.wait(ctx, "credit", func() bool { return s.given > 0 }); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("credit for %d", s.given), nil
}
